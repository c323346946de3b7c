"""Claiming: due jobs become ready, and the best ready ones go to a worker, higher priority first, then older first.

The best are found by an index and taken in one write, with a fresh token. They must still be queued, and bear the token
of the write before: one that was cancelled and retried meanwhile has another past than the one seen. Only where another
worker was faster is it read back which of them were taken. The server says what time it was when they were found, so
that no lease is shortened by what the verb did before.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rota.failpoints import reach
from rota.model.settle import claim, promote
from rota.model.state import State
from rota.store.contract import MOST_PROMOTED
from rota.store.mongo import notify
from rota.store.mongo.documents import readable_job
from rota.store.mongo.head import HEAD, NOW, paused_of
from rota.store.mongo.judging import ABOUT, is_unjudged
from rota.store.mongo.places import seq_of
from rota.store.mongo.wire import SAFE, Command, part_of_many
from rota.store.shared.counting import Counts

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
DUE_AT_ONCE = 8  # scheduled jobs that a look shows: so few are claimed without being made ready first


class Question(NamedTuple):
    """What is looked for: so many jobs of these queues that are ready, or due within `ahead`."""

    queues: Sequence[str]
    want: int
    now: int | None
    ahead: int = 0

    @classmethod
    def of(cls, ask: Exchange, queues: Sequence[str], now: int | None) -> Question:
        return cls(queues, ask.want, now, ask.ahead)


class Sight(NamedTuple):
    """What waits in some queues, and when that was seen."""

    now: int
    ready: list[Document]
    soon: list[Document]  # the first scheduled ones: when, and the whole job where that is wanted now
    head: Document  # what is paused, and whether the store is sealed
    due: frozenset[str] = frozenset()  # those of the ready ones that nobody has made ready: their time has come

    @property
    def next_due_at(self) -> int | None:
        return int(self.soon[0]["run_at"]) if self.soon else None

    @property
    def has_due(self) -> bool:
        return self.is_due_within(0)

    def is_due_within(self, span: int) -> bool:
        return self.next_due_at is not None and self.next_due_at <= self.now + span

    @property
    def wanted(self) -> list[Document]:
        """Jobs that are due, or will be while they are wanted already."""
        return [document["job"] for document in self.soon if document.get("job")]

    @property
    def has_work(self) -> bool:
        return bool(self.ready or self.wanted) or self.has_due

    def with_due(self, want: int) -> Sight | None:
        """All that is ready or due, as if it were ready, with what is due later; None where that is not all, or more
        than is wanted, or where one of them must be looked at more closely."""
        due = self.wanted
        if not due or len(due) == DUE_AT_ONCE or len(due) + len(self.ready) > want:
            return None
        if any(map(is_unjudged, due)) or not all(map(_is_readable, [*self.ready, *due])):
            return None
        ready = sorted([*self.ready, *due], key=lambda job: (-job["priority"], seq_of(job["seq"])))
        return self._replace(ready=ready, soon=self.soon[len(due) :], due=frozenset(job["_id"] for job in due))


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
        question = Question.of(ask, queues, now)
        sight = sight or self.look(question)
        had_due = sight.has_due
        sight = sight.with_due(ask.want) or sight
        if sight.has_due:
            sight = self._promoted(question, sight.now)
        claimed: list[Job] = []
        for _ in range(MOST_ROUNDS):
            claimed += self._take(ask, sight, now, [] if then is None else then)
            room = ask.want - len(claimed)
            if room <= 0 or len(sight.ready) < ask.want:
                break
            sight = self.look(question._replace(want=room))
        if had_due and not claimed:
            self._steps.flush()
        claimed_at = ((job.lease_until or 0) - ask.lease_for for job in claimed)
        return Claimed(max([sight.now, *claimed_at]), claimed, sight.next_due_at)

    def _promoted(self, question: Question, at: int) -> Sight:
        """What there is once due jobs have been made ready."""
        queues = question.queues
        self._steps.run("exchange", lambda step: self._promote(step, queues, at), is_last=False, is_loose=True)
        return self.look(question)

    def survey(self, ask: Exchange, now: int | None) -> Sight:
        """What there is to claim: most often nothing, and a look needs no write. It goes by what was paused at the last
        look, and is repeated where that has changed."""
        sight = self.look_now(ask, now)
        self._head.refuse_if_sealed(sight.head)
        return sight

    def look_now(self, ask: Exchange, now: int | None) -> Sight:
        """The same, for one who has been let in."""
        while True:
            sight = self.look(Question.of(ask, self.open_queues(ask), now))
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

    def look(self, question: Question) -> Sight:
        (answer,) = self._connection.wire.ask(self.looking(question))
        return self.seen(answer, question)

    def looking(self, question: Question) -> Command:
        """The best ready jobs of these queues, in one merged order, the first that are scheduled, and the head
        document with the server's clock: one reading."""
        jobs, most = self._connection.space.jobs.name, question.want + DUE_AT_ONCE + 1
        return Command({"aggregate": jobs, "pipeline": self._pipeline(question), "cursor": {"batchSize": most}})

    def _pipeline(self, question: Question) -> list[Document]:
        space = self._connection.space
        queues, want, now, ahead = question
        these = {"$in": list(queues)} if len(queues) != 1 else queues[0]
        is_wanted = {"$lte": ["$run_at", {"$add": [NOW, ahead]} if now is None else now + ahead]}
        soon: list[Document] = [
            {"$match": {"state": "scheduled", "queue": these}},
            {"$sort": {"run_at": 1}},
            {"$limit": DUE_AT_ONCE if want > 0 else 1},
            {"$project": {"run_at": 1, "is_soon": {"$literal": True}, "job": {"$cond": [is_wanted, "$$ROOT", None]}}},
        ]
        clock: list[Document] = [{"$match": HEAD}, {"$project": {"clock": NOW, "paused": 1, "seal": 1}}]
        ready: list[Document] = [
            {"$match": {"state": "queued", "queue": these}},
            {"$sort": {"priority": -1, "seq": 1}},
            {"$limit": want},
        ]
        return [
            *(ready if want > 0 else soon),
            *([{"$unionWith": {"coll": space.jobs.name, "pipeline": soon}}] if want > 0 else []),
            {"$unionWith": {"coll": space.meta.name, "pipeline": clock}},
        ]

    def seen(self, answer: Document, question: Question) -> Sight:
        found: list[Document] = answer["cursor"]["firstBatch"]
        if answer["cursor"]["id"]:  # more than one answer holds
            found = list(self._connection.space.jobs.aggregate(self._pipeline(question)))
        head = (
            found.pop() if found and "clock" in found[-1] else {"clock": self._head.now(self._connection.space, None)}
        )
        soon = [document for document in found[-DUE_AT_ONCE:] if "is_soon" in document]
        ready = found[: len(found) - len(soon)]
        return Sight(int(head["clock"]) if question.now is None else question.now, ready, soon, head)

    def _take(self, ask: Exchange, sight: Sight, injected: int | None, then: list[Command]) -> list[Job]:
        """Those of the documents that are ours after one guarded write."""
        jobs = self._parker.readable(sight.ready, ask.holder, sight.now)
        if not jobs:
            return []
        now = self._not_before_they_were_made(jobs, sight.now) if injected is None else injected
        token = secrets.token_hex(8)
        queued = [promote(job, sight.now) if job.id in sight.due else job for job in jobs]
        claimed = [claim(job, ask.holder, now, now + ask.lease_for) for job in queued]
        parts = _parts(sight, claimed, token)
        space = self._connection.space
        reach("exchange.before_commit")
        along = then.copy()
        then.clear()
        if self._connection.wire.update(space.jobs, parts, SAFE, along) != len(claimed):
            found = space.jobs.find({"_id": {"$in": [job.id for job in claimed]}, "touch": token}, {"_id": 1})
            ours = {document["_id"] for document in found}
            claimed = [job for job in claimed if job.id in ours]
        self._count_due([job for job in claimed if job.id in sight.due])
        return claimed

    def _count_due(self, jobs: Sequence[Job]) -> None:
        """Count those that were claimed without being made ready first."""
        if jobs:
            counts = Counts()
            counts.move_all((job.queue, State.SCHEDULED, State.RUNNING) for job in jobs)
            self._steps.count_soon(counts)

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
            notify.send(self._connection, "jobs")


