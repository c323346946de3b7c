"""Writes decided changes to jobs that still are what was decided on; releases the jobs that waited; removes jobs.

Changes that write the same are one guarded update of many jobs. Each carries a token: if fewer jobs match than
expected, a second read finds which changes were written and which were refused.

If the server has transactions, the end of a job uses one if others wait for the job or it is not kept; most jobs need
none. Elsewhere the end of a job and its effects are several writes. The job's own end is first and alone decides. Then
the jobs that waited for it are released (if the process dies before that, upkeep releases them, see `stuck_jobs`), its
schedule records the run (or records the next one), and a job that is not kept is removed (or kept until it is pruned).
"""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pymongo
from pymongo import UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError, PyMongoError

from rota.model.jobs.job import State
from rota.model.jobs.settle import apply, release, still_awaited
from rota.model.schedules.occurrence import is_record_of, of_job
from rota.store.contract import Refusal
from rota.store.mongo import notify
from rota.store.mongo.codec import changed, differences, document_of_last, jobs_of, last_of, update_of
from rota.store.mongo.faults import is_duplicate
from rota.store.mongo.ledger import creation_times, record_entries
from rota.store.mongo.listing import find_job, get_jobs
from rota.store.mongo.operations import forget_logs
from rota.store.shared.batching import grouped
from rota.store.shared.changing import check_changes, last_runs
from rota.store.shared.matching import is_held_by, is_same, may_change, may_rescue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change
    from rota.model.schedules.schedule import LastRun
    from rota.store.mongo.database import Database, Document
    from rota.store.mongo.steps import Step, Steps
    from rota.store.shared.changing import Checked

MOST_ROUNDS = 10  # if other processes change the jobs between a read and a write
SHORT_RESULT = 1_000  # bytes: an update of all jobs of an exchange stays far below 16 MB, the most that one may have
RECORD_WITHIN = 1.0  # seconds; a schedule that a dead client has locked must not delay workers: its next run records


class Guard(NamedTuple):
    """What must still be true of a job for a change to be written: for the server, and for a job that was read."""

    query: Callable[[Change], Document]
    still_holds: Callable[[Change, Job], bool]


def _as_decided(change: Change) -> Document:
    """`matching.is_same` for the server."""
    was = change.job
    return {"state": was.state.value, "lease_no": was.lease_no, "key": was.key, "past": was.past or None}


SAME = Guard(_as_decided, is_same)
WAITING_OR_ENDED = Guard(
    lambda change: {**_as_decided(change), "lease_until": None},
    may_change,
)


def expired(now: int) -> Guard:
    """The lease that was decided about is still the one that has expired."""
    return Guard(
        lambda change: {**_as_decided(change), "lease_until": {"$lte": now}},
        lambda change, job: may_rescue(change, job, now),
    )


def held_by(holder: str) -> Guard:
    """This worker still has the lease that its report is about."""
    return Guard(
        lambda change: {"state": "running", "holder": holder, "lease_no": change.job.lease_no},
        partial(is_held_by, holder),
    )


