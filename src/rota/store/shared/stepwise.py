"""Changes of jobs, one after another, with what follows from each: for stores that write single records.

The memory store and Redis have every job at hand, or read it when it is needed. The stores that keep tables follow the
same rules by the batch (`sql_changing`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from rota.model.jobs.settle import apply_to, cancel, release, still_awaited
from rota.model.schedules.occurrence import is_record_of, of_job
from rota.store.shared.matching import is_running

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change
    from rota.model.schedules.edit import Edit
    from rota.model.schedules.occurrence import Occurrence


class ChangeSteps(Protocol):
    """What changes read and write, all at one instant."""

    @property
    def now(self) -> int: ...

    def find(self, job_id: str, /) -> Job | None:
        """A job as it is by now."""

    def put(self, before: Job, after: Job | None, /) -> None:
        """Write and count a job that exists. None: delete it with all that belongs to it, and leave no record."""

    def held_behind(self, job_id: str, /) -> list[Job]:
        """The jobs that wait for this one."""

    def created_at(self, schedule_id: str, /) -> int | None:
        """When the schedule was created; None: there is none."""

    def record(self, entry: Occurrence, /) -> None:
        """Add an entry to a ledger, joined to the ranges that it touches."""

    def record_runs(self, changes: Sequence[Change], /) -> None:
        """Count the runs that ended with changes, and let schedules record them."""


def apply_changes(changes: Iterable[Change], steps: ChangeSteps) -> None:
    """Write changes that hold, then what follows from them."""
    changes = list(changes)
    for change in changes:
        job = steps.find(change.id) or change.job
        steps.put(job, apply_to(job, change))
    for change in changes:
        if change.state.is_final:
            release_behind(change.id, steps)
    steps.record_runs(changes)
    for change in changes:
        if change.is_removal and (ended := steps.find(change.id)) is not None:
            remove_job(ended, steps)


def release_behind(job_id: str, steps: ChangeSteps) -> None:
    """Release the jobs that waited for this one, or let them wait for what it waited for."""
    for job in steps.held_behind(job_id):
        awaited = still_awaited(job, steps.find)
        if awaited is None:
            apply_changes([release(job, steps.now)], steps)
        else:
            steps.put(job, msgspec.structs.replace(job, waits_for=awaited))


def stop_job(job_id: str, reason: str, steps: ChangeSteps) -> None:
    """Ask a running job to stop; the first reason stays. Cancel a waiting one."""
    job = steps.find(job_id)
    if job is not None and is_running(job):
        steps.put(job, msgspec.structs.replace(job, cancel_reason=job.cancel_reason or reason))
    elif job is not None:
        apply_changes([cancel(job, steps.now, reason)], steps)


def remove_job(job: Job, steps: ChangeSteps) -> None:
    """Delete a job; its occurrence stays in the ledger, unless it is of an earlier schedule of that name."""
    is_made = job.schedule_id is not None and job.fire_at is not None
    if is_made and is_record_of(job, steps.created_at(job.schedule_id or "")):
        steps.record(of_job(job))
    steps.put(job, None)


def delete_unstarted(jobs: Sequence[Job], steps: ChangeSteps) -> None:
    """Delete waiting jobs without a record; jobs that waited for them wait no more."""
    for job in jobs:
        steps.put(job, None)
    for job in jobs:
        release_behind(job.id, steps)


def revoke_jobs(jobs: Iterable[Job], edit: Edit, reason: str, steps: ChangeSteps) -> list[Job]:
    """Cancel the jobs that the schedule's trigger made and no worker has started; runs by hand stay. Those of times
    that are still to come are deleted, and returned."""
    waiting = [job for job in jobs if job.schedule_id == edit.id and job.fire_at and job.state.is_waiting]
    deleted = [job for job in waiting if edit.deletes(job)]
    delete_unstarted(deleted, steps)
    apply_changes((cancel(job, steps.now, reason) for job in waiting if not edit.deletes(job)), steps)
    return deleted
