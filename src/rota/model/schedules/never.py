"""Finds what would be accepted and then never run, because its time has passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.errors import BadOption
from rota.model.micros import datetime_of
from rota.model.schedules.slots import next_slot

if TYPE_CHECKING:
    from rota.model.schedules.schedule import Schedule


def why_never(schedule: Schedule, now: int) -> str | None:
    """Why a schedule can never run after now; None if it can, or if its times are not known."""
    if schedule.problem or schedule.is_spent or schedule.made_through > now:
        return None
    if schedule.spec.sync is not None:
        return None  # a collection may be synced by hand alone
    if next_slot(schedule, now) is not None:
        return None
    end = schedule.spec.end
    if end is not None and end < now:
        return f"its end, {datetime_of(end).isoformat()}, has passed"
    bounds = " within its start and end" if end is not None else ""
    return f"its times ({schedule.trigger.explain()}) have no run after now{bounds}"


def check_new(schedule: Schedule, now: int) -> None:
    """Refuse a new schedule that can never run."""
    why = why_never(schedule, now)
    if why is not None:
        raise BadOption(f"schedule '{schedule.id}' would never run: {why}; give it a time to come")


def check_pause_end(until: int | None, now: int) -> None:
    """Refuse a pause that is over before it begins."""
    if until is not None and until <= now:
        raise BadOption(
            f"until={datetime_of(until).isoformat()} has passed, so the pause would stop nothing; "
            "give a later instant, or leave it out to pause until somebody resumes it"
        )
