"""Finds the next runs of all schedules, the earliest first; a time that has passed is overdue, with its cause."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from rota.inspector.occurrences import coming_runs, coming_slots, local_start
from rota.inspector.schedule_state import schedule_state
from rota.model.micros import SECOND, datetime_of, optional_datetime
from rota.store.shared.liveness import live_nodes

if TYPE_CHECKING:
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Store

FAR = 400 * 24 * 3600 * SECOND  # how far ahead a next run is searched for
MINUTE, MINUTES = 60 * SECOND, 60
HOUR = MINUTES * MINUTE
MOST_OF_HOUR = 200  # schedules whose runs of the next hour are computed for one page
TOLERANCE = 5 * SECOND  # a scheduler that is alive fires within this time of the due time

Cause = Literal["no_scheduler", "behind", "sealed"]


class NextRun(Struct, frozen=True, kw_only=True):
    """A run that is to come, or that should have come."""

    schedule_id: str
    at: datetime  # by its schedule's own clock
    queue: str
    usual_seconds: float | None  # how long its last run took
    overdue_for: float = 0.0  # seconds
    cause: Cause | None = None  # why it is overdue
    since: datetime | None = None  # since when no scheduler has been alive, if one ever was


def next_runs(store: Store, limit: int = 10) -> list[NextRun]:
    """The earliest runs of all schedules. Only their schedules are read, by the index."""
    now = store.now()
    first = store.due_schedules(limit, now=now + FAR).schedules
    runs = [run for schedule in first for run in _runs(schedule, now, limit)]
    if any(run.overdue_for > 0 for run in runs):
        cause, since = why_overdue(store)
        runs = [replace(run, cause=cause, since=since) if run.overdue_for > 0 else run for run in runs]
    return sorted(runs, key=lambda run: (run.at, run.schedule_id))[:limit]


def next_hour(store: Store) -> list[int] | None:
    """How many runs each of the next 60 minutes has; None if more than 200 schedules are due in them."""
    now = store.now()
    due = store.due_schedules(MOST_OF_HOUR + 1, now=now + HOUR).schedules
    if len(due) > MOST_OF_HOUR:
        return None
    minutes = [0] * MINUTES
    for coming in coming_runs(due, now, now + HOUR - 1, MINUTES):
        if coming.count > MINUTES:  # more than once a minute: its mean
            minutes = [number + round(coming.count / MINUTES) for number in minutes]
            continue
        for at in coming.starts:
            minutes[min(MINUTES - 1, max(0, at - now) // MINUTE)] += 1
    return minutes


def overdue_schedules(store: Store, most: int) -> list[Schedule]:
    """Schedules that are to run, whose time has passed and that were not fired, the latest first."""
    now = store.now()
    return [one for one in store.due_schedules(most, now=now - TOLERANCE).schedules if is_late(one, now)]


def is_late(schedule: Schedule, now: int) -> bool:
    """Whether a schedule is late: one rule for numbers, tabs and searches. A schedule that fails can be late, too."""
    return overdue_for(schedule, now) > 0 and schedule_state(schedule, now) == "on"


def overdue_for(schedule: Schedule, now: int) -> int:
    """For how long its next run should have been fired and was not, in microseconds; 0 if it is in time."""
    due_at = schedule.due_at
    if due_at is None or schedule.silence is not None or due_at >= now - TOLERANCE:
        return 0
    return now - due_at


def _runs(schedule: Schedule, now: int, limit: int) -> list[NextRun]:
    due_at = schedule.due_at or 0
    usual = None if schedule.last.duration is None else schedule.last.duration / SECOND
    slots = coming_slots(schedule, now, limit)
    runs = [
        NextRun(schedule_id=schedule.id, at=local_start(schedule, slot), queue=schedule.spec.queue, usual_seconds=usual)
        for slot in slots
    ]
    if due_at < now - TOLERANCE:
        runs.append(
            NextRun(
                schedule_id=schedule.id,
                at=datetime_of(due_at),
                queue=schedule.spec.queue,
                usual_seconds=usual,
                overdue_for=(now - due_at) / SECOND,
            )
        )
    return runs


def why_overdue(store: Store) -> tuple[Cause, datetime | None]:
    """Why runs that are overdue were not fired; without a scheduler, since when none has been alive."""
    if store.sealed() is not None:
        return "sealed", None
    schedulers = [node for node in store.list_nodes() if "scheduler" in node.roles]
    if live_nodes(schedulers, store.now()):
        return "behind", None
    return "no_scheduler", optional_datetime(max((node.beat_at for node in schedulers), default=None))
