"""Records what became of each expected time of a schedule. These records outlive their jobs.

While a job is kept, it is the record of its occurrence. When it is deleted, its entry is joined to a range: neighbours
with the same outcome share one row, so that a schedule that fires every second costs no more than its jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from rota.model.jobs.job import State

if TYPE_CHECKING:
    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change
    from rota.model.schedules.schedule import LastRun
    from rota.model.schedules.slots import Skip


class Occurrence(Struct, frozen=True, kw_only=True):
    """The expected times in after_at < t <= through_at, `count` of them, and their one outcome."""

    schedule_id: str
    after_at: int
    through_at: int
    count: int = 1
    outcome: str  # a job's state, or skipped, or coalesced
    reason: str = ""
    job_id: str | None = None  # while the job is kept

    @property
    def earliest_at(self) -> int:
        """The first instant at which one of them may lie; a single one is exact."""
        return self.through_at if self.count == 1 else self.after_at + 1


def of_job(job: Job) -> Occurrence:
    """The entry of an occurrence whose job is still kept."""
    if job.schedule_id is None or job.fire_at is None:
        raise ValueError(f"job {job.id} is no occurrence")
    return Occurrence(
        schedule_id=job.schedule_id,
        after_at=job.after_at or job.fire_at - 1,
        through_at=job.fire_at,
        outcome=job.state.value,
        reason=job.cancel_reason or "" if job.state is State.CANCELLED else "",
        job_id=job.id,
    )


def is_record_of(job: Job, made_at: int | None) -> bool:
    """Whether a job is the record of one of the times of a schedule that was made then (None: there is none), and not
    of an earlier namesake's. Not by its time: one that was made on the day of its start has a run before itself."""
    return made_at is not None and job.fire_at is not None and job.created_at >= made_at


def of_skip(schedule_id: str, skip: Skip) -> Occurrence:
    return Occurrence(
        schedule_id=schedule_id,
        after_at=skip.after_at,
        through_at=skip.through_at,
        count=skip.count,
        outcome=skip.outcome,
        reason=skip.reason,
    )


def fold(entry: Occurrence, *neighbours: Occurrence) -> tuple[Occurrence, list[Occurrence]]:
    """The entry joined to the ranges that it touches without a break, and those ranges, which it replaces."""
    joined = msgspec.structs.replace(entry, job_id=None)
    replaced = []
    for other in neighbours:
        is_alike = (other.outcome, other.reason) == (entry.outcome, entry.reason)
        if is_alike and (other.through_at == joined.after_at or other.after_at == joined.through_at):
            replaced.append(other)
            joined = msgspec.structs.replace(
                joined,
                after_at=min(joined.after_at, other.after_at),
                through_at=max(joined.through_at, other.through_at),
                count=joined.count + other.count,
            )
    return joined, replaced


RETRYING = "retrying"  # the status of a last run that failed and waits for its next attempt


def noted(last: LastRun, change: Change) -> LastRun:
    """The last run of a schedule, after one of its jobs has ended, or has failed and waits for its retry."""
    job, now = change.job, change.finished_at
    if not change.state.is_final:
        return msgspec.structs.replace(last, status=RETRYING, error=change.error, job_id=job.id)
    succeeded = change.state is State.SUCCEEDED
    return msgspec.structs.replace(
        last,
        finished_at=now,
        status=change.state.value,
        success_at=now if succeeded else last.success_at,
        failed_at=None if succeeded else now if change.state is State.FAILED else last.failed_at,
        duration=now - job.started_at if now is not None and job.started_at is not None else None,
        error=None if succeeded else (change.error or change.cancel_reason),
        job_id=job.id,
    )
