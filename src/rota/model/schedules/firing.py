"""Decides which occurrences of a due schedule make jobs, which are skipped and why, and when it is due again.

One pure function decides, for every store and any number of schedulers: the store applies its answer only if the
schedule still has the version that it was made for.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from rota.model.jobs.job import NewJob
from rota.model.micros import SECOND
from rota.model.reasons import read_reason, reason_text
from rota.model.schedules.schedule import Ahead, Overlap, Schedule
from rota.model.schedules.slots import (
    MISSED,
    UNIQUE,
    Skip,
    last_slot,
    low_of,
    next_slot,
    settled_through,
    silenced,
    skip_range,
    trimmed,
    with_ahead,
)
from rota.sentences import Sentence
from rota.triggers.zone import DAY, find_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from rota.model.jobs.job import Job
    from rota.model.schedules.schedule import LastRun, Pause

MOST_JOBS = 100  # made by one firing of one schedule; the rest follows in the next round
LATE = SECOND  # from here on the ledger says "late"


class Shot(Struct, frozen=True, kw_only=True):
    """One occurrence that makes a job, and what to do if the schedule still has a live one."""

    job: NewJob
    when_busy: Overlap  # skip: record it; queue: one held job; cancel: that, and the live one is asked to stop
    chained: bool = False  # one of several missed runs: held behind the one before, however many there are


class Firing(Struct, frozen=True, kw_only=True):
    """The whole decision about a due schedule, for one atomic step of the store."""

    schedule: Schedule  # as it was read; its version is what the store compares
    shots: list[Shot]
    skips: list[Skip]
    next_at: int | None
    fired_through: int
    ends_pause: bool = False
    ahead: Ahead | None = None
    is_early: bool = False  # recorded shortly before its time, so that only the claim is left to do then

    @property
    def can_use_fast_path(self) -> bool:
        """Whether it makes one job that does not wait, and nothing else, unless another job is in its way."""
        is_all = not self.skips and not self.ends_pause
        return is_all and len(self.shots) == 1 and self.shots[0].job.ahead is None

    @property
    def keys(self) -> list[str]:
        """The keys that its jobs ask for when they are made; mostly none."""
        return [shot.job.key for shot in self.shots if shot.job.key is not None] if self.schedule.spec.key else []

    def holds_for(self, version: int | None, created_at: int | None) -> bool:
        """Whether the schedule (None: there is none) still is the one that this was decided on."""
        return (version, created_at) == (self.schedule.version, self.schedule.created_at)

    def must_wait(self, live: str | None, holder: str | None = None) -> bool:
        """Whether it must be decided at its own time: the job in its way may have ended by then.

        That is the live job in the schedule's slot, or the holder of the key that its job asks for.
        """
        if not self.is_early:
            return False
        return holder is not None or (live is not None and any(shot.when_busy != "allow" for shot in self.shots))


class Placement(Struct, frozen=True, kw_only=True):
    """The result of a shot: a job, or the record of why there is none."""

    job: NewJob | None = None
    skip: Skip | None = None
    cancels: str | None = None  # the live job, which is asked to stop


def plan(schedule: Schedule, now: int, new_id: Callable[[], str]) -> Firing:
    """The decision about a schedule that is due at `now`."""
    if schedule.silence is not None:
        return _end_pause(schedule, schedule.silence, now)
    base = _at_present(schedule, now)
    missed, on_time = _due_slots(base, now)
    shots, skips = _catch_up(base, missed, has_newer=bool(on_time))
    slots = [*shots, *on_time][: _jobs_left(base)]
    through = slots[-1] if slots else (missed or base.fired_through)
    jobs = _shots(base, slots, set(shots), skips, new_id)
    fired_through = max(through, base.fired_through)
    advanced = trimmed(
        msgspec.structs.replace(base, fired_through=fired_through, run_count=base.run_count + len(slots))
    )
    early = _shots_ahead(advanced, now, MOST_JOBS - len(jobs), new_id)
    if early:
        advanced = with_ahead(advanced, through=early[-1].job.fire_at or 0)
    return Firing(
        schedule=schedule,
        shots=[*jobs, *early],
        skips=skips,
        next_at=next_slot(msgspec.structs.replace(advanced, run_count=base.run_count), advanced.made_through),
        fired_through=advanced.fired_through,
        ahead=advanced.ahead,
    )


def plan_early(schedule: Schedule, at: int, new_id: Callable[[], str]) -> Firing | None:
    """The same for one that is due shortly, at `at`; None if that does more than make its job."""
    firing = plan(schedule, at, new_id)
    return msgspec.structs.replace(firing, is_early=True) if firing.can_use_fast_path else None


def _at_present(schedule: Schedule, now: int) -> Schedule:
    """The schedule as of now: jobs that were created before they were due and whose time has come are behind it."""
    through = schedule.made_through if schedule.has_jobs_ahead and schedule.made_through > now else 0
    present = msgspec.structs.replace(schedule, fired_through=settled_through(schedule, now))
    return trimmed(present if present.ahead is None else with_ahead(present, through=through, fault=""))


def _shots_ahead(schedule: Schedule, now: int, most: int, new_id: Callable[[], str]) -> list[Shot]:
    """The occurrences of now < t < now + lookahead that are not made yet, as jobs that wait for their time."""
    end = now + schedule.spec.lookahead
    shots: list[Shot] = []
    after = schedule.made_through
    slot = next_slot(schedule, max(now, after)) if end > now else None
    while slot is not None and slot < end and len(shots) < min(most, _jobs_left(schedule)):
        job = job_ahead(schedule, slot, low_of(schedule, slot, after), new_id())
        shots.append(Shot(job=job, when_busy="allow"))
        after, slot = slot, next_slot(schedule, slot)
    return shots


def job_ahead(schedule: Schedule, slot: int, after: int, job_id: str) -> NewJob:
    """A job for a time to come. It takes its schedule's slot and its own key when it is due, if they are free then."""
    job = _job_for(schedule, slot, after, job_id, is_missed=False)
    return msgspec.structs.replace(job, key=None, slot=None, ahead=job.key or "", reason=reason_text("made_ahead"))