class Changer:
    """Changes one namespace's jobs."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def change_jobs(self, changes: Sequence[Change], now: int | None) -> list[Refusal]:
        with self._steps.work(now) as turn:
            return self.decide("change", changes, turn.now, WAITING_OR_ENDED)

    def rescue_jobs(self, changes: Sequence[Change], now: int | None) -> list[Refusal]:
        with self._steps.connection.call():
            at = self._steps.control.now(now)
            return self.decide("change", changes, at, expired(at))

    def delete_jobs(self, ids: Sequence[str]) -> list[str]:
        def delete(step: Step) -> list[str]:
            jobs = get_jobs(step, list(dict.fromkeys(ids)))
            return remove(step, [job for job in jobs if job.state.is_final])

        with self._steps.work(None):
            return self._steps.run("delete", delete)

    def decide(self, verb: str, changes: Sequence[Change], now: int, guard: Guard) -> list[Refusal]:
        """Write changes, with transactions only for those that need one, and notify workers of released jobs."""
        if not changes:
            return []
        tied = self._tied(changes) if self._steps.connection.has_transactions else []
        others = _without(changes, tied)
        refused: list[Refusal] = []
        for group in filter(None, (others, tied)):  # in this order: the tied ones may release some of the others
            work = partial(_apply_group, changes=group, now=now, guard=guard)
            some, has_released = self._steps.run(verb, work, is_atomic=group is tied)
            refused += some
            if has_released:
                notify.send(self._steps.connection, "jobs")
        return refused

    def _tied(self, changes: Sequence[Change]) -> list[Change]:
        """The changes that need a transaction: they end a job which others wait for, or which is not kept. With them,
        the other changes of the same job or schedule, since their order matters."""
        ended = [change for change in changes if change.state.is_final]
        if not ended:
            return []
        waiting = _waiting_for([change.id for change in ended])
        found = self._steps.connection.db.jobs.find(waiting, {"waits_for": 1}, hint="held")
        awaited = {document["waits_for"] for document in found}
        first = [change for change in ended if change.is_removal or change.id in awaited]
        names = {name for change in first for name in _names(change)}
        return [change for change in changes if names & _names(change)] if names else []


def _apply_group(step: Step, *, changes: Sequence[Change], now: int, guard: Guard) -> tuple[list[Refusal], bool]:
    return apply_changes(step, changes, now, guard), step.counts.grew(State.QUEUED, State.SCHEDULED)


def apply_changes(
    step: Step, changes: Sequence[Change], now: int, guard: Guard, *, tells_schedules: bool = True
) -> list[Refusal]:
    """Apply the changes whose jobs still are what was decided on, and refuse the others. Of several changes to one
    job, the first that holds counts. `tells_schedules`: whether schedules record the runs."""
    are_distinct = len({change.id for change in changes}) == len(changes)
    accepted = _write(step, changes, guard) if are_distinct else []
    refused = _write_checked(step, _without(changes, accepted), guard, accepted) if len(accepted) < len(changes) else []
    _follow(step, accepted, now, tells_schedules=tells_schedules)
    return refused


def _write_checked(step: Step, changes: Sequence[Change], guard: Guard, accepted: list[Change]) -> list[Refusal]:
    """Read the jobs, and write the changes that hold, until no other process changes one in between. What is written
    joins `accepted`; the others are refused."""
    left = list(changes)
    for _ in range(MOST_ROUNDS):
        checked = _check(step, left, guard)
        written = _write(step, [change for change, _ in checked.accepted], guard)
        accepted += written
        if len(written) == len(checked.accepted):
            return checked.refused
        left = _without(left, written)
    return [Refusal(change.id, "lease") for change in left]


def _check(step: Step, changes: Sequence[Change], guard: Guard) -> Checked:
    current = {job.id: job for job in get_jobs(step, list({change.id for change in changes}))}
    return check_changes(changes, lambda change: current.get(change.id), guard.still_holds)


def _without(changes: Sequence[Change], others: Sequence[Change]) -> list[Change]:
    gone = set(map(id, others))
    return [change for change in changes if id(change) not in gone]


def _write(step: Step, changes: Sequence[Change], guard: Guard) -> list[Change]:
    """Write the changes that hold, one of each job; those that were written."""
    if not changes:
        return []
    token = secrets.token_hex(8)
    updates = [
        UpdateMany(
            {"_id": {"$in": [change.id for change in group]}, **_condition(group[0], guard)},
            update_of(group, token),
            hint="_id_",
        )
        for group in grouped(changes, _kind).values()
    ]
    if step.jobs.bulk_write(updates).matched_count == len(changes):
        return list(changes)
    written = step.jobs.written([change.id for change in changes], token)
    return [change for change in changes if change.id in written]


def _follow(step: Step, changes: Sequence[Change], now: int, *, tells_schedules: bool) -> None:
    """Count what was written, release and record, and remove the jobs that are not kept."""
    step.counts.settle(changes, now)
    ended = [change for change in changes if change.state.is_final]
    release_waiting(step, [change.id for change in ended], now)
    if tells_schedules:
        _record_last_runs(step, changes)
    gone = [apply(change) for change in ended if change.is_removal]
    if gone:
        remove(step, gone)


def release_waiting(step: Step, ended: Sequence[str], now: int) -> None:
    """Release the jobs that waited for these, or let them wait for what a cancelled job of their chain waits for"""
    if ended:
        for job in jobs_of(list(step.jobs.find(_waiting_for(ended), hint="held").sort("seq", 1))):
            release_if_free(step, job, now)


def release_if_free(step: Step, job: Job, now: int) -> None:
    """Release a held job, unless it still has to wait."""
    for tries_left in reversed(range(MOST_ROUNDS)):
        awaited = _still_awaited(step, job, now)
        if awaited is not None:
            if awaited != job.waits_for:
                step.jobs.update_one({"_id": job.id, "state": "held"}, {"$set": {"waits_for": awaited}})
            return
        try:
            apply_changes(step, [release(job, now)], now, SAME)
        except BulkWriteError as err:  # the schedule fired between the end of one job and this release
            if step.is_atomic or not tries_left or not is_duplicate(err):
                raise
        else:
            return


def _still_awaited(step: Step, job: Job, now: int) -> str | None:
    """The job that a held one still has to wait for: its predecessor, or the one in its schedule's slot."""
    awaited = still_awaited(job, lambda job_id: find_job(step, job_id))
    if awaited is None and release(job, now).slot is not None:
        in_its_slot = step.jobs.find_one({"slot": job.schedule_id, "_id": {"$ne": job.id}}, {"_id": 1})
        awaited = in_its_slot["_id"] if in_its_slot else None
    return awaited


