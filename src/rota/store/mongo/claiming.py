"""Claiming: due jobs become ready, and the best ready ones go to a worker, higher priority first, then older first.

The best are found by an index and taken in one write, with a fresh token. They must still be queued, and bear the token
of the write before: one that was cancelled and retried meanwhile has another past than the one seen. Only where another
worker was faster is it read back which of them were taken. The server says what time it was when they were found, so
that no lease is shortened by what the verb did before.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple

from rota.failpoints import reach
from rota.model.settle import claim
from rota.model.state import State
from rota.store.contract import MOST_PROMOTED
from rota.store.mongo import bells
from rota.store.mongo.head import HEAD, NOW, paused_of
from rota.store.mongo.judging import ABOUT, is_unjudged
from rota.store.mongo.wire import SAFE, Command, part_of_many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.job import Job
    from rota.store.contract import Exchange
    from rota.store.mongo.connection import Connection
    from rota.store.mongo.head import Head
    from rota.store.mongo.judging import Judges
    from rota.store.mongo.parking import Parker
    from rota.store.mongo.space import Document
    from rota.store.mongo.steps import Step, Steps

MOST_ROUNDS = 10  # after others were faster; the next call goes on


class Sight(NamedTuple):
    """What waits in some queues, and when that was seen."""

    now: int
    ready: list[Document]
    next_due_at: int | None
    head: Document  # what is paused, and whether the store is sealed

    @property
    def has_due(self) -> bool:
        return self.next_due_at is not None and self.next_due_at <= self.now

    @property
    def has_work(self) -> bool:
        return bool(self.ready) or self.has_due


class Claimed(NamedTuple):
    """What a worker got, when, and when the next scheduled job is due."""

    now: int
    jobs: list[Job]
    next_due_at: int | None


class Claimer:
    """Claims jobs of one namespace."""

    def __init__(self, connection: Connection, steps: Steps, parker: Parker, head: Head, judges: Judges) -> None:
        self._connection = connection
        self._steps = steps
        self._parker = parker
        self._head = head
        self._judges = judges
        self._paused: frozenset[str] = frozenset()  # queues, as far as the last look told

    def claim(
        self,
        ask: Exchange,
        queues: Sequence[str],
        now: int | None,
        sight: Sight | None = None,
        then: list[Command] | None = None,
    ) -> Claimed:
        """The jobs that this worker now has. What comes `then` goes along with the first write, and off its list."""
        sight = sight or self.look(queues, ask.want, now)
        had_due = sight.has_due
        if had_due:
            at = sight.now
            self._steps.run("exchange", lambda step: self._promote(step, queues, at), is_last=False, is_loose=True)
            sight = self.look(queues, ask.want, now)
        claimed: list[Job] = []
        for _ in range(MOST_ROUNDS):
            claimed += self._take(ask, sight, now, [] if then is None else then)
            room = ask.want - len(claimed)
            if room <= 0 or len(sight.ready) < ask.want:
                break
            sight = self.look(queues, room, now)
        if had_due and not claimed:
            self._steps.flush()
        started_at = (job.started_at or 0 for job in claimed)
        return Claimed(max(sight.now, *started_at) if claimed else sight.now, claimed, sight.next_due_at)

    def survey(self, ask: Exchange, now: int | None) -> Sight:
        """What there is to claim: most often nothing, and a look needs no write. It goes by what was paused at the last
        look, and is repeated where that has changed."""
        sight = self.look_now(ask, now)
        self._head.refuse_if_sealed(sight.head)
        return sight

    def look_now(self, ask: Exchange, now: int | None) -> Sight:
        """The same, for one who has been let in."""
        while True:
            sight = self.look(self.open_queues(ask), ask.want, now)
            if self.learn(sight):
                return sight

    def open_queues(self, ask: Exchange) -> list[str]:
        """Those that were not paused when this was last looked at."""
        return open_queues(ask.queues, self._paused)

    def learn(self, sight: Sight) -> bool:
        """Whether what was seen is what was looked for: nothing was paused or resumed since the last look."""
        known, self._paused = self._paused, paused_of(sight.head)
        self._head.gate.hear(int(sight.head["clock"]))
        return known == self._paused

    def look(self, queues: Sequence[str], want: int, now: int | None) -> Sight:
        (answer,) = self._connection.wire.ask(self.looking(queues, want))
        return self.seen(answer, queues, want, now)

    def looking(self, queues: Sequence[str], want: int) -> Command:
        """The best ready jobs of these queues, in one merged order, the first that is due later, and the head
        document with the server's clock: one reading."""
        jobs = self._connection.space.jobs.name
        body = {"aggregate": jobs, "pipeline": self._pipeline(queues, want), "cursor": {"batchSize": want + 2}}
        return Command(body)

    def _pipeline(self, queues: Sequence[str], want: int) -> list[Document]:
        space = self._connection.space
        these = {"$in": list(queues)} if len(queues) != 1 else queues[0]
        due: list[Document] = [
            {"$match": {"state": "scheduled", "queue": these}},
            {"$sort": {"run_at": 1}},
            {"$limit": 1},
            {"$project": {"run_at": 1, "is_due": {"$literal": True}}},
        ]
        clock: list[Document] = [{"$match": HEAD}, {"$project": {"clock": NOW, "paused": 1, "seal": 1}}]
        ready: list[Document] = [
            {"$match": {"state": "queued", "queue": these}},
            {"$sort": {"priority": -1, "seq": 1}},
            {"$limit": want},
        ]
        return [
            *(ready if want > 0 else due),
            *([{"$unionWith": {"coll": space.jobs.name, "pipeline": due}}] if want > 0 else []),
            {"$unionWith": {"coll": space.meta.name, "pipeline": clock}},
        ]

    def seen(self, answer: Document, queues: Sequence[str], want: int, now: int | None) -> Sight:
        found: list[Document] = answer["cursor"]["firstBatch"]
        if answer["cursor"]["id"]:  # more than one answer holds
            found = list(self._connection.space.jobs.aggregate(self._pipeline(queues, want)))
        head = (
            found.pop() if found and "clock" in found[-1] else {"clock": self._head.now(self._connection.space, None)}
        )
        next_due_at = int(found.pop()["run_at"]) if found and "is_due" in found[-1] else None
        return Sight(int(head["clock"]) if now is None else now, found, next_due_at, head)

    def _take(self, ask: Exchange, sight: Sight, injected: int | None, then: list[Command]) -> list[Job]:
        """Those of the documents that are ours after one guarded write."""
        jobs = self._parker.readable(sight.ready, ask.holder, sight.now)
        if not jobs:
            return []
        now = self._not_before_they_were_made(jobs, sight.now) if injected is None else injected
        token = secrets.token_hex(8)
        lease_until = now + ask.lease_for
        touches = {document["_id"]: document.get("touch") for document in sight.ready}
        told = {document["_id"] for document in sight.ready if "progress" in document}
        by_past: dict[tuple[str | None, bool], list[str]] = {}
        for job in jobs:
            by_past.setdefault((touches[job.id], job.id in told), []).append(job.id)
        update: Document = {
            "$set": {
                "state": "running",
                "started_at": now,
                "holder": ask.holder,
                "lease_until": lease_until,
                "touch": token,
            },
            "$inc": {"lease_no": 1},
        }
        forgetting: Document = {**update, "$unset": {"progress": ""}}
        parts = [
            part_of_many(
                {"_id": {"$in": ids}, "state": "queued", "touch": touch}, forgetting if had_progress else update
            )
            for (touch, had_progress), ids in by_past.items()
        ]
        space = self._connection.space
        reach("exchange.before_commit")
        along = then.copy()
        then.clear()
        if self._connection.wire.update(space.jobs, parts, SAFE, along) != len(jobs):
            found = space.jobs.find({"_id": {"$in": [job.id for job in jobs]}, "touch": token}, {"_id": 1})
            ours = {document["_id"] for document in found}
            jobs = [job for job in jobs if job.id in ours]
        return [claim(job, ask.holder, now, lease_until) for job in jobs]

    def _not_before_they_were_made(self, jobs: list[Job], now: int) -> int:
        """Some may have been made while we looked: then the clock is read once more."""
        if all(job.created_at <= now for job in jobs):
            return now
        return self._head.now(self._connection.space, None)

    def _promote(self, step: Step, queues: Sequence[str], now: int) -> None:
        """Make due jobs of these queues ready, a bounded number of them; what was made ahead is judged first, for what
        a judgement has ended is none of them."""
        found = {queue: self._due(step, queue, now) for queue in queues}
        ahead = [document for documents in found.values() for document in documents if is_unjudged(document)]
        if ahead:
            self._judge(step, ahead, queues, now)
        for queue, documents in found.items():
            ids = [document["_id"] for document in documents if not is_unjudged(document)]
            if not ids:
                continue
            promoted = step.space.jobs.update_many(
                {"_id": {"$in": ids}, **_is_due(queue, now)},
                {"$set": {"state": "queued", "queued_at": now}},
                session=step.session,
                hint="_id_",
            ).modified_count
            step.counts.move(queue, State.SCHEDULED, State.QUEUED, promoted)

    def _due(self, step: Step, queue: str, now: int) -> list[Document]:
        cursor = step.space.jobs.find(_is_due(queue, now), ABOUT, session=step.session, hint="due")
        return list(cursor.sort("run_at", 1).limit(MOST_PROMOTED))

    def _judge(self, step: Step, ahead: Sequence[Document], queues: Sequence[str], now: int) -> None:
        """Judge them; whoever works on other queues is woken, where that released a job of theirs."""
        self._judges.judge(step, ahead, now)
        if step.counts.queues().difference(queues):
            bells.ring(self._connection, "jobs")


def _is_due(queue: str, now: int) -> Document:
    return {"state": "scheduled", "queue": queue, "run_at": {"$lte": now}}


def open_queues(queues: Sequence[str], paused: frozenset[str]) -> list[str]:
    return [queue for queue in dict.fromkeys(queues) if queue not in paused]
