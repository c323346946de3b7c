"""Judging: what becomes of jobs that were made ahead, once they are due.

Each is one guarded write to the job's own document, on every server: it is ready, held, or a tombstone that owes the
ledger its line. That write decides, once, however many claims meet there: the job must still be scheduled, and still
be unjudged. Whoever is ready takes its schedule's slot and its own key in the same write, and both are unique: where
another was faster, the job is still scheduled, and is judged anew. What a process that dies can leave, and who goes on
from there:

- a live job that was asked to stop, with the next one not held yet: that one is judged anew by the next claim. (The
  other way round, the live job would never be asked.) What is met is read before the job itself, so that nobody is
  asked to stop for a job that another claim has judged meanwhile;
- a held job, with what it waits for over by then, or skipped: upkeep releases it, see `Waiters.heal`;
- a tombstone whose line is not in the ledger: lists of occurrences show it all the same, and upkeep records it. The
  job's logs go with that.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
from pymongo import UpdateOne
from pymongo.errors import BulkWriteError

from rota.failpoints import reach
from rota.model.lookahead import is_ahead, judge
from rota.model.occurrence import of_skip
from rota.model.state import State
from rota.store.mongo.documents import changed, lines_of, readable_job, row_of_line, schedule_of
from rota.store.mongo.jobs import is_duplicate
from rota.store.mongo.removing import OWING, bury, made_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rota.model.job import Job
    from rota.model.lookahead import Judgement
    from rota.model.schedule import Schedule
    from rota.model.slots import Skip
    from rota.store.mongo.jobs import Jobs
    from rota.store.mongo.ledger import Ledger
    from rota.store.mongo.logs import Logs
    from rota.store.mongo.outbox import Postman
    from rota.store.mongo.schedules import Schedules
    from rota.store.mongo.space import Document, Space
    from rota.store.mongo.steps import Step
    from rota.store.mongo.waiters import Waiters

Became = TypeVar("Became")
ABOUT: Document = {"ahead": 1, "schedule_id": 1, "lease_no": 1}  # what tells a job that was made ahead
MOST_WAVES = 100  # where each replaces the one before it, a wave judges one; what is left is left to the next claim


class Verdict(NamedTuple):
    """What a due job becomes."""

    job: Job
    became: Judgement

    @property
    def is_last(self) -> bool:
        """Whether what the schedule's next job meets is another than what this one met."""
        after = self.became.job
        return after is not None and (bool(after.slot or after.key) or after.state is State.HELD)


class Sight(NamedTuple):
    """What due jobs meet."""

    schedules: dict[str, Schedule]
    live: dict[str, str]  # the jobs in the schedules' slots
    held: dict[str, str]
    keys: dict[str, str]  # the jobs that hold the keys that are asked for


