"""Settles and claims jobs: due jobs become ready, and the best ready ones go to a worker.

Higher priority first, then older first. The best jobs are found by an index and claimed in one write with a fresh
token. They must still be queued, and have the token of their last write: a job that was cancelled and retried meanwhile
has another past than the one that was read. Only if another worker was faster, a second read finds which were claimed.
The server says what time it was when they were found, so that no lease is shortened by what the verb did before.

Workers that claim at once would all find the same jobs, and each would get a few of them. A worker that lost jobs to
others skips a random number of batches in its next reads, as if the others had locked those jobs. It reads from the
start again if there are fewer jobs than that, and assumes one rival less after each claim that it won whole.
"""

from __future__ import annotations

import random
import secrets
from typing import TYPE_CHECKING, NamedTuple

from pymongo import UpdateMany

from rota.failpoints import reach
from rota.model.jobs.job import State
from rota.model.jobs.settle import claim, open_queues, promote
from rota.store.contract import MOST_PROMOTED, Exchanged
from rota.store.mongo import notify
from rota.store.mongo.changing import held_by
from rota.store.mongo.codec import given, jobs_of, seq_of
from rota.store.mongo.control import NOW, paused_in
from rota.store.mongo.lookahead import LookaheadDecider, is_undecided
from rota.store.mongo.schema import CONTROL
from rota.store.shared.batching import grouped
from rota.store.shared.changing import Counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.store.contract import Exchange, Refusal
    from rota.store.mongo.changing import Changer
    from rota.store.mongo.database import Document
    from rota.store.mongo.steps import Step, Steps
    from rota.store.mongo.upkeep import Upkeep

MOST_ROUNDS = 10  # if other workers are faster; the next call goes on
MOST_RIVALS = 32  # workers that are assumed to claim at once, at most
MOST_DUE = 8  # scheduled jobs that one read shows: so few are claimed without being made ready first


class QueueSnapshot(NamedTuple):
    """The jobs that wait in some queues, and when they were read."""

    now: int
    ready: list[Document]
    soon: list[Document]  # the first scheduled jobs: when they are due, and the whole job if that is claimed now
    control: Document
    due: frozenset[str] = frozenset()  # those of the ready jobs that are still stored as scheduled

    @property
    def next_due_at(self) -> int | None:
        return int(self.soon[0]["run_at"]) if self.soon else None

    @property
    def claimable(self) -> list[Document]:
        """Scheduled jobs that are due, or so soon that they are claimed already."""
        return [document["job"] for document in self.soon if document.get("job")]

    def with_due(self, want: int) -> QueueSnapshot | None:
        """The same with all due jobs among the ready ones. None if those may not be all, or are more than the worker
        wants, or if one of them needs a closer look."""
        due = self.claimable
        if not due or len(due) == MOST_DUE or len(due) + len(self.ready) > want:
            return None
        if any(map(is_undecided, due)) or not all(job.state.is_waiting for job in jobs_of([*self.ready, *due])):
            return None
        ready = sorted([*self.ready, *due], key=lambda job: (-job["priority"], seq_of(job["seq"])))
        return self._replace(ready=ready, soon=self.soon[len(due) :], due=frozenset(job["_id"] for job in due))


