"""Look-ahead: what becomes of a job that was made before its time, once that has come.

Such a job waits as scheduled, without its schedule's slot and without its key. The claim that makes it ready judges
whether the run before it still goes on and whether its key is free, in the same step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from rota.model.firing import Shot, place
from rota.model.history import Move, folded
from rota.model.job import Job, NewJob
from rota.model.slots import Skip
from rota.model.state import State, check_move

if TYPE_CHECKING:
    from rota.model.schedule import Overlap


class Judgement(Struct, frozen=True, kw_only=True):
    """What a job that was made ahead becomes when it is due."""

    job: Job | None = None  # as it is from now on: ready, or held; None: it goes, and the skip is its record
    skip: Skip | None = None
    cancels: str | None = None  # the live job, which is asked to stop


def is_ahead(job: Job) -> bool:
    """Whether it is yet to be judged: one that was held or claimed before, and waits again, is not."""
    return job.state is State.SCHEDULED and job.lease_no == 0 and job.ahead is not None


def judge(
    job: Job, overlap: Overlap, live: str | None, last_held: str | None, holder: str | None, now: int
) -> Judgement:
    """Decide about a due job, by its schedule's policy, its live job, the last one that is held behind that, and the
    job that holds the key that it asks for."""
    new = NewJob(id=job.id, task="", payload=b"", fire_at=job.fire_at, after_at=job.after_at, reason="due")
    placement = place(Shot(job=new, when_busy=overlap), live, last_held, holder)
    if placement.job is None:
        return Judgement(skip=placement.skip)
    if placement.job.waits_for is None:
        return Judgement(job=_ready(job, overlap, now))
    return Judgement(job=_held(job, placement.job, now), cancels=placement.cancels)


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