def _parts(sight: Sight, claimed: Sequence[Job], token: str) -> list[Document]:
    """Guarded updates that make these jobs their worker's, those that become alike in one."""
    found = {document["_id"]: document for document in sight.ready}
    alike: dict[tuple[str | None, bool, int | None, int | None], list[str]] = {}
    for job in claimed:
        document = found[job.id]
        queued_at = job.queued_at if job.id in sight.due else None
        kind = (document.get("touch"), "progress" in document, job.started_at, queued_at)
        alike.setdefault(kind, []).append(job.id)
    common: Document = {
        "state": "running",
        "holder": claimed[0].holder,
        "lease_until": claimed[0].lease_until,
        "touch": token,
    }
    parts = []
    for (touch, had_progress, started_at, queued_at), ids in alike.items():
        guard = {"_id": {"$in": ids}, "state": "queued" if queued_at is None else "scheduled", "touch": touch}
        fields = {**common, "started_at": started_at, **({} if queued_at is None else {"queued_at": queued_at})}
        forgotten: Document = {"$unset": {"progress": ""}} if had_progress else {}
        parts.append(part_of_many(guard, {"$set": fields, "$inc": {"lease_no": 1}, **forgotten}))
    return parts


def _is_readable(document: Document) -> bool:
    try:
        readable_job(document)
    except msgspec.ValidationError:
        return False
    return True


def _is_due(queue: str, now: int) -> Document:
    return {"state": "scheduled", "queue": queue, "run_at": {"$lte": now}}


def open_queues(queues: Sequence[str], paused: frozenset[str]) -> list[str]:
    return [queue for queue in dict.fromkeys(queues) if queue not in paused]