class Exchanger:
    """Settles and claims jobs of one namespace."""

    def __init__(self, steps: Steps, changer: Changer, upkeep: Upkeep) -> None:
        self._steps = steps
        self._changer = changer
        self._upkeep = upkeep
        self._paused: frozenset[str] = frozenset()  # queues, as of the last read
        self._rivals = 1  # workers that claim at once, this one among them, as far as its last claims show

    def exchange(self, ask: Exchange, now: int | None) -> Exchanged:
        with self._steps.connection.call():
            if ask.want <= 0:
                return self._settle_only(ask, now)
            seen = None if ask.settled else self._look_first(ask, now)
            if seen is not None and not seen.ready and not seen.claimable:
                return Exchanged(now=seen.now, next_due_at=seen.next_due_at)
            with self._steps.control.work(now) as turn:
                refused = self._settle(ask, turn.now)
                queues = open_queues(ask.queues, turn.paused)
                if seen is None or paused_in(seen.control) != turn.paused:
                    seen = self._look(ask, queues, now, ask.want)
                claimed, last = self._claim(ask, queues, now, seen)
            reach("exchange.after_commit")
            claimed_at = ((job.lease_until or 0) - ask.lease_for for job in claimed)
            at = max([last.now, *claimed_at])
            return Exchanged(now=at, refused=refused, claimed=claimed, next_due_at=last.next_due_at)

    def _settle_only(self, ask: Exchange, now: int | None) -> Exchanged:
        turn = self._steps.control.turn(now)
        refused = self._settle(ask, turn.now)
        seen = self._look(ask, open_queues(ask.queues, turn.paused), now, 0)
        return Exchanged(now=seen.now, refused=refused, next_due_at=seen.next_due_at)

    def _settle(self, ask: Exchange, now: int) -> list[Refusal]:
        return self._changer.decide("exchange", ask.settled, now, held_by(ask.holder))

    # Reading.

    def _look_first(self, ask: Exchange, now: int | None) -> QueueSnapshot:
        """What there is to claim: most often nothing, and a read needs no write before it. It skips the queues that
        were paused at the last read, and is repeated if others are paused now."""
        while True:
            seen = self._look(ask, open_queues(ask.queues, self._paused), now, ask.want)
            self._steps.control.refuse_if_sealed(seen.control)
            known, self._paused = self._paused, paused_in(seen.control)
            if known == self._paused:
                return seen

    def _look(self, ask: Exchange, queues: Sequence[str], now: int | None, want: int) -> QueueSnapshot:
        """The best ready jobs of these queues that rivals are probably not claiming, the first scheduled ones, and the
        control document with the server's clock."""
        skipped = random.randrange(self._rivals) * want  # noqa: S311 - no secret
        seen = self._read(ask, queues, now, want, skipped)
        return seen if not skipped or len(seen.ready) == want else self._read(ask, queues, now, want, 0)

    def _read(self, ask: Exchange, queues: Sequence[str], now: int | None, want: int, skipped: int) -> QueueSnapshot:
        """One read, in one merged order of the queues."""
        db = self._steps.connection.db
        these = {"$in": list(queues)} if len(queues) != 1 else queues[0]
        is_wanted = {"$lte": ["$run_at", {"$add": [NOW if now is None else now, ask.ahead]}]}
        soon: list[Document] = [
            {"$match": {"state": "scheduled", "queue": these}},
            {"$sort": {"run_at": 1}},
            {"$limit": MOST_DUE if want > 0 else 1},
            {"$project": {"run_at": 1, "is_soon": {"$literal": True}, "job": {"$cond": [is_wanted, "$$ROOT", None]}}},
        ]
        control: list[Document] = [{"$match": CONTROL}, {"$project": {"clock": NOW, "paused": 1, "seal": 1}}]
        ready: list[Document] = [
            {"$match": {"state": "queued", "queue": these}},
            {"$sort": {"priority": -1, "seq": 1}},
            *([{"$skip": skipped}] if skipped else []),
            {"$limit": want},
            {"$unionWith": {"coll": db.jobs.raw.name, "pipeline": soon}},
        ]
        pipeline = [
            *(ready if want > 0 else soon),
            {"$unionWith": {"coll": db.meta.raw.name, "pipeline": control}},
        ]
        found = list(db.jobs.aggregate(pipeline, batchSize=want + MOST_DUE + 2))  # one more than it can give
        last = found.pop() if found and "clock" in found[-1] else {"clock": self._steps.control.now(None)}
        scheduled = [document for document in found[-MOST_DUE:] if "is_soon" in document]
        return QueueSnapshot(
            now=int(last["clock"]) if now is None else now,
            ready=found[: len(found) - len(scheduled)],
            soon=scheduled,
            control=last,
        )

    # Claiming.

    def _claim(
        self, ask: Exchange, queues: Sequence[str], now: int | None, seen: QueueSnapshot
    ) -> tuple[list[Job], QueueSnapshot]:
        """The jobs that this worker now has, and what was read last."""
        seen = seen.with_due(ask.want) or seen
        if seen.claimable:
            at = seen.now
            self._steps.run("exchange", lambda step: self._promote(step, queues, at, ask.ahead), is_atomic=False)
            seen = self._look(ask, queues, now, ask.want)
        claimed: list[Job] = []
        for _ in range(MOST_ROUNDS):
            claimed += self._write_claim(ask, seen, now)
            room = ask.want - len(claimed)
            if room <= 0 or len(seen.ready) < ask.want:
                break
            seen = self._look(ask, queues, now, room)
        return claimed, seen

    def _write_claim(self, ask: Exchange, seen: QueueSnapshot, injected: int | None) -> list[Job]:
        """Those of the ready jobs that are this worker's after one guarded write."""
        jobs = self._upkeep.readable(seen.ready, ask.holder, seen.now)
        if not jobs:
            return []
        now = self._not_before_creation(jobs, seen.now) if injected is None else injected
        token = secrets.token_hex(8)
        queued = [promote(job, seen.now) if job.id in seen.due else job for job in jobs]
        claimed = [claim(job, ask.holder, now, now + ask.lease_for) for job in queued]
        updates = _updates(seen, claimed, token)
        collection = self._steps.connection.db.jobs
        reach("exchange.before_commit")
        if collection.bulk_write(updates).matched_count != len(claimed):
            mine = collection.written([job.id for job in claimed], token)
            claimed = [job for job in claimed if job.id in mine]
        self._rivals = _rivals_after(self._rivals, len(jobs), len(claimed))
        due = [job for job in claimed if job.id in seen.due]
        if due:
            counts = Counts()
            counts.move_all((job.queue, State.SCHEDULED, State.RUNNING) for job in due)
            self._steps.count(counts)
        return claimed

    def _not_before_creation(self, jobs: list[Job], now: int) -> int:
        """The time of the claim. If a job was created after the read began, the clock is read again."""
        return now if all(job.created_at <= now for job in jobs) else self._steps.control.now(None)

    def _promote(self, step: Step, queues: Sequence[str], now: int, ahead: int) -> None:
        """Make jobs of these queues ready that are due, or will be within `ahead`; a bounded number of them. Jobs that
        a schedule created in advance are decided first: a skipped job is not made ready."""
        query = {"state": "scheduled", "queue": {"$in": list(queues)}, "run_at": {"$lte": now + ahead}}
        fields = {"queue": 1, "run_at": 1, "ahead": 1, "lease_no": 1, "schedule_id": 1}
        due = list(step.jobs.find(query, fields, hint="due").sort("run_at", 1).limit(2 * MOST_PROMOTED))
        undecided = [document for document in due if is_undecided(document) and document["run_at"] <= now]
        if undecided:
            LookaheadDecider(step, now).decide(undecided[:MOST_PROMOTED])
            if step.counts.queues().difference(queues):  # workers of other queues may have jobs to run now
                notify.send(self._steps.connection, "jobs")
        decided = [document for document in due if not is_undecided(document)][:MOST_PROMOTED]
        ready = [{"$set": {"state": "queued", "queued_at": {"$max": [now, "$run_at"]}}}]
        for queue, some in grouped(decided, lambda document: str(document["queue"])).items():
            ids = [document["_id"] for document in some]
            promoted = step.jobs.update_many({"_id": {"$in": ids}, **query}, ready, hint="_id_").modified_count
            step.counts.move(queue, State.SCHEDULED, State.QUEUED, promoted)


