"""A host whose wall clock stands an hour ahead for some seconds, under a real node with all its threads."""

from __future__ import annotations

import logging

import pytest
from kill_harness import wait_until

from rota import App, every
from rota.app import internals
from rota.engine.node import Node
from rota.engine.services import NodeSettings
from rota.store.sqlite import SqliteStore
from rota.store.sqlite import clock as clock_module
from rota.store.sqlite.clock import wall_now

SECOND = 1_000_000
HOUR = 3600 * SECOND


def test_a_schedule_goes_on_when_the_clock_is_right_again(tmp_path, monkeypatch, caplog):
    store = SqliteStore(tmp_path / "rota.db")
    app = App(store)

    @app.task
    def tick() -> None: ...

    def runs() -> list[int]:
        found = app.jobs.list(limit=200).items
        return sorted(job.record.fire_at for job in found if job.record.fire_at)

    steps: list[float] = []
    app.on("store.clock_set", lambda event: steps.append(event.data["seconds"]))
    node = Node(app.open(), internals(app).registry, internals(app).events, NodeSettings())
    app.schedules.put("tick", tick.job(), every("1s"), overlap="allow")
    with caplog.at_level(logging.WARNING, "rota"):
        node.start()
        try:
            wait_until(runs, "the first run")
            monkeypatch.setattr(clock_module, "wall_now", lambda: wall_now() + HOUR)
            wait_until(lambda: any(at > wall_now() + HOUR // 2 for at in runs()), "a run an hour ahead")
            monkeypatch.setattr(clock_module, "wall_now", wall_now)
            right_at = wall_now()
            wait_until(lambda: any(right_at < at < right_at + HOUR // 2 for at in runs()), "a run of the true time")
        finally:
            node.stop()
    assert runs() == sorted(set(runs()))
    said = [record.getMessage() for record in caplog.records if "the store's clock was set" in record.getMessage()]
    assert len(said) == 2
    assert "set ahead by" in said[0]
    assert "set back by" in said[1]
    assert steps == [pytest.approx(3600, abs=60), pytest.approx(-3600, abs=60)]  # a busy machine measures less exactly
    app.close()
