"""Queues with their counters, and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.store.mongo import notify
from rota.store.mongo.control import NOW
from rota.store.shared.unpacking import node_from

if TYPE_CHECKING:
    from rota.store.contract import Node, QueueInfo
    from rota.store.mongo.counters import Counters
    from rota.store.mongo.database import Database, Document
    from rota.store.mongo.steps import Steps


class Operations:
    """One namespace's queues and nodes."""

    def __init__(self, steps: Steps, counters: Counters) -> None:
        self._steps = steps
        self._counters = counters

    def pause_queue(self, queue: str, *, paused: bool) -> None:
        with self._steps.call():
            self._steps.control.pause(queue, paused=paused)
        notify.send(self._steps.connection, "jobs")

    def list_queues(self) -> list[QueueInfo]:
        with self._steps.call() as db:
            paused = self._steps.control.look(None).paused
            counts = self._counters.read(db)
            return [
                counts.info(name, is_paused=name in paused, oldest_at=_oldest_ready(db, name))
                for name in sorted(paused | counts.queues())
            ]

    def recount(self) -> dict[str, int]:
        with self._steps.call() as db:
            return self._counters.differences(db)

    def beat(self, node: Node, now: int | None) -> int:
        fields = {"beat_at": NOW if now is None else now, "data": {"$literal": msgspec.json.encode(node).decode()}}
        with self._steps.call() as db:
            return int(db.nodes.upsert({"_id": node.id}, [{"$set": fields}])["beat_at"])

    def list_nodes(self) -> list[Node]:
        with self._steps.call() as db:
            return [_node_of(document) for document in db.nodes.find({}).sort("_id", 1)]

    def forget_node(self, node_id: str) -> None:
        with self._steps.call() as db:
            db.nodes.delete_many({"_id": node_id})


def _node_of(document: Document) -> Node:
    return node_from(str(document["_id"]), str(document.get("data", "")), int(document["beat_at"]))


def _oldest_ready(db: Database, queue: str) -> int | None:
    """Since when the first ready job waits: one read per priority that is in use, never of the whole queue."""
    oldest: int | None = None
    ready: Document = {"state": "queued", "queue": queue}
    fields = {"priority": 1, "queued_at": 1, "run_at": 1}
    while True:
        first = db.jobs.find_one(ready, fields, sort=[("priority", -1), ("seq", 1)])
        if first is None or not isinstance(first.get("priority"), int):
            return oldest
        since = int(first.get("queued_at") or first.get("run_at") or 0)
        oldest = since if oldest is None else min(oldest, since)
        ready["priority"] = {"$lt": first["priority"]}