def _rivals_after(rivals: int, wanted: int, won: int) -> int:
    """How many workers seem to claim at once, after a claim."""
    if won == wanted:
        return max(rivals - 1, 1)
    return min(max(2 * rivals, 2), MOST_RIVALS)


def _updates(seen: QueueSnapshot, claimed: Sequence[Job], token: str) -> list[UpdateMany]:
    """Guarded updates that claim these jobs: one for all with the same guard and the same fields."""
    found = {document["_id"]: document for document in seen.ready}
    groups: dict[tuple[str | None, int | None, int | None], list[str]] = {}
    for job in claimed:
        queued_at = job.queued_at if job.id in seen.due else None
        groups.setdefault((found[job.id].get("token"), job.started_at, queued_at), []).append(job.id)
    lease = {"state": "running", "holder": claimed[0].holder, "lease_until": claimed[0].lease_until, "token": token}
    rest = {"$inc": {"lease_no": 1}, "$unset": {"progress": ""}}
    updates = []
    for (last_token, started_at, queued_at), ids in groups.items():
        guard = {"_id": {"$in": ids}, "state": "queued" if queued_at is None else "scheduled", "token": last_token}
        fields = lease | given(started_at=started_at, queued_at=queued_at)
        updates.append(UpdateMany(guard, {"$set": fields, **rest}, hint="_id_"))
    return updates
