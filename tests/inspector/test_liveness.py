"""One answer to whether a node is alive, for everybody who asks."""

from __future__ import annotations

import pytest

from rota import App
from rota.cli.health import _live, _ready
from rota.inspector.facts.node import node_facts
from rota.inspector.facts.stats import read_stats
from rota.inspector.surroundings import around
from rota.store.contract import Node
from rota.store.shared.liveness import SILENT_AFTER, live_nodes

AHEAD = 5_000_000  # a clock that is ahead by less than the limit; another store call takes no longer


@pytest.fixture
def store():
    app = App("memory://")
    yield app.open()
    app.close()


@pytest.mark.parametrize(
    ("age", "is_alive"),
    [
        pytest.param(0, True, id="now"),
        pytest.param(SILENT_AFTER * 4 // 5, True, id="three heartbeats missed"),
        pytest.param(SILENT_AFTER, False, id="silent"),
        pytest.param(-AHEAD, True, id="clock ahead"),
        pytest.param(-SILENT_AFTER * 9, False, id="from the future"),
    ],
)
def test_health_lists_numbers_and_why_agree(store, monkeypatch, age, is_alive):
    now = store.now()
    monkeypatch.setattr(store, "now", lambda: now)  # the limit is compared to the microsecond
    node = Node(id="n", host="h", pid=1, roles=("worker", "scheduler"), queues=("default",))
    store.record_heartbeat(node, now=now - age)
    [stored] = store.list_nodes()
    asked = {
        "health --live": _live(store).is_well,
        "health --ready": _ready(store).is_well,
        "nodes": node_facts(stored, now).state == "alive",
        "stats": read_stats(store).nodes == {"alive": 1, "silent": 0},
        "why": around(store, "default", "greet", now).has_worker,
        "engine": live_nodes(store.list_nodes(), now) == [stored],
    }
    assert set(asked.values()) == {is_alive}, asked
