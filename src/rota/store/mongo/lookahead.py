"""Decides what becomes of jobs that a schedule created before they are due, once they are due.

Each decision is one guarded write to the job's own document, on every server: the job becomes ready, held, or a
tombstone that still owes its ledger entry. That write decides, once, however many claims race: the job must still be
scheduled, and not decided on yet. A job that becomes ready takes its schedule's slot and its own key in the same
write, and both are unique: if another job was faster, this one is still scheduled and is decided on again. A process
that dies leaves:

- a live job that was asked to stop, and the next one not held yet: the next claim decides that one again. (In the other
  order, the live job would never be asked.) What a job meets is read before the job itself, so that no job is asked to
  stop for one that another claim has decided on meanwhile;
- a held job whose predecessor has ended by then, or was skipped: upkeep releases it, see `Upkeep.finish`;
- a tombstone whose entry is not in the ledger: lists of occurrences show the entry all the same, and upkeep records it.
  The job's logs are removed with that.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from pymongo import UpdateOne

from rota.failpoints import reach
from rota.model.jobs.job import State
from rota.model.jobs.settle import due_order
from rota.model.schedules.lookahead import is_ahead
from rota.model.schedules.occurrence import of_skip
from rota.store.mongo.adding import key_holders, last_held, live_in_slots
from rota.store.mongo.changing import release_if_free, release_waiting, tombstone
from rota.store.mongo.codec import changed, entries_of, readable_job, row_of, schedule_of
from rota.store.mongo.ledger import creation_times, record_entries
from rota.store.mongo.operations import forget_logs
from rota.store.mongo.outbox import current_schedules, stop_replaced
from rota.store.shared.placing import BatchSnapshot, place_due

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.model.schedules.slots import Skip
    from rota.store.mongo.database import Document
    from rota.store.mongo.steps import Step

Became = TypeVar("Became")
MOST_ROUNDS = 100  # if each job replaces the one before it, a round decides one; the next claim decides the rest


class Round(BatchSnapshot):
    """One round of decisions: what was read for them, and what they write.

    A schedule is closed once its next job would meet something else than was read: the next round decides about that
    one, after the writes of this one, which another process may have prevented.
    """

    def __init__(self, step: Step, due: Sequence[Document], now: int) -> None:
        names = list({str(document.get("schedule_id")) for document in due})
        found = current_schedules(step, names)
        self.schedules = {name: schedule_of(document) for name, document in found.items()}
        live = live_in_slots(step, names)
        held = last_held(step, list(live))
        wanted = {document["ahead"] for document in due if document.get("ahead")}
        super().__init__(live, held, key_holders(step, wanted, now))
        self.closed: set[str] = set()
        self.kept: list[tuple[Job, Job]] = []
        self.gone: list[Job] = []
        self.owed: dict[str, list[Any]] = {}  # the ledger entries of skipped jobs, by job
        self.stops: list[str] = []

    def put(self, before: Job, after: Job) -> None:
        self.kept.append((before, after))
        if after.slot or after.key or after.state is State.HELD:
            self.closed.add(before.schedule_id or "")

    def delete_unstarted(self, job: Job) -> None:
        self.gone.append(job)

    def record_skip(self, schedule_id: str, skip: Skip) -> None:
        self.owed[self.gone[-1].id] = row_of(of_skip(schedule_id, skip))

    def stop(self, job_id: str, reason: str) -> None:
        del reason  # that it is replaced, always
        self.stops.append(job_id)


class LookaheadDecider:
    """Decides on due jobs that were created before they were due, in one step."""

    def __init__(self, step: Step, now: int) -> None:
        self._step = step
        self._now = now

    def decide(self, due: Sequence[Document]) -> None:
        """Decide about due jobs, each schedule's in their order."""
        for _ in range(MOST_ROUNDS):
            decided = Round(self._step, due, self._now)
            for job in _still_ahead(self._step, [document["_id"] for document in due], self._now):
                if job.schedule_id not in decided.closed:
                    place_due(job, decided.schedules.get(job.schedule_id or ""), decided, self._now)
            if not decided.kept and not decided.gone:
                return
            reach("exchange.before_commit")
            self._write_kept(decided)
            self._write_skipped(decided)

    def _write_kept(self, decided: Round) -> None:
        """Write the jobs that become ready or held."""
        for job_id in decided.stops:
            stop_replaced(self._step, job_id, self._now, tells_schedule=True)
        token = secrets.token_hex(8)
        written = _written(self._step, [(job, after, _update_of(after, token)) for job, after in decided.kept], token)
        for job, after in written:
            self._step.counts.move(job.queue, job.state, after.state)
            if after.state is State.HELD:  # its predecessor may have ended since the decision
                release_if_free(self._step, after, self._now)

    def _write_skipped(self, decided: Round) -> None:
        """Replace skipped jobs by tombstones, release the jobs that waited for them, and write the ledger entries."""
        token = secrets.token_hex(8)
        rows = [(job, decided.owed.get(job.id)) for job in decided.gone]
        gone = _written(self._step, [(job, row, tombstone(token, owed=row)) for job, row in rows], token)
        self._step.counts.remove_all(job for job, _ in gone)
        release_waiting(self._step, [job.id for job, _ in gone], self._now)
        record_owed(self._step, [_tombstone(job, row) for job, row in gone if row is not None])
        forget_logs(self._step, [job.id for job, row in gone if row is None])


