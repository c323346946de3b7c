"""The ledger: what became of each expected time of a schedule, read from the store and told in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.errors import BadTrigger
from rota.inspector.reading import clock_record
from rota.inspector.surroundings import around, awaited_by, job_of
from rota.model.clock_record import wrong_time_at
from rota.model.firing import overlapped_jobs
from rota.model.micros import SECOND
from rota.model.note import subject_of
from rota.model.slots import coming_slot, count_open
from rota.model.why import Records, Verdict, instant_to_explain, timing_of, why, why_removed
from rota.store.contract import LARGEST_PAGE, NoteFilter
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from rota.model.note import Note
    from rota.model.occurrence import Occurrence
    from rota.model.schedule import Schedule
    from rota.store.contract import Store


class Coming:
    """One schedule's runs within a window: the first few, and how many there are."""

    def __init__(self, schedule: Schedule, runs: list[datetime], count: int) -> None:
        self.schedule_id = schedule.id
        self.sentence = schedule.trigger.explain()
        self.runs = runs
        self.count = count


def why_at(store: Store, schedule: Schedule, at: int | None) -> Verdict:
    """Why a schedule did or did not run at an instant; by default at the last time that it was expected to."""
    now = store.now()
    instant = instant_to_explain(schedule, now) if at is None else at
    spec = schedule.spec
    verdict = why(
        schedule, instant, _records(store, schedule, instant), around(store, spec.queue, spec.task, now, spec.tz)
    )
    said = wrong_time_at(clock_record(store).steps, instant)
    return verdict if said is None else msgspec.structs.replace(verdict, sentence=f"{verdict.sentence} {said}")


def why_no_more(store: Store, schedule_id: str, at: int | None) -> Verdict | None:
    """The answer about a schedule that was removed; None where the audit records know of none."""
    notes = store.list_notes(NoteFilter(subject=subject_of("schedule", schedule_id)), limit=1).items
    return why_removed(schedule_id, at, notes[0]) if notes and notes[0].verb == "removed" else None


def coming_runs(schedules: Iterable[Schedule], start: int, end: int, most: int) -> Iterator[Coming]:
    """What is to run in start < t <= end, as things stand; of each schedule at most so many times are listed."""
    for schedule in schedules:
        if not may_run(schedule):
            continue
        silence = schedule.silence
        low = start if silence is None else max(start, (silence.until or end) - 1)
        slots = [slot for slot in coming_slots(schedule, low, most) if slot <= end]
        if slots:
            through = end if schedule.spec.end is None else min(end, schedule.spec.end)
            count = max(len(slots), count_open(schedule, max(low, schedule.fired_through), through))
            yield Coming(schedule, [local_time(schedule, slot) for slot in slots], _bounded(schedule, count))


def coming_slots(schedule: Schedule, after: int, most: int) -> list[int]:
    """The next times after an instant at which it will run, as things stand."""
    slots: list[int] = []
    slot = coming_slot(schedule, after) if may_run(schedule) else None
    while slot is not None and len(slots) < _bounded(schedule, most):
        slots.append(slot)
        slot = coming_slot(schedule, slot)
    return slots


def may_run(schedule: Schedule) -> bool:
    """Whether a run may come: one that is yet to be made, or the last ones, which were made ahead and wait."""
    is_on = schedule.is_enabled and not schedule.problem and schedule.silence is None
    return schedule.due_at is not None or (is_on and schedule.has_jobs_ahead)


def local_time(schedule: Schedule, slot: int) -> datetime:
    """A slot by its schedule's own clock."""
    return find_zone(schedule.spec.tz).datetime_of(slot // SECOND)


def _bounded(schedule: Schedule, count: int) -> int:
    """What is made already is still to come, and counted as made."""
    most = schedule.spec.max_runs
    made = count_open(schedule, schedule.fired_through, schedule.made_through) if schedule.has_jobs_ahead else 0
    return count if most is None else min(count, max(0, most - schedule.run_count + made))


def _line_at(store: Store, schedule_id: str, at: int) -> Occurrence | None:
    lines = store.list_occurrences(schedule_id, at, at + 1, limit=1).items
    return next((line for line in lines if line.earliest_at <= at <= line.through_at), None)


def _records(store: Store, schedule: Schedule, at: int) -> Records:
    """What the store has about an instant; audit records are read only where the ledger has nothing."""
    line = _line_at(store, schedule.id, at)
    if line is None:
        return _from_notes(store, schedule, at)
    job = job_of(store, line.job_id)
    met = overlapped_jobs(line.reason)
    other = awaited_by(job) if met is None else met[0]
    return Records(line=line, job=job, other=job_of(store, other))


def _from_notes(store: Store, schedule: Schedule, at: int) -> Records:
    """How the schedule's times were changed around an instant."""
    where = NoteFilter(subject=subject_of("schedule", schedule.id))
    notes = [note for note in store.list_notes(where, limit=LARGEST_PAGE).items if _is_retiming(note)]
    later = [note for note in notes if note.at >= at]
    moved = next((note for note in notes if note.at < at and "tz" in _before(note)), None)
    same = None if moved is None else _same_local_time(schedule, at, _before(moved)["tz"])
    line = None if same is None else _line_at(store, schedule.id, same)
    return Records(retimed=later[-1] if later else None, moved=moved, same_time=line)


def _is_retiming(note: Note) -> bool:
    return note.verb != "created" and bool(timing_of(_before(note)))


def _before(note: Note) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.json.decode(note.before or "{}")
    return facts


def _same_local_time(schedule: Schedule, at: int, tz: str) -> int | None:
    """When the clocks of another zone showed what those of the schedule's zone show at an instant."""
    try:
        wall = find_zone(schedule.spec.tz).wall_of(at // SECOND)
        return find_zone(tz).instant_of(wall) * SECOND
    except BadTrigger:
        return None
