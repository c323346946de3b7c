"""Retiming: what other times, or the same times in another zone, leave of what a schedule has done and still has open.

A local date that has had its run does not run again, whatever zone or wall time a schedule gets. A local date that has
not is an occurrence, also where the new zone's clock puts it into the past: catch-up decides about it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from rota.model.micros import SECOND, datetime_of, micros_of
from rota.model.schedule import Detour
from rota.model.slots import last_slot, next_slot, part_of, trimmed, with_ahead, with_detour
from rota.triggers.rezoned import WallTrigger
from rota.triggers.trigger import wall_datetime, wall_second
from rota.triggers.zone import DAY, find_zone

if TYPE_CHECKING:
    from datetime import date, datetime

    from rota.model.schedule import Schedule, ScheduleSpec
    from rota.triggers import Trigger

MOST_OPEN = 100  # missed runs that a change of zone keeps one by one; older ones are recorded as skipped
FARTHEST = timedelta(hours=27)  # no two zones are further apart


def elsewhere(schedule: Schedule, spec: ScheduleSpec) -> Schedule:
    """Under another spec; where that moves it, it remembers where it was made."""
    stays = schedule.spec.tz == spec.tz or schedule.problem is not None  # a zone that is unknown cannot be left
    zone = "" if schedule.problem else schedule.origin.zone or ("" if stays else schedule.spec.tz)
    return msgspec.structs.replace(schedule, spec=spec, origin=msgspec.structs.replace(schedule.origin, zone=zone))


def is_same_rule(existing: Schedule, spec: ScheduleSpec) -> bool:
    """Whether only the zone around the rule changes."""
    if existing.problem or existing.spec.tz == spec.tz:
        return False
    moved = elsewhere(existing, spec)
    return str(existing.trigger.rezoned(spec.tz)) == str(moved.trigger)


def from_now(standing: Schedule, now: int) -> Schedule:
    """Nothing that lies behind is open, and nothing that was announced is kept; what is done stays done."""
    passed = trimmed(msgspec.structs.replace(standing, fired_through=max(standing.fired_through, now)))
    return passed if passed.ahead is None else with_ahead(passed, detours=())


def still_open(standing: Schedule, now: int) -> Schedule:
    """What was missed stays open; what was announced for later is not."""
    kept = trimmed(standing)
    cut = [part_of(detour, detour.after, min(detour.through, now)) for detour in kept.detours if detour.after < now]
    return with_ahead(kept, detours=tuple(cut))


def with_done(existing: Schedule, standing: Schedule, retimed: Schedule, now: int) -> Schedule:
    """The schedule at its new times, without the local dates and times that have had their run at the old ones."""
    if existing.problem:
        return retimed
    if not is_same_rule(existing, retimed.spec):
        return _without_done_date(standing, retimed, now)
    done = _done_wall(existing, standing, now)
    if done is None:
        return retimed
    passed = _passed(retimed, _last_done(existing, retimed, done))
    return _reopened(existing, passed, done) if retimed.fired_through == standing.fired_through else passed


def kept_next(existing: Schedule, standing: Schedule, moved: Schedule, now: int) -> Schedule | None:
    """The schedule in its new zone, which first runs what was announced or missed in the old one, at the old instants.

    None where no run was announced.
    """
    announced = next_slot(standing, now)
    if announced is None:
        return None
    first = _first_after(existing, moved, announced)
    done = None if first is None else moved.trigger.previous_before(first)
    through = announced if done is None else max(announced, micros_of(done))
    missed = open_slots(standing, now)
    after = missed[0] - 1 if missed else standing.fired_through
    passed = with_ahead(msgspec.structs.replace(moved, fired_through=after), detours=())
    zone = _zone_of(existing, announced)
    return with_detour(passed, Detour(after, through, (*missed, announced), zone))


def open_slots(schedule: Schedule, until: int) -> list[int]:
    """The newest open times up to an instant, oldest first."""
    slots: list[int] = []
    slot = last_slot(schedule, until)
    while slot is not None and len(slots) < MOST_OPEN:
        slots.append(slot)
        slot = last_slot(schedule, slot - 1)
    return slots[::-1]


def _zone_of(schedule: Schedule, slot: int) -> str:
    """The zone by whose clock a slot stands for a local date: the schedule's, unless it was announced in another."""
    return next((detour.zone for detour in schedule.detours if slot in detour.slots), "") or schedule.spec.tz


def _wall_of(schedule: Schedule, slot: int) -> datetime:
    """The local time that a slot stands for."""
    zone = _zone_of(schedule, slot)
    trigger = schedule.trigger if zone == schedule.spec.tz else schedule.trigger.rezoned(zone)
    return trigger.wall_time_of(datetime_of(slot))


