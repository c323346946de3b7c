"""Places a schedule's occurrences among its jobs: the shots of a firing, and due jobs that were created ahead.

The model decides about one shot (`place`) or one job (`decide_due`). What a decision needs to know, the order in which
decisions are carried out and what they record are the same on every store, and stand here. A store says how it reads
and writes, inside the step that guards the schedule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from rota.model.jobs.job import State
from rota.model.reasons import reason_text
from rota.model.schedules.firing import fired, place
from rota.model.schedules.lookahead import decide_due
from rota.store.contract import Fired

if TYPE_CHECKING:
    from collections.abc import Container

    from rota.model.jobs.job import Job, NewJob
    from rota.model.schedules.firing import Firing
    from rota.model.schedules.schedule import Schedule
    from rota.model.schedules.slots import Skip

REPLACED = reason_text("replaced")  # why a live job is asked to stop


class Snapshot(Protocol):
    """What the next decision about a schedule meets, with all that earlier decisions of the same step wrote."""

    def live_job(self, schedule_id: str, /) -> str | None:
        """The live job in the schedule's overlap slot."""

    def last_held(self, schedule_id: str, /) -> str | None:
        """The newest job of the schedule that is held."""

    def key_holder(self, key: str, /) -> str | None:
        """The job that holds a unique key; one whose period is over holds it no more."""


class BatchSnapshot:
    """A snapshot that was read for a whole batch: ids of jobs, by schedule and by key; occurrences that have a job."""

    _made: Container[tuple[str, int]] = ()  # for firings alone

    def __init__(self, live: dict[str, str], held: dict[str, str], holders: dict[str, str]) -> None:
        self._live = live
        self._held = held
        self._holders = holders

    def live_job(self, schedule_id: str) -> str | None:
        return self._live.get(schedule_id)

    def last_held(self, schedule_id: str) -> str | None:
        return self._held.get(schedule_id)

    def key_holder(self, key: str) -> str | None:
        return self._holders.get(key)

    def was_made(self, schedule_id: str, fire_at: int) -> bool:
        return (schedule_id, fire_at) in self._made

    def add(self, job: Job) -> None:
        """Let the next decision meet a job that this step makes, or makes ready or held."""
        name = job.schedule_id or ""
        if job.state is State.HELD:
            self._held[name] = job.id
        elif job.slot:
            self._live[name] = job.id
        if job.key:
            self._holders[job.key] = job.id


class FiringSteps(Snapshot, Protocol):
    """What placing a firing reads and writes."""

    def was_made(self, schedule_id: str, fire_at: int, /) -> bool:
        """Whether the occurrence has, or had, a job."""

    def make(self, new: NewJob, /) -> None:
        """Accept a job."""

    def stop(self, job_id: str, reason: str, /) -> None:
        """Ask a running job to stop; cancel one that waits, and release what is held behind it."""


class SingleFiringSteps(FiringSteps, Protocol):
    """The same for a store that fires schedules one by one."""

    def record_skip(self, schedule_id: str, skip: Skip, /) -> None:
        """Write a skip to the occurrence ledger."""


class LookaheadSteps(Snapshot, Protocol):
    """What deciding on a due job reads and writes."""

    def put(self, before: Job, after: Job, /) -> None:
        """Write a job that is ready or held from now on."""

    def delete_unstarted(self, job: Job, /) -> None:
        """Delete a waiting job without a record, and release what waited for it."""

    def record_skip(self, schedule_id: str, skip: Skip, /) -> None:
        """Write a skip to the occurrence ledger."""

    def stop(self, job_id: str, reason: str, /) -> None:
        """As in FiringSteps."""


class Placed(NamedTuple):
    """What an accepted firing came to."""

    jobs: list[str]  # the ids of the jobs that it made, in order
    skips: list[Skip]


def place_firing(firing: Firing, steps: FiringSteps) -> Placed | None:
    """Make the jobs of a firing whose schedule still is what it was decided on; None if it is early and must wait."""
    name = firing.schedule.id
    if firing.is_early and _must_wait(firing, steps):
        return None
    placed = Placed([], list(firing.skips))
    for shot in firing.shots:
        if steps.was_made(name, shot.job.fire_at or 0):
            continue  # by a schedule of that name, before the clock was set back
        live = steps.live_job(name) if shot.when_busy != "allow" else None
        held = steps.last_held(name) if live else None
        placement = place(shot, live, held, steps.key_holder(shot.job.key) if shot.job.key else None)
        if placement.skip is not None:
            placed.skips.append(placement.skip)
        if placement.job is not None:
            steps.make(placement.job)
            placed.jobs.append(placement.job.id)
        if placement.cancels is not None:
            steps.stop(placement.cancels, REPLACED)
    return placed


def _must_wait(firing: Firing, steps: FiringSteps) -> bool:
    holder = next(filter(None, map(steps.key_holder, firing.keys)), None)
    return firing.must_wait(steps.live_job(firing.schedule.id), holder)


def advanced(firing: Firing, current: Schedule, jobs: list[str], now: int) -> Schedule:
    """The schedule after an accepted firing that made these jobs. `current`: as it is stored, which may know of runs
    that ended since the firing was decided."""
    return fired(msgspec.structs.replace(firing, schedule=current), len(jobs), now, jobs[-1] if jobs else None)


def fire_one(
    firing: Firing, schedule: Schedule | None, steps: SingleFiringSteps, now: int
) -> tuple[Schedule | None, Fired]:
    """Fire a schedule if it still is what was decided on. Returns it after that, None if it was not fired; and the
    result."""
    holds = schedule is not None and firing.holds_for(schedule.version, schedule.created_at)
    placed = place_firing(firing, steps) if holds else None
    if schedule is None or placed is None:
        return None, Fired(schedule_id=firing.schedule.id, is_accepted=False)
    for skip in placed.skips:
        steps.record_skip(schedule.id, skip)
    return advanced(firing, schedule, placed.jobs, now), Fired.of(schedule.id, placed.jobs, placed.skips)


def place_due(job: Job, schedule: Schedule | None, steps: LookaheadSteps, now: int) -> None:
    """Carry out what becomes of a due job that was created ahead. Jobs of one schedule go in the order of their times:
    one may be what the next would overlap with."""
    name = job.schedule_id or ""
    live = steps.live_job(name)
    held = steps.last_held(name) if live else None
    became = decide_due(job, schedule, live, held, steps.key_holder(job.ahead) if job.ahead else None, now)
    if became.job is None:
        steps.delete_unstarted(job)
    else:
        steps.put(job, became.job)
    if became.skip is not None and schedule is not None:  # a schedule that is gone has no ledger
        steps.record_skip(name, became.skip)
    if became.cancels is not None:
        steps.stop(became.cancels, REPLACED)