def record_owed(step: Step, tombstones: Sequence[Document]) -> None:
    """Write the entries of schedules that still exist, and remove the logs. The tombstones then expire."""
    if not tombstones:
        return
    since = creation_times(step, {document["schedule_id"] for document in tombstones})
    known = [document for document in tombstones if document["schedule_id"] in since]
    mine = [document for document in known if int(document["created_at"]) >= since[document["schedule_id"]]]
    entries = [entry for document in mine for entry in entries_of(document["schedule_id"], [document["owed"]])]
    record_entries(step, entries, since)
    ids = [document["_id"] for document in tombstones]
    forget_logs(step, ids)
    step.jobs.update_many({"_id": {"$in": ids}, "owed": {"$exists": True}}, tombstone(), hint="_id_")


def is_undecided(document: Document) -> bool:
    """Whether a scheduled job was created by a schedule in advance, and is not decided yet."""
    return document.get("ahead") is not None and not document.get("lease_no")


def _still_ahead(step: Step, ids: Sequence[str], now: int) -> list[Job]:
    """Those that are not decided yet. One that cannot be read becomes ready, and fails when it is claimed."""
    jobs: list[Job] = []
    for document in step.jobs.by_id(ids, state="scheduled").values():
        try:
            jobs.append(readable_job(document))
        except msgspec.ValidationError:
            ready = {"$set": {"state": "queued", "queued_at": now}, "$unset": {"ahead": ""}}
            step.jobs.update_one({"_id": document["_id"], "state": "scheduled"}, ready)
            step.counts.move(str(document.get("queue")), State.SCHEDULED, State.QUEUED)
    return sorted(filter(is_ahead, jobs), key=due_order)


def _written(step: Step, writes: Sequence[tuple[Job, Became, Any]], token: str) -> list[tuple[Job, Became]]:
    """Write what is decided about each job; the jobs that no other process has decided about first."""
    if not writes:
        return []
    updates = {job.id: UpdateOne(_as_decided_on(job), update) for job, _, update in writes}
    written = step.jobs.write_guarded(updates, token)
    return [(job, became) for job, became, _ in writes if job.id in written]


def _as_decided_on(job: Job) -> Document:
    """The job still is what was decided."""
    guard = {"state": "scheduled", "ahead": job.ahead, "lease_no": 0, "run_at": job.run_at, "past": job.past or None}
    return {"_id": job.id, **guard}


def _update_of(after: Job, token: str) -> Document:
    fields = {"state": after.state.value, "queued_at": after.queued_at, "waits_for": after.waits_for}
    taken = {"key": after.key, "slot": after.slot, "ahead": after.ahead}
    return changed({**fields, **taken, "past": after.past or None, "token": token})


def _tombstone(job: Job, row: list[Any]) -> Document:
    """What is left of a skipped job, as it would be read."""
    return {"_id": job.id, "schedule_id": job.schedule_id, "created_at": job.created_at, "owed": row}
