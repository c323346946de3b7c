"""Claiming: due jobs become ready, and the best ready ones go to a worker, higher priority first, then older first.

The best are found by an index and taken in one write, guarded by their state and lease number, with a fresh token. Only
where another worker was faster is it read back which of them were taken.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple

from pymongo import UpdateMany

from rota.failpoints import reach
from rota.model.settle import claim
from rota.model.state import State
from rota.store.contract import MOST_PROMOTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.job import Job
    from rota.store.contract import Exchange
    from rota.store.mongo.connection import Connection
    from rota.store.mongo.parking import Parker
    from rota.store.mongo.space import Document
    from rota.store.mongo.steps import Step, Steps

MOST_ROUNDS = 10  # after others were faster; the next call goes on


class Sight(NamedTuple):
    """What waits in some queues."""

    ready: list[Document]
    next_due_at: int | None

    def has_work(self, now: int) -> bool:
        return bool(self.ready) or (self.next_due_at is not None and self.next_due_at <= now)


class Claimer:
    """Claims jobs of one namespace."""

    def __init__(self, connection: Connection, steps: Steps, parker: Parker) -> None:
        self._connection = connection
        self._steps = steps
        self._parker = parker

    def claim(
        self, ask: Exchange, queues: Sequence[str], now: int, sight: Sight | None = None
    ) -> tuple[list[Job], int | None]:
        """The jobs that this worker now has, and when the next scheduled one is due."""
        if not queues:
            return [], None
        sight = sight or self.look(queues, ask.want)
        was_due = sight.next_due_at is not None and sight.next_due_at <= now
        if was_due:
            self._steps.run("exchange", lambda step: self._promote(step, queues, now), is_last=False, is_loose=True)
            sight = self.look(queues, ask.want)
        claimed: list[Job] = []
        for _ in range(MOST_ROUNDS):
            claimed += self._take(ask, sight.ready, now)
            room = ask.want - len(claimed)
            if room <= 0 or len(sight.ready) < ask.want:
                break
            sight = self.look(queues, room)
        if was_due and not claimed:
            self._steps.flush()
        return claimed, sight.next_due_at

    def look(self, queues: Sequence[str], want: int) -> Sight:
        """The best ready jobs of these queues, in one merged order, and the first that is due later: one reading."""
        if not queues:
            return Sight([], None)
        space = self._connection.space
        these = {"$in": list(queues)} if len(queues) > 1 else queues[0]
        due: list[Document] = [
            {"$match": {"state": "scheduled", "queue": these}},
            {"$sort": {"run_at": 1}},
            {"$limit": 1},
            {"$project": {"run_at": 1, "is_due": {"$literal": True}}},
        ]
        if want <= 0:
            found = list(space.jobs.aggregate(due))
        else:
            ready: list[Document] = [
                {"$match": {"state": "queued", "queue": these}},
                {"$sort": {"priority": -1, "seq": 1}},
                {"$limit": want},
                {"$unionWith": {"coll": space.jobs.name, "pipeline": due}},
            ]
            found = list(space.jobs.aggregate(ready, batchSize=want + 1))
        next_due_at = None
        if found and "is_due" in found[-1]:
            next_due_at = int(found.pop()["run_at"])
        return Sight(found, next_due_at)

    def _take(self, ask: Exchange, documents: list[Document], now: int) -> list[Job]:
        """Those of the documents that are ours after one guarded write."""
        jobs = self._parker.readable(documents, ask.holder, now)
        if not jobs:
            return []
        token = secrets.token_hex(8)
        lease_until = now + ask.lease_for
        by_lease: dict[int, list[str]] = {}
        for job in jobs:
            by_lease.setdefault(job.lease_no, []).append(job.id)
        update: Document = {
            "$set": {
                "state": "running",
                "started_at": now,
                "holder": ask.holder,
                "lease_until": lease_until,
                "touch": token,
            },
            "$inc": {"lease_no": 1},
            "$unset": {"progress": ""},
        }
        space = self._connection.space
        reach("exchange.before_commit")
        taken = space.jobs.bulk_write(
            [
                UpdateMany({"_id": {"$in": ids}, "state": "queued", "lease_no": lease_no}, update, hint="_id_")
                for lease_no, ids in by_lease.items()
            ],
            ordered=False,
        ).modified_count
        if taken != len(jobs):
            found = space.jobs.find({"_id": {"$in": [job.id for job in jobs]}, "touch": token}, {"_id": 1})
            ours = {document["_id"] for document in found}
            jobs = [job for job in jobs if job.id in ours]
        return [claim(job, ask.holder, now, lease_until) for job in jobs]

    def _promote(self, step: Step, queues: Sequence[str], now: int) -> None:
        """Make due jobs of these queues ready, a bounded number of them."""
        for queue in queues:
            due = {"state": "scheduled", "queue": queue, "run_at": {"$lte": now}}
            found = step.space.jobs.find(due, {"_id": 1}, session=step.session, hint="due")
            ids = [document["_id"] for document in found.sort("run_at", 1).limit(MOST_PROMOTED)]
            if not ids:
                continue
            promoted = step.space.jobs.update_many(
                {"_id": {"$in": ids}, **due},
                {"$set": {"state": "queued", "queued_at": now}},
                session=step.session,
                hint="_id_",
            ).modified_count
            step.counts.move(queue, State.SCHEDULED, State.QUEUED, promoted)
