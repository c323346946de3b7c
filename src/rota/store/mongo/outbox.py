"""The outbox: what follows from a firing or an edit, kept in the schedule's own document until it is delivered.

A server without transactions writes one document at a time. So a firing or an edit is one guarded write to its
schedule: the schedule advances, and in the same write stores the jobs to make, the ledger entries and the audit record
to write, the jobs to stop and the jobs to revoke. That write decides, once, however many schedulers race. The delivery
follows, and every part of it is harmless to repeat:

- jobs have their ids, and occurrences are unique, so a second delivery collides with the first; a removed job's
  tombstone stays for a day (see `changing`);
- a job whose slot was taken since the decision is held. A job whose key was taken is not made: its occurrence becomes a
  ledger entry, and the write that clears the outbox takes the job off the schedule's runs. A later delivery finds that
  entry and does not make the job, even if the key is free by then;
- an entry that the ledger covers already is left out;
- an audit record has its id;
- revoking touches only jobs with a position up to the edit's own, so a late delivery leaves later jobs alone. The jobs
  that waited for a deleted job are released after it; if the process dies before, upkeep releases them (see
  `Upkeep.finish`).

A process that dies in between leaves a schedule with an outbox, and some of its jobs not made or not yet revoked.
Nothing is lost: the outbox is as durable as the schedule. A schedule with an outbox counts as due at once, and every
process that reads it (a scheduler's turn, a list, an edit, a firing, the search for expired leases) delivers it first.
So nobody sees a schedule that has advanced without what follows from it.

One race is left: two processes deliver the same outbox, and a key becomes free between their reads of it. Then one of
them may make the job of an occurrence that the other records as skipped. The job runs once; the process that clears the
outbox first decides whether it counts as a run.

If the server has transactions, the advance and the delivery are one, and no outbox is ever stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from pymongo import DeleteOne, UpdateMany

from rota.model.audit_record import AuditRecord, without_runs
from rota.model.jobs.job import Job, State, closed_moves, pack_moves
from rota.model.jobs.settle import cancel
from rota.model.schedules.edit import is_deleted
from rota.model.schedules.firing import as_made, not_unique
from rota.model.schedules.occurrence import Occurrence, of_skip
from rota.model.schedules.schedule import LastRun
from rota.store.mongo.adding import insert, is_of, key_holders, live_in_slots, made_occurrences
from rota.store.mongo.changing import (
    SAME,
    apply_changes,
    free_occurrences,
    release_held,
    release_waiting,
    remove_unmade,
    request_cancels,
)
from rota.store.mongo.codec import changed, jobs_of, position_of, schedule_of
from rota.store.mongo.ledger import entries_ending_at, erase_entries, record_entries, refused_by_key
from rota.store.mongo.listing import find_job
from rota.store.mongo.records import add_audit_records
from rota.store.shared.batching import grouped
from rota.store.shared.placing import REPLACED

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from rota.store.mongo.database import Document
    from rota.store.mongo.steps import Step

COUNTED = ("enqueued_at", "job_id", "by_hand", "fired_for")  # the fields of `last` that are written when jobs are made
MOST_ROUNDS = 10  # for jobs that change while they are being revoked
MOST_DELIVERIES = 3  # of outboxes that other processes left, before the documents are taken as they are


class Outbox(Struct, kw_only=True):
    """What follows from one firing or edit of one schedule."""

    schedule_id: str
    created_at: int
    token: str  # of the write that it was part of
    now: int
    jobs: list[Job] = []
    reopens: list[int] = []  # ledger entries to remove, by their last time
    entries: list[Occurrence] = []
    audits: list[AuditRecord] = []
    stops: list[str] = []  # live jobs that the next occurrence replaces
    revoke: str | None = None  # why waiting jobs are cancelled …
    delete_after: int | None = None  # … or deleted, if their time is later than this …
    last_seq: int = 0  # … up to this position
    is_removal: bool = False
    due_at: int | None = None  # when the schedule is due once this is delivered
    before: LastRun | None = None  # the schedule's runs without these jobs, if some may be refused

    @property
    def is_empty(self) -> bool:
        parts = self.jobs or self.reopens or self.entries or self.audits or self.stops or self.is_removal
        return not parts and self.revoke is None


_decoder = msgspec.msgpack.Decoder(Outbox)


def outbox_of(document: Document) -> Outbox | None:
    """What a schedule's document still has to deliver; None if there is nothing, or it was changed by hand."""
    kept = document.get("outbox")
    try:
        return None if kept is None else _decoder.decode(kept)
    except (msgspec.MsgspecError, TypeError):
        return None


def current_schedules(step: Step, ids: Sequence[str]) -> dict[str, Document]:
    """The schedules' documents as they are, after delivery of their outboxes."""
    for _ in range(MOST_DELIVERIES):
        found = step.schedules.by_id(ids)
        waiting = [outbox for document in found.values() if (outbox := outbox_of(document)) is not None]
        if not waiting:
            break
        deliver(step, waiting, is_again=True)
    return found


