"""Decides what becomes of a job that its schedule created in advance, once the job is due.

Such a job waits as scheduled, without its schedule's slot and without its key. The claim that makes it ready decides
whether it is too late, whether the run before it is still running and whether its key is free, in the same step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from rota.model.jobs.job import Job, Move, NewJob, State, check_move, folded
from rota.model.reasons import reason_text
from rota.model.schedules.firing import Shot, place
from rota.model.schedules.schedule import problem_of
from rota.model.schedules.slots import NOT_CLAIMED, Skip, count_open

if TYPE_CHECKING:
    from rota.model.schedules.schedule import Overlap, Schedule


class DueDecision(Struct, frozen=True, kw_only=True):
    """The decision about a job that was created before it was due, once it is due."""

    job: Job | None = None  # its new value: ready, or held; None: it is deleted, and the skip is its record
    skip: Skip | None = None
    cancels: str | None = None  # the live job, which is asked to stop


def is_ahead(job: Job) -> bool:
    """Whether it is yet to be decided: one that was held or claimed before, and waits again, is not."""
    return job.state is State.SCHEDULED and job.lease_no == 0 and job.ahead is not None


def decide_due(
    job: Job, schedule: Schedule | None, live: str | None, last_held: str | None, holder: str | None, now: int
) -> DueDecision:
    """Decide about a due job, by its schedule's policies (None: it was removed), its live job, the last one that is
    held behind that, and the job that holds the key that it asks for."""
    missed = schedule if schedule is not None and _is_late(job, schedule, now) else None
    if missed is not None and (skip := _not_caught_up(job, missed, now)) is not None:
        return DueDecision(skip=skip)
    overlap = schedule.spec.overlap if schedule else "skip"
    new = NewJob(id=job.id, task="", payload=b"", fire_at=job.fire_at, after_at=job.after_at, reason=reason_text("due"))
    chained = missed is not None and missed.spec.catchup == "all"
    placement = place(Shot(job=new, when_busy=overlap, chained=chained), live, last_held, holder)
    if placement.job is None:
        return DueDecision(skip=placement.skip)
    if placement.job.waits_for is None:
        return DueDecision(job=_ready(job, overlap, now))
    return DueDecision(job=_held(job, placement.job, now), cancels=placement.cancels)


def _is_late(job: Job, schedule: Schedule, now: int) -> bool:
    """Whether its grace is over. A job that was made after its time was meant to run late."""
    was_made_ahead = job.fire_at is not None and job.created_at < job.fire_at
    return was_made_ahead and now - job.run_at > schedule.spec.grace and problem_of(schedule) is None


def _not_caught_up(job: Job, schedule: Schedule, now: int) -> Skip | None:
    """The record of a late job that catch-up does not run; None if it runs."""
    spec = schedule.spec
    newest = {"skip": 0, "latest": 1, "all": spec.catchup_limit}[spec.catchup]
    if newest and _newer(schedule, job.fire_at or 0, now) < newest:
        return None
    return Skip(
        after_at=job.after_at or 0,
        through_at=job.fire_at or 0,
        count=1,
        outcome="coalesced" if spec.catchup == "latest" else "skipped",
        reason=NOT_CLAIMED,
    )


def _newer(schedule: Schedule, slot: int, now: int) -> int:
    """How many later occurrences have come. By the rule: whether a job is there for each would be one more read."""
    bounds = [now, now if schedule.spec.end is None else schedule.spec.end]
    if schedule.is_spent:
        bounds.append(schedule.made_through)  # no more of them happen
    return count_open(schedule, slot, min(bounds))


def _ready(job: Job, overlap: Overlap, now: int) -> Job:
    check_move(job.state, State.QUEUED)
    slot = None if overlap == "allow" else job.schedule_id
    return msgspec.structs.replace(job, state=State.QUEUED, ahead=None, queued_at=now, key=job.ahead or None, slot=slot)


def _held(job: Job, placed: NewJob, now: int) -> Job:
    check_move(job.state, State.HELD)
    past = folded(job, Move(State.HELD, now, placed.reason, {"waits_for": placed.waits_for}))
    return msgspec.structs.replace(
        job, state=State.HELD, waits_for=placed.waits_for, ahead=None, key=job.ahead or None, past=past
    )