def place(shot: Shot, live: str | None, last_held: str | None, holder: str | None = None) -> Placement:
    """The placement of a shot, given the schedule's live job, the last one that is held behind it, and the job that
    holds the shot's key.

    Overlap decides first, then the key: a job that its key refuses is not made, so it replaces no other.
    """
    placement = _overlap(shot, live, last_held)
    if placement.job is None or holder is None:
        return placement
    return Placement(skip=not_unique(shot.job, holder))


def not_unique(job: NewJob | Job, holder: str) -> Skip:
    """The record of an occurrence whose key another job holds."""
    return _skip(job, reason_text("unique", job=holder))


def is_not_unique(reason: str) -> bool:
    """Whether the ledger says so of an occurrence."""
    return reason.startswith(f"{UNIQUE} ")


def _overlap(shot: Shot, live: str | None, last_held: str | None) -> Placement:
    if live is None or shot.when_busy == "allow":
        return Placement(job=shot.job)
    if shot.chained:
        return Placement(job=_held(shot.job, last_held or live))
    if shot.when_busy == "skip" or last_held is not None:
        held = last_held if shot.when_busy != "skip" else None
        return Placement(skip=_skip(shot.job, overlap_reason(live, held)))
    cancels = live if shot.when_busy == "cancel" else None
    return Placement(job=_held(shot.job, live), cancels=cancels)


def fired(firing: Firing, made: int, now: int, last_job: str | None) -> Schedule:
    """The schedule after a firing that made so many jobs."""
    schedule = firing.schedule
    run_count = schedule.run_count + made
    most = schedule.spec.max_runs
    is_spent = most is not None and run_count >= most
    last = schedule.last
    if last_job is not None:
        fired_for = next(shot.job.fire_at for shot in firing.shots if shot.job.id == last_job)
        last = msgspec.structs.replace(last, enqueued_at=now, job_id=last_job, fired_for=fired_for)
    return msgspec.structs.replace(
        schedule,
        version=schedule.version + 1,
        next_at=None if is_spent else firing.next_at,
        fired_through=firing.fired_through,
        run_count=run_count,
        pause=None if firing.ends_pause else schedule.pause,
        tenant_pause=None if firing.ends_pause else schedule.tenant_pause,
        ahead=firing.ahead,
        last=last,
    )


