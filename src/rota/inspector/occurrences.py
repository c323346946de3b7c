"""Reads the outcome of each expected time of a schedule, and explains it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from rota.errors import BadTrigger
from rota.inspector.reading import clock_record
from rota.inspector.surroundings import around, awaited_by, job_of
from rota.model.audit_record import subject_of
from rota.model.clock.record import wrong_time_at
from rota.model.micros import SECOND, datetime_of
from rota.model.schedules.firing import jitter_of, overlapped_jobs, start_of
from rota.model.schedules.schedule import problem_of
from rota.model.schedules.slots import MISSED, count_open, slots_after
from rota.model.why.changed_times import Changes, Instead, is_move, is_retiming, tz_before
from rota.model.why.schedule import Records, Verdict, instant_to_explain, why, why_removed
from rota.store.contract import LARGEST_PAGE, AuditFilter
from rota.triggers.rezoned import WallTrigger
from rota.triggers.zone import DAY, find_zone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from rota.model.audit_record import AuditRecord
    from rota.model.jobs.job import Job
    from rota.model.schedules.occurrence import Occurrence
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Store
    from rota.triggers.zone import Zone


class Coming:
    """One schedule's runs within a window: the first few, and how many there are."""

    def __init__(self, schedule: Schedule, slots: list[int], count: int) -> None:
        self.schedule_id = schedule.id
        self.count = count
        self._schedule = schedule
        self._slots = slots

    @property
    def sentence(self) -> str:
        return self._schedule.trigger.explain()

    @property
    def starts(self) -> list[int]:
        """When they start, in microseconds."""
        shift = jitter_of(self._schedule)
        return [slot + shift for slot in self._slots]

    @property
    def first(self) -> datetime:
        """The first start, by the schedule's own clock."""
        return local_start(self._schedule, self._slots[0])

    @property
    def runs(self) -> list[datetime]:
        """The starts, by the schedule's own clock."""
        return [local_start(self._schedule, slot) for slot in self._slots]


def why_at(store: Store, schedule: Schedule, at: int | None) -> Verdict:
    """Why a schedule did or did not run at an instant; by default at the last time that it was expected to."""
    now = store.now()
    instant = instant_to_explain(schedule, now) if at is None else at
    spec = schedule.spec
    verdict = why(
        schedule, instant, _records(store, schedule, instant), around(store, spec.queue, spec.task, now, spec.tz)
    )
    said = wrong_time_at(clock_record(store).steps, instant)
    return verdict if said is None else _with_more(verdict, said)


def _with_more(verdict: Verdict, said: str) -> Verdict:
    values = {**verdict.values, "clock": said}
    return msgspec.structs.replace(
        verdict, sentence=f"{verdict.sentence} {said}", words=f"{verdict.words} {said}", values=values
    )


def why_no_more(store: Store, schedule_id: str, at: int | None) -> Verdict | None:
    """The answer about a schedule that was removed; None if no audit record shows it."""
    found = store.list_audit_records(AuditFilter(subject=subject_of("schedule", schedule_id)), limit=10).items
    removed = next((audit for audit in found if audit.verb == "removed"), None)  # the newest few may share one instant
    return None if removed is None else why_removed(schedule_id, at, removed)


def coming_runs(
    schedules: Iterable[Schedule], start: int, end: int, most: int, *, first_of_more: bool = False
) -> Iterator[Coming]:
    """The coming runs in start < t <= end, by the present state; of each schedule at most so many times are listed.

    `first_of_more`: of a schedule with so many or more, the first alone is computed.
    """
    for schedule in schedules:
        if not may_run(schedule):
            continue
        silence = schedule.silence
        shift = jitter_of(schedule)
        low = start - shift if silence is None else max(start - shift, (silence.until or end) - 1)
        through = end - shift if schedule.spec.end is None else min(end - shift, schedule.spec.end)
        number = count_open(schedule, max(low, schedule.fired_through), through)
        listed = 1 if first_of_more and _bounded(schedule, number) >= most else most
        slots = [slot for slot in coming_slots(schedule, low, listed) if slot + shift <= end]
        if slots:
            count = max(len(slots), number)
            yield Coming(schedule, slots, _bounded(schedule, count))


def coming_slots(schedule: Schedule, after: int, most: int) -> list[int]:
    """The next times after an instant at which it will run, by the present state."""
    return list(islice(slots_after(schedule, after), _bounded(schedule, most))) if may_run(schedule) else []


def may_run(schedule: Schedule) -> bool:
    """Whether a run may come: one that is not created yet, or a job that was created before it is due and waits."""
    is_on = schedule.is_enabled and not schedule.problem and schedule.silence is None
    return schedule.due_at is not None or (is_on and schedule.has_jobs_ahead)


def may_run_by(schedule: Schedule, end: int) -> bool:
    """Whether a run may come at or before an instant, by the stored next time, without its rule."""
    if not may_run(schedule):
        return False
    if schedule.silence is not None:
        return schedule.silence.until is not None and schedule.silence.until <= end
    return schedule.has_jobs_ahead or (schedule.next_at is not None and schedule.next_at <= end)


