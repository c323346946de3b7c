"""Finds schedules and pauses that would be accepted and then never take effect, because their time has passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.errors import BadOption
from rota.model.micros import datetime_of
from rota.model.schedules.slots import next_slot
from rota.sentences import Said, sentence

if TYPE_CHECKING:
    from rota.model.schedules.schedule import Schedule


def why_never(schedule: Schedule, now: int) -> Said | None:
    """Why a schedule can never run after now; None if it can, or if its times are not known."""
    if schedule.problem or schedule.is_spent or schedule.made_through > now:
        return None
    if schedule.spec.sync is not None:
        return None  # a collection may be synced by hand alone
    if next_slot(schedule, now) is not None:
        return None
    end = schedule.spec.end
    if end is not None and end < now:
        return sentence("never.ended", "its end, {end}, has passed", end=datetime_of(end).isoformat())
    bounds = " within its start and end" if end is not None else ""
    return sentence(
        "never.no_run",
        "its times ({rule}) have no run after now{bounds}",
        rule=schedule.trigger.explain(),
        bounds=bounds,
    )


def check_new(schedule: Schedule, now: int) -> None:
    """Refuse a new schedule that can never run."""
    why = why_never(schedule, now)
    if why is not None:
        raise BadOption(
            sentence(
                "never.refused",
                "schedule '{schedule}' would never run: {why}; give it a time to come",
                schedule=schedule.id,
                why=why,
            )
        )


def check_pause_end(until: int | None, now: int) -> None:
    """Refuse a pause that is over before it begins."""
    if until is not None and until <= now:
        raise BadOption(
            sentence(
                "never.pause",
                "until={until} has passed, so the pause would stop nothing; give a later instant, or "
                "leave it out to pause until somebody resumes it",
                until=datetime_of(until).isoformat(),
            )
        )