def as_made(counted: Schedule, before: LastRun, jobs: Sequence[NewJob | Job], made: Container[str]) -> Schedule:
    """A schedule that counts all these jobs, when only some of them were made: the others are no runs. `before`: its
    last run without these."""
    missed = [job for job in jobs if job.id not in made]
    if not missed:
        return counted
    by_hand = sum(job.fire_at is None for job in missed)
    newest = next((job.id for job in reversed(jobs) if job.id in made), None)
    times = [job.fire_at for job in jobs if job.id in made and job.fire_at is not None]
    last = msgspec.structs.replace(counted.last, fired_for=times[-1] if times else before.fired_for)
    if newest is None:
        last = msgspec.structs.replace(last, enqueued_at=before.enqueued_at, by_hand=before.by_hand)
    else:
        last = msgspec.structs.replace(last, by_hand=last.by_hand - by_hand)
    if last.job_id in [job.id for job in missed]:  # otherwise a worker has named its own job since
        last = msgspec.structs.replace(last, job_id=newest or before.job_id)
    after = msgspec.structs.replace(counted, run_count=counted.run_count - (len(missed) - by_hand), last=last)
    if after.is_spent or not counted.is_spent:
        return after
    return msgspec.structs.replace(after, next_at=next_slot(after, after.made_through))


def _held(job: NewJob, behind: str) -> NewJob:
    """The slot stays with the live job; the held one takes it over when it is released. Its key is its own at once."""
    return msgspec.structs.replace(
        job, waits_for=behind, run_at=None, slot=None, reason=reason_text("held", reason=job.reason, job=behind)
    )


def _skip(job: NewJob | Job, reason: str) -> Skip:
    fire_at, after_at = job.fire_at or 0, job.after_at or 0
    return Skip(after_at=after_at, through_at=fire_at, count=1, outcome="skipped", reason=reason)


def overlap_reason(live: str, held: str | None = None) -> str:
    """The ledger's reason for an overlap: the live job, and the one that already waits behind it, if that was why.

    The jobs' own histories say what they did at that time, so that the ledger need not.
    """
    return reason_text("overlap", job=live) if held is None else reason_text("overlap_held", job=live, held=held)


def overlapped_jobs(reason: str) -> tuple[str, str | None] | None:
    """The live job and the held one of an overlap's reason; None if it is another reason."""
    found = read_reason(reason)
    if not isinstance(found, Sentence) or found.code not in {"reason.overlap", "reason.overlap_held"}:
        return None
    return found.values["job"], found.values.get("held")


def run_since_start(schedule: Schedule, now: int, new_id: Callable[[], str]) -> NewJob | None:
    """The latest run since a start that lies earlier on the same local day: it was meant to have begun already.

    It is due at once. Like a job created before it is due, it waits for the claim to decide whether an earlier namesake
    still runs.
    """
    start = schedule.spec.start
    if start is None or start > now or not _is_same_day(schedule, start, now):
        return None
    slot = last_slot(msgspec.structs.replace(schedule, fired_through=start - 1), now)
    if slot is None:
        return None
    return msgspec.structs.replace(job_ahead(schedule, slot, slot - 1, new_id()), reason=reason_text("fired"))