def deliver(step: Step, outboxes: Sequence[Outbox], *, is_edit: bool = False, is_again: bool = False) -> list[str]:
    """Do what they say, and remove stored ones from their schedules; the jobs that were refused by their key.

    `is_edit`: it is not known yet whether the occurrences have jobs. `is_again`: another process may have delivered
    a part."""
    outboxes = [outbox for outbox in outboxes if not outbox.is_empty]
    for outbox in outboxes:
        if outbox.revoke is not None:
            _revoke(step, outbox)
        if outbox.is_removal:
            step.ledger.delete_many({"_id": outbox.schedule_id})
    since = {outbox.schedule_id: outbox.created_at for outbox in outboxes}
    jobs = [job for outbox in outboxes for job in outbox.jobs]
    wanted = jobs
    if is_edit and step.is_atomic and jobs:
        wanted = _not_made(step, jobs)
    elif is_again:
        wanted = _not_skipped(step, jobs, since)
    refused, unsure = _make(step, wanted)
    unsure |= {job.id for job in jobs}.difference(job.id for job in wanted)
    missing = unsure - step.jobs.by_id(unsure, {"_id": 1}).keys()  # no delivery has made them
    _record(step, outboxes, refused, missing)
    for outbox in outboxes:
        for job_id in outbox.stops:
            stop_replaced(step, job_id, outbox.now, tells_schedule=False)
    whole = [outbox for outbox in outboxes if not _correct(step, outbox, missing)]
    if not step.is_atomic:
        _clear(step, whole)
    return [job.id for job, _ in refused]


def _record(step: Step, outboxes: Sequence[Outbox], refused: Sequence[tuple[Job, str]], missing: set[str]) -> None:
    for outbox in outboxes:
        _reopen(step, outbox)
    entries = [entry for outbox in outboxes for entry in outbox.entries]
    entries += [of_skip(job.schedule_id or "", not_unique(job, holder)) for job, holder in refused if job.fire_at]
    record_entries(step, entries, {outbox.schedule_id: outbox.created_at for outbox in outboxes})
    audits = [without_runs(audit, missing) for outbox in outboxes for audit in outbox.audits]
    add_audit_records(step, [audit for audit in audits if audit is not None])


def _reopen(step: Step, outbox: Outbox) -> None:
    """Remove skipped times from the ledger. A job that was created in advance for one of them, and skipped when it
    was due, has left a tombstone: that is freed first, so that a second delivery still finds the entries."""
    if not outbox.reopens:
        return
    entries = entries_ending_at(step, outbox.schedule_id, outbox.reopens, outbox.created_at)
    spans = [(entry.after_at, entry.through_at) for entry in entries]  # a tombstone may still owe a single one
    free_occurrences(step, outbox.schedule_id, [*spans, *((end - 1, end) for end in outbox.reopens)])
    erase_entries(step, outbox.schedule_id, outbox.reopens, outbox.created_at)


def _revoke(step: Step, outbox: Outbox) -> None:
    """Cancel the jobs that the schedule's trigger made and nobody has started; runs by hand stay. No cancelled job
    counts as the last run. Jobs that were created for a future time are deleted without a record."""
    gone: list[str] = []
    for _ in range(MOST_ROUNDS):
        waiting = _waiting_jobs(step, outbox.schedule_id, outbox.last_seq)
        deleted = [job for job in waiting if is_deleted(job, outbox.delete_after)]
        rest = [job for job in waiting if not is_deleted(job, outbox.delete_after)]
        are_deleted = remove_unmade(step, deleted)
        gone += [job.id for job in deleted]
        changes = [cancel(job, outbox.now, outbox.revoke or "") for job in rest]
        if not apply_changes(step, changes, outbox.now, SAME, tells_schedules=False) and are_deleted:
            break
    release_waiting(step, gone, outbox.now)


def _not_skipped(step: Step, jobs: list[Job], since: Mapping[str, int]) -> list[Job]:
    """The jobs, except those that the first delivery has recorded as skipped: their key was held then."""
    skipped = refused_by_key(step, [job for job in jobs if job.key and job.fire_at], since)
    return [job for job in jobs if job.id not in skipped]


def _make(step: Step, jobs: list[Job]) -> tuple[list[tuple[Job, str]], set[str]]:
    """Insert the jobs; those whose key another job holds, with that job, and all that collided with something."""
    collided = insert(step, jobs)
    taken = {error["op"]["_id"] for error in collided if is_of(error, "slot", "key")}
    holders = [(job, _make_later(step, job)) for job in jobs if job.id in taken]
    for job in jobs:
        if job.state is State.HELD:  # its predecessor may have ended since the decision
            release_held(step, [job.id], job.created_at)
    refused = [(job, holder) for job, holder in holders if holder is not None]
    return refused, {error["op"]["_id"] for error in collided}