class Judges:
    """Judges one namespace's jobs that were made ahead."""

    def __init__(
        self, jobs: Jobs, schedules: Schedules, postman: Postman, ledger: Ledger, logs: Logs, waiters: Waiters
    ) -> None:
        self._jobs = jobs
        self._schedules = schedules
        self._postman = postman
        self._ledger = ledger
        self._logs = logs
        self._waiters = waiters

    def judge(self, step: Step, due: Sequence[Document], now: int) -> None:
        """Decide about due jobs, each schedule's in their order."""
        for _ in range(MOST_WAVES):
            verdicts = self._verdicts(step, due, now)
            if not verdicts:
                return
            reach("exchange.before_commit")
            self._write(step, verdicts, now)
            self._skip(step, verdicts, now)

    def _verdicts(self, step: Step, due: Sequence[Document], now: int) -> list[Verdict]:
        """Of each schedule, the jobs up to the first that changes what the next one meets."""
        keys = {document["ahead"] for document in due if document.get("ahead")}
        sight = self._look(step, {str(document.get("schedule_id")) for document in due}, keys, now)
        verdicts: dict[str, list[Verdict]] = {}
        for job in self._still_ahead(step, [document["_id"] for document in due], now):
            name = job.schedule_id or ""
            mine = verdicts.setdefault(name, [])
            if mine and mine[-1].is_last:
                continue
            live, held, holder = sight.live.get(name), sight.held.get(name), sight.keys.get(job.ahead or "")
            mine.append(Verdict(job, judge(job, sight.schedules.get(name), live, held, holder, now)))
        return [verdict for mine in verdicts.values() for verdict in mine]

    def _look(self, step: Step, names: set[str], keys: set[str], now: int) -> Sight:
        found = self._schedules.current(step, list(names))
        schedules = {name: schedule_of(document) for name, document in found.items()}
        live = self._jobs.live(step, names)
        return Sight(schedules, live, self._jobs.last_held(step, list(live)), self._jobs.holders(step, keys, now))

    def _still_ahead(self, step: Step, ids: Sequence[str], now: int) -> list[Job]:
        """Those that are yet to be judged. One that cannot be read becomes ready, as others do, and is parked then."""
        found = step.space.jobs.find({"_id": {"$in": list(ids)}, "state": "scheduled"}, hint="_id_")
        jobs: list[Job] = []
        for document in found:
            try:
                jobs.append(readable_job(document))
            except msgspec.ValidationError:
                ready = {"$set": {"state": "queued", "queued_at": now}, "$unset": {"ahead": ""}}
                step.space.jobs.update_one({"_id": document["_id"], "state": "scheduled"}, ready)
                step.counts.move(str(document.get("queue")), State.SCHEDULED, State.QUEUED)
        return sorted(filter(is_ahead, jobs), key=lambda job: (job.run_at, job.seq))

    # What was decided.

    def _write(self, step: Step, verdicts: Sequence[Verdict], now: int) -> None:
        """Jobs that are ready or held."""
        for verdict in verdicts:
            if verdict.became.cancels is not None:
                self._postman.stop(step, verdict.became.cancels, now, is_noted=True)
        token = secrets.token_hex(8)
        for job, after in self._taken(
            step, [(job, after, _moved(after, token)) for job, after in _kept(verdicts)], token
        ):
            step.counts.move(job.queue, job.state, after.state)
            if after.state is State.HELD:  # what it waits for may have ended since that was decided
                self._waiters.look_at(step, after, now)

    def _skip(self, step: Step, verdicts: Sequence[Verdict], now: int) -> None:
        """Jobs that go: their lines are owed until they are in the ledger, and those who waited for them go on."""
        token = secrets.token_hex(8)
        writes = [(job, _row_of(job, skip), bury(token, owed=_row_of(job, skip))) for job, skip in _skipped(verdicts)]
        gone = self._taken(step, writes, token)
        for job, _ in gone:
            step.counts.remove(job.queue, job.state)
        if gone:
            self._waiters.let_go(step, [job.id for job, _ in gone], now)
        self._record(step, [_tombstone(job, row) for job, row in gone])

    def _taken(
        self, step: Step, writes: Sequence[tuple[Job, Became, Document | list[Document]]], token: str
    ) -> list[tuple[Job, Became]]:
        """Write what is decided about each job; those that nobody else decided about first."""
        if not writes:
            return []
        operations = [UpdateOne(_unjudged(job), update) for job, _, update in writes]
        pairs = [(job, became) for job, became, _ in writes]
        try:
            if step.space.jobs.bulk_write(operations, ordered=False).matched_count == len(writes):
                return pairs
        except BulkWriteError as err:  # the slot or the key was taken since that was looked at
            if not is_duplicate(err):
                raise
        ids = [job.id for job, _ in pairs]
        found = step.space.jobs.find({"_id": {"$in": ids}, "touch": token}, {"_id": 1}, hint="_id_")
        mine = {document["_id"] for document in found}
        return [(job, became) for job, became in pairs if job.id in mine]

    # What is owed.

    def finish(self, step: Step, owing: Sequence[Document]) -> None:
        """Record the lines that tombstones of others owe."""
        self._record(step, owing)

    def owing(self, space: Space, limit: int) -> list[Document]:
        return list(space.jobs.find({"gone_at": OWING}, hint="gone").limit(limit))

    def _record(self, step: Step, owing: Sequence[Document]) -> None:
        """Lines of schedules that still exist, and no logs; then the tombstones owe nothing more, and go in time."""
        if not owing:
            return
        since = made_at(step, {document["schedule_id"] for document in owing})
        known = [document for document in owing if _is_owed_to(document, since.get(document["schedule_id"]))]
        lines = [line for document in known for line in lines_of(document["schedule_id"], [document["owed"]])]
        self._ledger.record(step, lines, since)
        ids = [document["_id"] for document in owing]
        self._logs.forget(step, ids)
        step.space.jobs.update_many({"_id": {"$in": ids}, "owed": {"$exists": True}}, bury(), hint="_id_")


def _tombstone(job: Job, row: list[Any]) -> Document:
    """What is left of a job that went, as it would be read."""
    return {"_id": job.id, "schedule_id": job.schedule_id, "created_at": job.created_at, "owed": row}


def _is_owed_to(document: Document, made_at: int | None) -> bool:
    """Whether a schedule that was made then (None: it is gone) is the one that a tombstone owes a line."""
    return made_at is not None and int(document["created_at"]) >= made_at


def is_unjudged(document: Document) -> bool:
    """Whether what is known of a scheduled job says that it was made ahead, and not judged yet."""
    return document.get("ahead") is not None and not document.get("lease_no")


def _unjudged(job: Job) -> Document:
    """Whether the job still is what was judged."""
    return {
        "_id": job.id,
        "state": "scheduled",
        "ahead": job.ahead,
        "lease_no": 0,
        "run_at": job.run_at,
        "past": job.past or None,
    }


def _kept(verdicts: Sequence[Verdict]) -> Iterator[tuple[Job, Job]]:
    return ((verdict.job, verdict.became.job) for verdict in verdicts if verdict.became.job is not None)


def _skipped(verdicts: Sequence[Verdict]) -> Iterator[tuple[Job, Skip]]:
    return ((verdict.job, verdict.became.skip) for verdict in verdicts if verdict.became.skip is not None)


def _moved(after: Job, token: str) -> Document:
    fields = {"state": after.state.value, "queued_at": after.queued_at, "waits_for": after.waits_for}
    taken = {"key": after.key, "slot": after.slot, "ahead": after.ahead}
    return changed({**fields, **taken, "past": after.past or None, "touch": token})


def _row_of(job: Job, skip: Skip) -> list[Any]:
    return row_of_line(of_skip(job.schedule_id or "", skip))
