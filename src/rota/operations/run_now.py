"""Starts jobs of a schedule by hand, in one step with the schedule, so that no other start comes between.

The result of a step that makes a job does not include the job. So the caller reads: the job is there, or another job
has its slot or its key, or the schedule has counted it, because it has ended already and its task keeps no jobs. If
none of these is true, another job was in the way and has ended since: the caller tries again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rota.errors import Refused, ScheduleNotFound, VersionConflict
from rota.model.audit_record import Author
from rota.model.jobs.job import accept, holds_key
from rota.model.schedules.edit import start_edit, with_audit
from rota.operations.audit import whoami
from rota.sentences import sentence
from rota.store.contract import JobFilter

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.jobs.job import Job
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Store

TRIES = 50  # before each try, another client has changed the schedule


class Started(NamedTuple):
    """The task that waits or runs now, and whether it did before."""

    job: Job
    existed: bool


def start_task(store: Store, schedule: Schedule, new_id: Callable[[], str], by: str) -> Started:
    """Start a task, unless the schedule's newest one is live: any newer than that would have changed its version."""
    for _ in range(TRIES):
        live = _live_task(store, schedule)
        if live is not None:
            return Started(live, existed=True)
        started = _try(store, schedule, new_id, by)
        if started is not None:
            return Started(started, existed=False)
        found = store.get_schedules([schedule.id])
        if not found:
            raise ScheduleNotFound(
                sentence(
                    "missing.schedule_removed", "schedule '{schedule}' was removed meanwhile", schedule=schedule.id
                )
            )
        schedule = found[0]
    raise VersionConflict(
        sentence("refused.schedule_changing", "schedule '{schedule}' kept changing; try again", schedule=schedule.id)
    )


def key_holder(store: Store, key: str) -> Job | None:
    """The job that holds a user's key."""
    found = store.list_jobs(JobFilter(key=key), limit=1).items if key else []
    return next((job for job in found if holds_key(job.state, job.key_until, store.now())), None)


def was_made(store: Store, job_id: str, after: Schedule) -> bool:
    """Whether the run by hand that an edit adds was made: its job is there, or the schedule (`after` the edit) has
    counted it. A run that was refused by its slot or its key is not counted."""
    if store.get_jobs([job_id]):
        return True
    found = store.get_schedules([after.id])
    return bool(found) and found[0].last.by_hand >= after.last.by_hand


def _live_task(store: Store, schedule: Schedule) -> Job | None:
    newest = store.list_jobs(JobFilter(schedule_id=schedule.id), limit=1).items
    return newest[0] if newest and newest[0].is_live else None


def _try(store: Store, schedule: Schedule, new_id: Callable[[], str], by: str) -> Job | None:
    """The task, if the schedule is unchanged since it was read and no other start came first."""
    author = Author(record_id=new_id(), by=by or whoami(), verb="started")
    edit = with_audit(start_edit(schedule, store.now(), new_id(), by), schedule, author)
    holder = key_holder(store, schedule.spec.key)
    if holder is not None:
        raise Refused(
            sentence(
                "refused.key_held",
                "job {job} holds the key {key!r} of this task; start it when that job has ended, or "
                "cancel it: `rota jobs cancel {job}`",
                job=holder.id,
                key=schedule.spec.key,
            )
        )
    if store.edit_schedules([edit]):
        return None
    job = edit.jobs[0]
    if not was_made(store, job.id, edit.after):
        return None
    found = store.get_jobs([job.id])
    return found[0] if found else accept(job, store.now())  # ended already, and its task keeps no jobs
