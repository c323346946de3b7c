"""Says which local times and dates of a schedule are decided, whatever zones and rules it has had.

An instant says which local time it stood for only by the clock that held then. So each change of the times stores the
last local time that was decided by the old clock. Times that are decided after the change are read by the schedule's
own clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.micros import SECOND, datetime_of
from rota.model.schedules.schedule import Past
from rota.triggers.trigger import wall_second
from rota.triggers.zone import DAY

if TYPE_CHECKING:
    from rota.model.schedules.schedule import Detour, Schedule
    from rota.triggers import Trigger


def past_of(schedule: Schedule) -> Past:
    """The past of a schedule, as far as it is known. If its times never changed, it has none before its creation."""
    if schedule.ahead is not None and schedule.ahead.past is not None:
        return schedule.ahead.past
    if schedule.generation == 1 or schedule.fired_through <= schedule.created_at:
        return Past(schedule.created_at, schedule.created_at)
    return _guessed(schedule)


def done_wall(schedule: Schedule) -> int | None:
    """The last local time that is decided, in wall seconds; None: none is."""
    past = past_of(schedule)
    return later(past.done, _own_wall(schedule, past.since, schedule.fired_through))


def done_day(schedule: Schedule, now: int) -> int | None:
    """The last local date, in days, for which a rule with one time a day has made a job; None: there is none.

    Jobs that were created for later dates do not count yet. Runs by hand never count.
    """
    past, ran = past_of(schedule), schedule.last.fired_for
    if ran is None or not schedule.trigger.is_dated:
        return past.day
    wall = _own_wall(schedule, past.since, min(ran, schedule.fired_through, now))
    return later(past.day, None if wall is None else wall // DAY)


def wall_at(trigger: Trigger, through: int) -> int | None:
    """The local time of the rule's last time at or before an instant."""
    second = trigger.second_before(through // SECOND + 1)
    return None if second is None else wall_second(trigger.wall_time_of(datetime_of(second * SECOND)))


def wall_of(schedule: Schedule, slot: int, zone: str) -> int | None:
    """The local time that a listed slot stands for, by the clock of the zone that it was announced in."""
    return wall_at(trigger_in(schedule, zone), slot)


def trigger_in(schedule: Schedule, zone: str) -> Trigger:
    """The schedule's rule by the clock of a zone; empty: of its own."""
    return schedule.trigger.rezoned(zone) if zone and zone != schedule.spec.tz else schedule.trigger


def past_with_passed(schedule: Schedule, through: int, left: list[Detour]) -> Past | None:
    """The known past once the schedule has passed times that were announced in another zone; None if it passes none.
    Such a run also stands for the local times that its own clock has passed by then."""
    reached = schedule.fired_through
    passed = [(slot, one.zone) for one in schedule.detours if one.zone for slot in one.slots if slot <= reached]
    if not passed:
        return None
    past, walls = past_of(schedule), [wall_of(schedule, slot, zone) for slot, zone in passed]
    is_over = not any(detour.slots for detour in left)
    own = _own_wall(schedule, past.since, through) if is_over else None
    ran = _own_wall(schedule, past.since, reached) if is_over else None
    days = [wall // DAY for wall in (*walls, ran) if wall is not None] if schedule.trigger.is_dated else []
    return Past(past.start, max(past.since, through), later(past.done, *walls, own), later(past.day, *days))


def later(*walls: int | None) -> int | None:
    """The latest of those that are known."""
    return max((wall for wall in walls if wall is not None), default=None)


def _own_wall(schedule: Schedule, since: int, through: int) -> int | None:
    """The local time of its last time in since < t <= through, by its own clock and within its bounds."""
    spec = schedule.spec
    low, high = max(since, (spec.start or 0) - 1), through if spec.end is None else min(through, spec.end)
    second = schedule.trigger.second_before(high // SECOND + 1)
    return None if second is None or second * SECOND <= low else wall_at(schedule.trigger, second * SECOND)


def _guessed(schedule: Schedule) -> Past:
    """The past of a record that was written before this was stored: the last time that lies behind counts as done."""
    through = schedule.fired_through
    zones = [one.zone for one in schedule.detours if one.zone and one.after <= through < one.through]
    done = wall_at(trigger_in(schedule, zones[0] if zones else ""), through)
    dates = [wall_at(schedule.trigger, one.through) for one in schedule.detours if one.is_date]
    ran = schedule.last.fired_for or 0
    own = _own_wall(schedule, schedule.created_at, through) if schedule.trigger.is_dated else None
    is_run = own is not None and _own_wall(schedule, schedule.created_at, min(ran, through)) == own
    days = [wall // DAY for wall in (*dates, own if is_run else None) if wall is not None]
    return Past(schedule.created_at, through, later(done, *dates), later(*days))
