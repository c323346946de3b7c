"""Tests the records of nodes: which are alive, by the store's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.store.contract import Node, Retention
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, a_node

if TYPE_CHECKING:
    from rota.store.contract import Store

FULL = Node(
    id="node-1",
    host="büro.example",
    pid=4711,
    roles=("worker", "scheduler"),
    queues=("default", "mail"),
    tasks=("mail.send", "shop:report"),
    concurrency=16,
    running=3,
    is_draining=True,
    app="shop",
    version="2.4",
    started_at=T0 - HOUR,
)


class TestNodes:
    def test_a_beat_is_dated_by_the_store(self, store: Store) -> None:
        assert store.record_heartbeat(a_node(beat_at=5), now=T0) == T0
        assert [node.beat_at for node in store.list_nodes()] == [T0]

    def test_a_node_is_kept_whole(self, store: Store) -> None:
        store.record_heartbeat(FULL, now=T0)
        assert store.list_nodes() == [msgspec.structs.replace(FULL, beat_at=T0)]

    def test_the_last_beat_counts(self, store: Store) -> None:
        store.record_heartbeat(a_node(running=1), now=T0)
        store.record_heartbeat(a_node(running=2), now=T0 + 1)
        (node,) = store.list_nodes()
        assert (node.running, node.beat_at) == (2, T0 + 1)

    def test_nodes_are_listed_by_id(self, store: Store) -> None:
        for name in ("b", "a", "c"):
            store.record_heartbeat(a_node(name), now=T0)
        assert [node.id for node in store.list_nodes()] == ["a", "b", "c"]

    def test_a_forgotten_node_is_gone(self, store: Store) -> None:
        store.record_heartbeat(a_node("a"), now=T0)
        store.record_heartbeat(a_node("b"), now=T0)
        store.forget_node("a")
        assert [node.id for node in store.list_nodes()] == ["b"]

    def test_forgetting_an_unknown_node_is_no_error(self, store: Store) -> None:
        store.forget_node("nowhere")
        assert store.list_nodes() == []

    def test_a_silent_node_is_pruned(self, store: Store) -> None:
        store.record_heartbeat(a_node("silent"), now=T0)
        store.record_heartbeat(a_node("alive"), now=T0 + MINUTE)
        pruned = store.prune(Retention(nodes_for=HOUR), 100, now=T0 + HOUR)
        assert (pruned.nodes, [node.id for node in store.list_nodes()]) == (1, ["alive"])