def _is_same_day(schedule: Schedule, first: int, second: int) -> bool:
    zone = find_zone(schedule.spec.tz)
    return zone.wall_of(first // SECOND) // DAY == zone.wall_of(second // SECOND) // DAY


def run_now(schedule: Schedule, now: int, job_id: str, *, made_by: str = "manual", reason: str) -> NewJob:
    """A job outside the schedule's times: it ignores overlap, keeps its key, and is never revoked."""
    return NewJob(
        id=job_id,
        task=schedule.spec.task,
        payload=schedule.spec.payload.encode(),
        queue=schedule.spec.queue,
        priority=schedule.spec.priority,
        key=schedule.spec.key or None,
        key_for=schedule.spec.key_for,
        run_at=now,
        schedule_id=schedule.id,
        generation=schedule.generation,
        made_by=made_by,
        reason=reason,
    )


def _end_pause(schedule: Schedule, pause: Pause, now: int) -> Firing:
    """A pause with an end is over: the times within it are skipped, and the schedule continues."""
    until = (pause.until if pause.until is not None else now) - 1  # an occurrence at the very end runs
    after, skips = silenced(schedule, until, pause.words)
    return Firing(
        schedule=schedule,
        shots=[],
        skips=skips,
        next_at=next_slot(after, after.made_through),
        fired_through=after.fired_through,
        ends_pause=True,
        ahead=after.ahead,
    )


def _due_slots(schedule: Schedule, now: int) -> tuple[int | None, list[int]]:
    """The newest occurrence that is past its grace, and those that are still in time (a bounded number)."""
    missed = last_slot(schedule, now - schedule.spec.grace - 1)
    on_time: list[int] = []
    slot = next_slot(schedule, missed or schedule.fired_through)
    while slot is not None and slot <= now and len(on_time) < MOST_JOBS:
        on_time.append(slot)
        slot = next_slot(schedule, slot)
    return missed, on_time


def _catch_up(schedule: Schedule, missed: int | None, *, has_newer: bool) -> tuple[list[int], list[Skip]]:
    """Which missed occurrences run after all (oldest first), and which are recorded as skipped."""
    if missed is None:
        return [], []
    spec = schedule.spec
    if spec.catchup == "skip":
        return [], skip_range(schedule, missed, "skipped", MISSED)
    keep = spec.catchup_limit if spec.catchup == "all" else 0 if has_newer else 1
    outcome = "skipped" if spec.catchup == "all" else "coalesced"
    kept = _newest(schedule, missed, keep)
    before = kept[0] - 1 if kept else missed
    return kept[:MOST_JOBS], skip_range(schedule, before, outcome, MISSED)


def _newest(schedule: Schedule, missed: int, keep: int) -> list[int]:
    """The newest `keep` missed occurrences, oldest first."""
    slots: list[int] = []
    slot: int | None = missed
    while slot is not None and len(slots) < keep:
        slots.append(slot)
        slot = last_slot(schedule, slot - 1)
    return slots[::-1]


def _jobs_left(schedule: Schedule) -> int:
    most = schedule.spec.max_runs
    return MOST_JOBS if most is None else min(MOST_JOBS, max(0, most - schedule.run_count))


def _shots(
    schedule: Schedule, slots: list[int], missed: set[int], skips: list[Skip], new_id: Callable[[], str]
) -> list[Shot]:
    spec = schedule.spec
    chained = spec.catchup == "all" and spec.overlap != "allow"
    after = skips[-1].through_at if skips else schedule.fired_through
    shots = []
    for slot in slots:
        job = _job_for(schedule, slot, low_of(schedule, slot, after), new_id(), is_missed=slot in missed)
        shots.append(Shot(job=job, when_busy=spec.overlap, chained=chained and slot in missed))
        after = slot
    return shots


def _job_for(schedule: Schedule, slot: int, after: int, job_id: str, *, is_missed: bool) -> NewJob:
    spec = schedule.spec
    return NewJob(
        id=job_id if spec.sync is None else spec.sync.task_id(job_id),
        task=spec.task,
        payload=spec.payload.encode(),
        queue=spec.queue,
        priority=spec.priority,
        key=spec.key or None,
        key_for=spec.key_for,
        slot=None if spec.overlap == "allow" else schedule.id,
        run_at=start_of(schedule, slot),
        schedule_id=schedule.id,
        fire_at=slot,
        after_at=after,
        generation=schedule.generation,
        made_by="catchup" if is_missed else spec.trigger.partition(" ")[0],
        reason=reason_text("caught_up" if is_missed else "fired"),
    )


def start_of(schedule: Schedule, slot: int) -> int:
    """When the job of a nominal time may start: its jitter later."""
    return slot + jitter_of(schedule)


def jitter_of(schedule: Schedule) -> int:
    """How far this schedule's runs are moved: always the same for one schedule, spread over many."""
    if not schedule.spec.jitter:
        return 0
    digest = blake2b(schedule.id.encode(), digest_size=8).digest()
    return int.from_bytes(digest) % schedule.spec.jitter