def stop_replaced(step: Step, job_id: str, now: int, *, tells_schedule: bool) -> None:
    """Ask a replaced job to stop, or cancel it if nobody has started it. `tells_schedule`: whether its schedule
    records that; one that fires has recorded the next run already."""
    if request_cancels(step, [job_id], REPLACED):
        return
    job = find_job(step, job_id)
    if job is not None and job.state.is_waiting:
        apply_changes(step, [cancel(job, now, REPLACED)], now, SAME, tells_schedules=tells_schedule)


def _not_made(step: Step, jobs: list[Job]) -> list[Job]:
    """Those that do not exist yet, by occurrence, slot or key. (In a transaction a collision would end it.)"""
    times = [(job.schedule_id, job.fire_at) for job in jobs if job.schedule_id and job.fire_at]
    made = made_occurrences(step, [name for name, _ in times], [at for _, at in times])
    live = live_in_slots(step, [job.slot for job in jobs if job.slot])
    now = max(job.created_at for job in jobs)
    holders = key_holders(step, [job.key for job in jobs if job.key], now)
    free = [job for job in jobs if job.slot not in live and job.key not in holders]
    return [job for job in free if (job.schedule_id, job.fire_at) not in made]


def _waiting_jobs(step: Step, schedule_id: str, last_seq: int) -> list[Job]:
    """The jobs that a schedule's trigger made, up to a position, and nobody has started."""
    states = [state.value for state in (State.SCHEDULED, State.QUEUED, State.HELD)]
    made = {"schedule_id": schedule_id, "seq": {"$lte": position_of(last_seq)}, "fire_at": {"$exists": True}}
    documents = step.jobs.find({**made, "state": {"$in": states}}, hint="made")
    return [job for job in jobs_of(documents) if job.state.is_waiting]  # an unreadable one fails when it is claimed


def _make_later(step: Step, job: Job) -> str | None:
    """Make a job whose slot or key was taken since the decision. If a released job has taken its slot, the occurrence
    is held behind that. If its key is held, or a run by hand finds its slot taken, it is not made: gives the holder."""
    while True:
        live = live_in_slots(step, [job.slot] if job.slot else []).get(job.slot or "")
        holder = key_holders(step, [job.key] if job.key else [], job.created_at).get(job.key or "")
        if holder is not None or (live is not None and job.fire_at is None):
            return holder or live
        collided = insert(step, [job if live is None else _held_behind(job, live)])
        if not any(is_of(error, "slot", "key") for error in collided):
            return None


def _held_behind(job: Job, holder: str) -> Job:
    """The job as the decision would have made it, had it seen the holder of the slot: held from its first move on."""
    first = closed_moves(job)[0]
    reason = f"{first.reason}; waits for {holder}"
    move = first._replace(state=State.HELD, reason=reason, data={"waits_for": holder})
    return msgspec.structs.replace(job, state=State.HELD, waits_for=holder, slot=None, past=pack_moves([move]))


def _correct(step: Step, outbox: Outbox, missing: Container[str]) -> bool:
    """Take the jobs that were not made off the schedule's runs, in the write that clears the outbox; whether there are
    any. Workers may record at the same time which job ended last."""
    if outbox.before is None or not any(job.id in missing for job in outbox.jobs):
        return False
    made = [job.id for job in outbox.jobs if job.id not in missing]
    mine: Document = {"_id": outbox.schedule_id, "token": outbox.token}
    if not step.is_atomic:
        mine["outbox"] = {"$exists": True}
    while (document := step.schedules.find_one(mine)) is not None:
        counted = schedule_of(document)
        after = as_made(counted, outbox.before, outbox.jobs, made)
        fields = {f"last.{name}": getattr(after.last, name) for name in COUNTED}
        fields |= {"run_count": after.run_count, "next_at": after.next_at, "due_at": after.due_at, "outbox": None}
        seen = {**mine, "last.job_id": counted.last.job_id}
        if step.schedules.update_one(seen, changed(fields)).matched_count:
            break
    return True


def _clear(step: Step, outboxes: Sequence[Outbox]) -> None:
    """Remove delivered outboxes: one update for all schedules that are due at the same time next."""
    writes: list[Any] = [
        DeleteOne({"_id": outbox.schedule_id, "token": outbox.token, "is_removed": True})
        for outbox in outboxes
        if outbox.is_removal
    ]
    rest = [outbox for outbox in outboxes if not outbox.is_removal]
    for due_at, some in grouped(rest, lambda outbox: outbox.due_at).items():
        mine = {
            "_id": {"$in": [outbox.schedule_id for outbox in some]},
            "token": {"$in": list({outbox.token for outbox in some})},
            "outbox": {"$exists": True},  # another process may have cleared it and corrected the runs
        }
        writes.append(UpdateMany(mine, changed({"outbox": None, "due_at": due_at}), hint="_id_"))
    if writes:
        step.schedules.bulk_write(writes)
