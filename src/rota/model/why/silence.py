"""Explains why a schedule is silent (it is retired, disabled or paused, by itself or with its tenant), and how to
resume it.

Several of these can hold at once. The fix names a step for each of them, because one alone changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.micros import iso_text
from rota.model.schedules import slots
from rota.model.schedules.origin import describe_origin
from rota.model.schedules.schedule import is_over
from rota.model.why.job import Answer

if TYPE_CHECKING:
    from rota.model.schedules.schedule import Pause, Schedule
    from rota.model.why.job import Values


def silence_answer(schedule: Schedule, at: int, now: int) -> Answer | None:
    """The answer about a time that is not fired because the schedule is silent; None if it is not."""
    if schedule.origin.is_retired:
        origin = describe_origin(schedule.origin)
        words, fix = f"The schedule is retired: {origin} no longer has it.", "Declare it again, or remove it."
        return Answer(
            outcome=f"skipped: {slots.RETIRED}", words=words, fix=fix, code="open.retired", values={"origin": origin}
        )
    if not schedule.is_enabled:
        words = " ".join(
            ["The schedule is disabled.", *(f"It is also {pause.words}." for pause in _held(schedule, now))]
        )
        fix = steps_to_go_on(schedule, now)
        return Answer(outcome=f"skipped: {slots.DISABLED}", words=words, fix=fix, code="open.disabled")
    return None if schedule.silence is None else _paused(schedule, at, schedule.silence, now)


def steps_to_go_on(schedule: Schedule, now: int) -> str:
    """The commands that end all of its silences, in one sentence."""
    enable = [] if schedule.is_enabled else [f"`rota schedules enable {schedule.id}`"]
    steps = [*enable, *(_resume(schedule, pause) for pause in _held(schedule, now))]
    return f"{' and '.join(steps)}." if steps else ""


def _held(schedule: Schedule, now: int) -> list[Pause]:
    """The pauses that last."""
    return [pause for pause in (schedule.pause, schedule.tenant_pause) if pause is not None and not is_over(pause, now)]


def _paused(schedule: Schedule, at: int, longest: Pause, now: int) -> Answer | None:
    """A time that is not fired because of a pause; one that was missed before the pause began is not skipped by it."""
    pauses = [pause for pause in (schedule.pause, schedule.tenant_pause) if pause is not None]
    covering = [one for one in pauses if one.at <= at and (one.until is None or at < one.until)]
    fix = steps_to_go_on(schedule, now)
    if covering:
        pause = max(covering, key=lambda one: (one.until is None, one.until or 0))
        words, values = f"The schedule is {pause.words}.", _pause_values(pause)
        return Answer(outcome=f"skipped: {pause.words}", words=words, fix=fix, code="open.paused", values=values)
    if at >= min(pause.at for pause in pauses):
        return None  # it comes after the end of the pause
    words = (
        f"It was missed: no scheduler fired it before the schedule was {longest.words}. "
        f'When the schedule goes on, catchup="{schedule.spec.catchup}" decides about it.'
    )
    values = {**_pause_values(longest), "catchup": schedule.spec.catchup}
    return Answer(outcome="missed", words=words, fix=fix, code="missed_before_pause", values=values)


def _pause_values(pause: Pause) -> Values:
    until = None if pause.until is None else iso_text(pause.until)
    return {"by": pause.by, "reason": pause.reason, "until": until, "tenant": pause.tenant or None}


def _resume(schedule: Schedule, pause: Pause) -> str:
    what = f"tenants resume {pause.tenant}" if pause.tenant else f"schedules resume {schedule.id}"
    return f"`rota {what}`"