def local_start(schedule: Schedule, slot: int) -> datetime:
    """When the job of a slot may start, jitter included, by its schedule's own clock."""
    zone = find_zone(schedule.spec.tz).datetime_of(slot // SECOND).tzinfo
    return datetime_of(start_of(schedule, slot)).astimezone(zone)


def _bounded(schedule: Schedule, count: int) -> int:
    """The number within `max_runs`, which has already counted jobs that were created before they are due."""
    most = schedule.spec.max_runs
    made = count_open(schedule, schedule.fired_through, schedule.made_through) if schedule.has_jobs_ahead else 0
    return count if most is None else min(count, max(0, most - schedule.run_count + made))


def _entry_at(store: Store, schedule_id: str, at: int) -> Occurrence | None:
    entries = store.list_occurrences(schedule_id, at, at + 1, limit=1).items
    return next((entry for entry in entries if entry.earliest_at <= at <= entry.through_at), None)


def _records(store: Store, schedule: Schedule, at: int) -> Records:
    """The records of the store about an instant; audit records are read only if the ledger has nothing."""
    entry = _entry_at(store, schedule.id, at)
    if entry is None:
        return Records(changes=_changes_around(store, schedule, at))
    job = job_of(store, entry.job_id)
    met = overlapped_jobs(entry.reason)
    other = awaited_by(job) if met is None else met[0]
    move = _move_over(store, schedule, at) if _is_missed(entry, job) else None
    return Records(occurrence=entry, job=job, other=job_of(store, other), move=move)


def _is_missed(entry: Occurrence, job: Job | None) -> bool:
    """Whether catch-up has decided about it."""
    return entry.outcome == "coalesced" or entry.reason == MISSED or (job is not None and job.made_by == "catchup")


def _move_over(store: Store, schedule: Schedule, at: int) -> AuditRecord | None:
    """The change of the zone that put a time into the past: by the clock before, it was to come, or it is the run of
    the local times that neither clock shows."""
    if schedule.generation == 1 or problem_of(schedule) is not None:
        return None  # its times were never changed
    is_named = bool(schedule.trigger.count_seconds(at // SECOND - 1, at // SECOND))
    for audit in _retimings(store, schedule):
        zone = _left_zone(schedule, audit) if audit.at >= at else None
        if zone is None:
            continue
        wall = find_zone(schedule.spec.tz).wall_of(at // SECOND)
        if not is_named or zone.instant_of(wall) * SECOND > audit.at:
            return audit
    return None


def _retimings(store: Store, schedule: Schedule) -> list[AuditRecord]:
    """The changes of its times, newest first."""
    where = AuditFilter(subject=subject_of("schedule", schedule.id))
    return [audit for audit in store.list_audit_records(where, limit=LARGEST_PAGE).items if is_retiming(audit)]


def _changes_around(store: Store, schedule: Schedule, at: int) -> Changes:
    """How the schedule's times were changed around an instant, and which run stands for it since."""
    if problem_of(schedule) is not None:
        return Changes()
    found = _retimings(store, schedule)
    later = [audit for audit in found if audit.at >= at]
    others = (make(store, schedule, at, audit) for make in (_same_time, _left_out, _same_date) for audit in found)
    instead = next((one for one in others if one is not None), None)
    return Changes(later=later[-1] if later else None, instead=instead)


def _same_time(store: Store, schedule: Schedule, at: int, audit: AuditRecord) -> Instead | None:
    """The run that had the same local time by the clock of the zone before."""
    zone = _left_zone(schedule, audit)
    if zone is None:
        return None
    then = zone.instant_of(find_zone(schedule.spec.tz).wall_of(at // SECOND)) * SECOND
    entry = _entry_at(store, schedule.id, then) if then <= audit.at else None
    return None if entry is None else Instead(audit=audit, occurrence=entry)


def _left_out(store: Store, schedule: Schedule, at: int, audit: AuditRecord) -> Instead | None:
    """The run of the dates that the clocks of two zones leave out: at a time that neither of them names."""
    if _left_zone(schedule, audit) is None or audit.at < at:
        return None
    end = audit.at + SECOND
    listed = [slot for one in schedule.detours if one.zone == schedule.spec.tz for slot in one.slots]
    entries = store.list_occurrences(schedule.id, at + 1, end + 1, limit=LARGEST_PAGE).items
    times = [
        *(entry.through_at for entry in entries if entry.count == 1),
        *(slot for slot in listed if at < slot <= end),
    ]
    rules = [schedule.trigger, schedule.trigger.rezoned(tz_before(audit))]
    unnamed = [one for one in times if not any(rule.count_seconds(one // SECOND - 1, one // SECOND) for rule in rules)]
    return Instead(audit=audit, run_at=unnamed[0]) if unnamed else None


def _left_zone(schedule: Schedule, audit: AuditRecord) -> Zone | None:
    """The zone whose clock named its local times before a change; None if the change is no move."""
    if not isinstance(schedule.trigger, WallTrigger) or not is_move(audit):
        return None
    try:
        return find_zone(tz_before(audit))
    except BadTrigger:
        return None


def _same_date(store: Store, schedule: Schedule, at: int, audit: AuditRecord) -> Instead | None:
    """The run that the local date had had before the wall time was changed."""
    if audit.at >= at or not schedule.trigger.is_dated:
        return None
    zone = find_zone(schedule.spec.tz)
    date = zone.wall_of(at // SECOND) // DAY
    start = (_left_zone(schedule, audit) or zone).instant_of(date * DAY) * SECOND
    entries = store.list_occurrences(schedule.id, start, audit.at, limit=LARGEST_PAGE).items
    made = [entry for entry in entries if entry.outcome not in {"skipped", "coalesced"}]
    return Instead(audit=audit, occurrence=made[-1], is_date=True) if made else None
