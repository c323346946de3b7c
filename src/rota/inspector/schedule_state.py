"""Names the state of a schedule in one word: one rule for lists, pages, numbers and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from rota.errors import RotaError
from rota.model.micros import outside_calendar
from rota.model.schedules.slots import coming_slot

if TYPE_CHECKING:
    from rota.model.schedules.schedule import Schedule

ScheduleState = Literal["on", "paused", "disabled", "retired", "finished", "broken"]
STATES: tuple[ScheduleState, ...] = get_args(ScheduleState)


def schedule_problem(schedule: Schedule) -> str | None:
    """Why a schedule cannot be evaluated or shown; None if it can. Another version or a person may have written it."""
    if schedule.problem:
        return schedule.problem
    outside = _outside_calendar(schedule)
    return outside or _unreadable(schedule)


def schedule_state(schedule: Schedule, now: int) -> ScheduleState:
    return state_given(schedule_problem(schedule), schedule, now)


def state_given(problem: str | None, schedule: Schedule, now: int) -> ScheduleState:
    """The state of a schedule whose problem is known already."""
    if problem:
        return "broken"
    if schedule.origin.is_retired:
        return "retired"
    if not schedule.is_enabled:
        return "disabled"
    if schedule.silence is not None:
        return "paused"
    return "on" if schedule.next_at is not None or _has_run_ahead(schedule, now) else "finished"


def _unreadable(schedule: Schedule) -> str | None:
    try:
        str(schedule.trigger)
    except (RotaError, ValueError, ArithmeticError) as err:
        return str(err)
    return None


def _has_run_ahead(schedule: Schedule, now: int) -> bool:
    """Whether a job that was created before it is due has still to run."""
    return schedule.has_jobs_ahead and coming_slot(schedule, now) is not None


def _outside_calendar(schedule: Schedule) -> str:
    """The instants outside the calendar, so that no zone can show them; empty if there are none."""
    pauses = {pause.tenant or "pause": pause.until for pause in (schedule.pause, schedule.tenant_pause) if pause}
    return outside_calendar(
        created_at=schedule.created_at,
        updated_at=schedule.updated_at,
        next_at=schedule.next_at,
        start=schedule.spec.start,
        end=schedule.spec.end,
        last_run=schedule.last.enqueued_at,
        last_finished=schedule.last.finished_at,
        last_success=schedule.last.success_at,
        **{f"until ({name})": until for name, until in pauses.items()},
    )