def release_held(step: Step, ids: Sequence[str], now: int) -> None:
    """Release those of these jobs that are held, and whose predecessor has ended while they were written."""
    for job in get_jobs(step, ids):
        if job.state is State.HELD and job.waits_for:
            release_if_free(step, job, now)


def request_cancels(db: Database, ids: Sequence[str], reason: str) -> list[str]:
    """Ask running jobs to stop; those that run. The first reason stays."""
    if not ids:
        return []
    unasked = {"_id": {"$in": list(ids)}, "state": "running", "cancel_reason": None}
    db.jobs.update_many(unasked, {"$set": {"cancel_reason": reason or "cancelled"}})
    asked = db.jobs.by_id(ids, {"_id": 1}, state="running", cancel_reason={"$exists": True})
    return [job_id for job_id in ids if job_id in asked]


def _names(change: Change) -> set[tuple[str, str]]:
    """The job, and the schedule that records its end."""
    of_job = ("job", change.id)
    return {of_job} if change.job.schedule_id is None else {of_job, ("schedule", change.job.schedule_id)}


def _kind(change: Change) -> object:
    """All that the condition and the update of a change are made of, without a short result: an update has many."""
    job = change.job
    was = (job.lease_no, job.state, job.key, job.past, job.holder, job.result)
    is_short = change.result is not None and len(change.result) <= SHORT_RESULT
    fields = [field for field in differences(change) if not (is_short and field[0] == "result")]
    return was, change.state, change.cancel_reason, is_short, *fields


def _condition(change: Change, guard: Guard) -> Document:
    """The guard; and a job that somebody asked to cancel does not go on."""
    goes_on = change.job.state is State.RUNNING and not change.state.is_final
    return {**guard.query(change), "cancel_reason": None} if goes_on else guard.query(change)


def _record_last_runs(step: Step, changes: Sequence[Change]) -> None:
    """Record with the schedules how their jobs ended, or that an attempt failed."""
    before: dict[str, LastRun] = {}

    def read(ids: list[str]) -> dict[str, LastRun]:
        before.update((name, last_of(document)) for name, document in step.schedules.by_id(ids, {"last": 1}).items())
        return before

    updates = [
        UpdateOne({"_id": name}, _recorded(document_of_last(before[name]), document_of_last(last)))
        for name, last in last_runs(changes, read).items()
    ]
    if not updates:
        return
    try:
        with pymongo.timeout(RECORD_WITHIN):
            step.schedules.bulk_write(updates)
    except PyMongoError as err:
        if step.is_atomic or not err.timeout:
            raise