def _first_after(existing: Schedule, moved: Schedule, kept: int) -> datetime | None:
    """The new zone's first run after one that is kept, and not for the same local time."""
    if not is_same_rule(existing, moved.spec):
        return moved.trigger.next_after(datetime_of(kept))
    guarded = existing.trigger.rezoned(moved.spec.tz, done_date=_wall_of(existing, kept))
    return guarded.next_after(datetime_of(kept))


def _done_wall(existing: Schedule, standing: Schedule, now: int) -> datetime | None:
    """The last local time that is decided on, or that is open at its old instant."""
    settled = standing.fired_through
    dates = [find_zone(existing.spec.tz).wall_of(one.through // SECOND) for one in standing.detours if one.is_date]
    walls = [wall_datetime(wall) for wall in dates]
    walls += [_wall_of(existing, slot) for detour in standing.detours for slot in detour.slots if slot <= now]
    trigger = _trigger_at(standing, settled)
    last = trigger.previous_before(datetime_of(settled + 1))
    is_new = existing.generation == 1 or settled <= existing.created_at  # else an earlier zone's clock may have said so
    if last is not None and not (is_new and micros_of(last) <= existing.created_at):
        walls.append(trigger.wall_time_of(last))
    return max(walls, default=None)


def _trigger_at(schedule: Schedule, instant: int) -> Trigger:
    """The rule by the clock that held then: within a detour it may be that of an earlier zone."""
    zones = [one.zone for one in schedule.detours if one.zone and one.after <= instant < one.through]
    return schedule.trigger.rezoned(zones[0]) if zones else schedule.trigger


def _last_done(existing: Schedule, retimed: Schedule, done: datetime) -> int:
    """Until when the new zone's clock shows local times that have had their run; 0 where it does not."""
    since = datetime_of(max([retimed.fired_through, *(detour.through for detour in retimed.detours)]))
    plain = retimed.trigger.next_after(since)
    first = existing.trigger.rezoned(retimed.spec.tz, done_date=done).next_after(since)
    if plain is None or first == plain:
        return 0
    last = None if first is None else retimed.trigger.previous_before(first)
    return micros_of(last or plain)


def _passed(schedule: Schedule, through: int) -> Schedule:
    """Nothing up to there is open but what was missed."""
    if not schedule.detours:
        return msgspec.structs.replace(schedule, fired_through=max(schedule.fired_through, through))
    after = schedule.detours[-1].through
    return with_detour(schedule, Detour(after, through)) if through > after else schedule


def _reopened(existing: Schedule, retimed: Schedule, done: datetime) -> Schedule:
    """With the local dates that are not done and that the new zone's clock puts before the last run, for zones may be
    more than a day apart. As the times that a clock jump skips, they become one run, right after the last."""
    moved = existing.trigger.rezoned(retimed.spec.tz, done_date=done.date())
    if not isinstance(moved, WallTrigger) or moved.done is None:
        return retimed
    last, spec = retimed.fired_through, retimed.spec
    low = max(micros_of(datetime_of(last) - FARTHEST), existing.created_at, (spec.start or 0) - 1)
    run = moved.next_after(datetime_of(low))
    if run is None or micros_of(run) > (last if spec.end is None else min(last, spec.end)):
        return retimed
    slot = (last // SECOND + 1) * SECOND
    return with_detour(retimed, Detour(last, slot, (slot,), retimed.spec.tz))


def _without_done_date(standing: Schedule, retimed: Schedule, now: int) -> Schedule:
    """Where the rule itself changed: without the rest of a local date that has had its run by the old one."""
    done = _done_date(standing, now) if standing.trigger.is_dated and retimed.trigger.is_dated else None
    if done is None:
        return retimed
    midnight = find_zone(retimed.spec.tz).instant_of(wall_second(done) + DAY)
    after, through = retimed.fired_through, midnight * SECOND - 1
    return with_detour(retimed, Detour(after, through, is_date=True)) if after < through else retimed


def _done_date(standing: Schedule, now: int) -> date | None:
    """The local date of today's run, where that has been; a date that an earlier edit left out is still done."""
    for detour in standing.detours:
        if detour.is_date and detour.through > now:
            return wall_datetime(find_zone(standing.spec.tz).wall_of(detour.through // SECOND)).date()
    last = standing.trigger.previous_before(datetime_of(min(standing.fired_through, now) + 1))
    fired_for = standing.last.fired_for  # of its trigger alone: a run by hand is no run of a date
    if last is None or fired_for is None:
        return None
    is_run = standing.created_at < micros_of(last) <= fired_for
    return standing.trigger.wall_time_of(last).date() if is_run else None