def _recorded(before: Document, after: Document) -> Document:
    """Only the fields that differ: a firing may write the others at the same time."""
    names = before.keys() | after.keys()
    fields: dict[str, Any] = {f"last.{name}": after.get(name) for name in names if before.get(name) != after.get(name)}
    return changed(fields) if fields else {"$set": {"last.job_id": after.get("job_id")}}


def _waiting_for(ids: Sequence[str]) -> Document:
    return {"state": "held", "waits_for": {"$in": list(ids)}}


# Removing. If the server has no transactions, a schedule's job leaves a tombstone for a day: its id and its occurrence,
# in the same document. A process that delivers the same firing late, from an outbox that it read long ago, collides.

OWING = "owing"  # the expiry of a tombstone whose entry is not in the ledger yet: no date, so it does not expire


def remove(step: Step, jobs: Sequence[Job]) -> list[str]:
    """Remove those of the ended jobs that have not been retried meanwhile; their ids."""
    ended = list({job.id: job for job in jobs}.values())
    _record(step, ended)
    removed = _delete(step, ended, {"finished_at": {"$exists": True}}, tombstone)
    unscheduled = [job.id for job in removed if job.schedule_id is None]
    if unscheduled and not step.is_atomic:
        step.jobs.delete_many({"_id": {"$in": unscheduled}, "gone_at": {"$exists": True}}, hint="_id_")
    return [job.id for job in removed]


def remove_unmade(step: Step, jobs: Sequence[Job]) -> bool:
    """Remove waiting jobs without a record; whether all of them still were in their state."""
    by_state = grouped(jobs, lambda job: job.state)
    removed = [job for state, some in by_state.items() for job in _delete(step, some, {"state": state.value}, _wipe)]
    return len(removed) == len(jobs)


def free_occurrences(step: Step, schedule_id: str, spans: Sequence[tuple[int, int]]) -> None:
    """Remove the occurrences in after < t <= through from tombstones, so that other jobs can be made for them."""
    times = [{"fire_at": {"$gt": after, "$lte": through}} for after, through in spans]
    mine: Document = {"schedule_id": schedule_id, "state": {"$exists": False}, "$or": times}
    step.jobs.update_many(mine, _wipe(secrets.token_hex(8)), hint="occurrence")


def _record(step: Step, jobs: Sequence[Job]) -> None:
    """Write the ledger entries of schedules that still exist, and not of earlier ones of the same name."""
    made = [job for job in jobs if job.schedule_id is not None and job.fire_at is not None]
    if made:
        since = creation_times(step, {job.schedule_id for job in made})
        mine = [job for job in made if is_record_of(job, since.get(job.schedule_id or ""))]
        record_entries(step, [of_job(job) for job in mine], since)


def _delete(step: Step, jobs: Sequence[Job], still: Document, tombstone_of: Any) -> list[Job]:
    """Delete the documents, or make tombstones of them, and delete the logs; the jobs that this step has removed."""
    ids = [job.id for job in jobs]
    query: Document = {"_id": {"$in": ids}, **still}
    removed = list(jobs)
    if not ids:
        return []
    if step.is_atomic:
        step.jobs.delete_many(query, hint="_id_")
    else:
        token = secrets.token_hex(8)
        if step.jobs.update_many(query, tombstone_of(token), hint="_id_").modified_count != len(ids):
            written = step.jobs.written(ids, token)
            removed = [job for job in jobs if job.id in written]
    step.counts.remove_all(removed)
    forget_logs(step, [job.id for job in removed])
    return removed


def tombstone(token: str | None = None, *, owed: list[Any] | None = None) -> list[Document]:
    """The update that makes a tombstone. With `owed`, it stays until that ledger entry is written."""
    rest: Document = {"gone_at": "$$NOW"}
    if owed is not None:
        rest = {"gone_at": {"$literal": OWING}, "created_at": 1, "owed": {"$literal": owed}}
    if token is not None:
        rest["token"] = {"$literal": token}
    return [{"$project": {"schedule_id": 1, "fire_at": 1, **rest}}]


def _wipe(token: str) -> list[Document]:
    """The update for a job whose occurrence is in the future: only its id stays, so that another job can be made."""
    return [{"$project": {"gone_at": "$$NOW", "token": {"$literal": token}}}]
