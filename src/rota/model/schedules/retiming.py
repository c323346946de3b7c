"""Decides what a change of times or of the timezone leaves of what a schedule has done and still has open.

A local date that has had its run does not run again, whatever zone or wall time a schedule gets. A local date that has
not is an occurrence, also if the new zone's clock puts it into the past: catch-up decides about it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from rota.model.micros import SECOND, datetime_of, micros_of
from rota.model.schedules.done import done_day, done_wall, later, past_of, trigger_in, wall_at, wall_of
from rota.model.schedules.schedule import Detour, Past
from rota.model.schedules.slots import last_slot, next_slot, part_of, with_ahead, with_detour
from rota.triggers.rezoned import WallTrigger
from rota.triggers.trigger import wall_datetime
from rota.triggers.zone import DAY

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from rota.model.schedules.schedule import Schedule, ScheduleSpec
    from rota.triggers import Trigger

MOST_OPEN = 100  # missed runs that a change of zone keeps one by one; older ones are recorded as skipped
FARTHEST = timedelta(hours=27)  # no two zones are further apart


def elsewhere(schedule: Schedule, spec: ScheduleSpec) -> Schedule:
    """Under another spec; if that moves it, it remembers where it was made."""
    stays = schedule.spec.tz == spec.tz or schedule.problem is not None  # a zone that is unknown cannot be left
    zone = "" if schedule.problem else schedule.origin.zone or ("" if stays else schedule.spec.tz)
    return msgspec.structs.replace(schedule, spec=spec, origin=msgspec.structs.replace(schedule.origin, zone=zone))


def is_same_rule(existing: Schedule, spec: ScheduleSpec) -> bool:
    """Whether only the zone around the rule changes."""
    if existing.problem or existing.spec.tz == spec.tz:
        return False
    moved = elsewhere(existing, spec)
    return str(existing.trigger.rezoned(spec.tz)) == str(moved.trigger)


def from_now(standing: Schedule, retimed: Schedule, now: int) -> Schedule:
    """The schedule at its new times, which hold from now on: no time that is past is open, and no date that has had
    its run by the old rule is run by the new one."""
    through = max(retimed.fired_through, now)
    passed = with_ahead(msgspec.structs.replace(retimed, fired_through=through), detours=())
    if standing.problem:
        return _blocked(passed, _mended(standing, passed, now))
    if str(standing.trigger) == str(retimed.trigger):
        return _rebounded(standing, passed, now)
    day = done_day(standing, now)
    done = None if day is None or not retimed.trigger.is_dated else (day + 1) * DAY - 1
    return _blocked(passed, Past(now, through, done, day))


def moved(standing: Schedule, retimed: Schedule, now: int) -> Schedule:
    """The schedule by another zone's clock: times that were missed stay open; times announced for later do not."""
    reached = _reached(standing)
    listed = _kept_slots(standing, reached, now)
    settled, past = msgspec.structs.replace(standing, fired_through=reached), past_of(standing)
    done = later(done_wall(settled), *(wall_of(standing, slot, zone) for slot, zone in listed))
    known = Past(past.start, reached, done, done_day(standing, now))
    bare = with_ahead(msgspec.structs.replace(retimed, fired_through=reached), detours=())
    times = _reopened(_blocked(bare, known), past.start, done)
    return _with_kept(times, listed)


def kept_next(existing: Schedule, standing: Schedule, moved: Schedule, now: int) -> Schedule | None:
    """The schedule in its new zone, which first runs the times announced or missed in the old one, at the old instants.

    None if no run was announced.
    """
    announced = next_slot(standing, now)
    if announced is None:
        return None
    first = _first_after(existing, moved, announced)
    last = None if first is None else moved.trigger.previous_before(first)
    through = announced if last is None else max(announced, micros_of(last))
    missed = open_slots(standing, now)
    after = missed[0] - 1 if missed else _reached(standing)
    settled = msgspec.structs.replace(standing, fired_through=max(after, _reached(standing)))
    done = done_wall(settled) if is_same_rule(existing, moved.spec) else None
    known = Past(past_of(standing).start, settled.fired_through, done, done_day(settled, now))
    bare = with_ahead(msgspec.structs.replace(moved, fired_through=after), detours=(), past=known)
    zone = _zone_of(existing, announced)
    kept = [Detour(after, announced, (*missed, announced), zone), Detour(announced, through, is_date=True)]
    others = [Detour(slot - 1, slot, (slot,), own) for slot in missed if (own := _zone_of(existing, slot)) != zone]
    return _with_detours(bare, [one for one in (*kept, *others) if one.after < one.through])


def with_begun(created: Schedule) -> Schedule:
    """A new schedule whose start lies earlier today, and whose first run is made at once: that local time is done."""
    done = wall_at(created.trigger, created.created_at)
    day = done // DAY if done is not None and created.trigger.is_dated else None
    return with_ahead(created, past=Past(created.created_at, created.fired_through, done, day))


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


def _first_after(existing: Schedule, moved: Schedule, kept: int) -> datetime | None:
    """The new zone's first run after one that is kept, and not for the same local time."""
    if not is_same_rule(existing, moved.spec):
        return moved.trigger.next_after(datetime_of(kept))
    trigger = trigger_in(existing, _zone_of(existing, kept))
    guarded = existing.trigger.rezoned(moved.spec.tz, done_date=trigger.wall_time_of(datetime_of(kept)))
    return guarded.next_after(datetime_of(kept))


def _rebounded(standing: Schedule, passed: Schedule, now: int) -> Schedule:
    """The same local times by the same clock, from now on and within other bounds. A run that is kept stays kept,
    unless the new bounds leave it out or let a local time run before it."""
    past, after = past_of(standing), passed.fired_through
    listed = [(slot, one.zone) for one in standing.detours if one.zone for slot in one.slots]
    behind = [wall_of(standing, slot, zone) for slot, zone in listed if slot <= now]
    coming = [(slot, zone) for slot, zone in listed if slot > after]
    reached = standing if coming else msgspec.structs.replace(standing, fired_through=after)
    known = Past(past.start, after, later(done_wall(reached), *behind), done_day(standing, now))
    bare = with_ahead(_blocked(passed, msgspec.structs.replace(past, done=later(past.done, *behind))), past=known)
    if not coming:
        return bare
    slot, zone = coming[0]
    own = next_slot(bare, after)
    is_first = own is None or (wall_at(bare.trigger, own) or 0) >= (wall_of(standing, slot, zone) or 0)
    if not is_first or slot < (passed.spec.start or 0) or slot > (passed.spec.end or slot):
        return bare
    kept = [part_of(one, max(one.after, after), one.through) for one in standing.detours if one.through > after]
    return _with_detours(bare, [one for one in kept if one.zone or one.is_date])


def _mended(broken: Schedule, retimed: Schedule, now: int) -> Past:
    """The past of a schedule that could not be evaluated, as far as it is known: as it was stored before."""
    past = None if broken.ahead is None else broken.ahead.past
    if past is None:
        return Past(now, retimed.fired_through)
    done = past.done if broken.spec.trigger == retimed.spec.trigger else None
    return Past(now, retimed.fired_through, done, past.day)


def _blocked(schedule: Schedule, past: Past) -> Schedule:
    """The schedule with its past, and without the times that its clock has yet to show and that are done."""
    known = with_ahead(schedule, past=past)
    through = _blocked_through(schedule, past.done)
    return known if through is None else with_detour(known, Detour(schedule.fired_through, through, is_date=True))


def _blocked_through(schedule: Schedule, done: int | None) -> int | None:
    """The last of its times to come that is done; None: the next one is not."""
    trigger, after = schedule.trigger, datetime_of(schedule.fired_through)
    plain = trigger.next_after(after)
    if done is None or plain is None:
        return None
    first = _after_wall(trigger, done).next_after(after)
    if first is not None and first <= plain:
        return None
    last = None if first is None else trigger.previous_before(first)
    return micros_of(last or plain)


def _after_wall(trigger: Trigger, done: int | None) -> Trigger:
    """The rule for local times later than this one; for all of them if its local times are no identities."""
    return trigger if done is None else trigger.rezoned(trigger.tz, done_date=wall_datetime(done))


def _reached(standing: Schedule) -> int:
    """Up to where it is decided or was silent: a pause may have taken times out while earlier ones were missed."""
    silent = [one.through for one in standing.detours if not (one.zone or one.is_date)]
    return max([standing.fired_through, *silent])


def _kept_slots(standing: Schedule, reached: int, now: int) -> list[tuple[int, str]]:
    """The open times that stay at their old instants in another zone, each with its zone: those announced in an
    earlier one and missed, and those missed before a pause that is over. A run that stands for times which only the
    present clock has passed is left out: for the next clock they may be still to come."""
    listed = {slot for one in standing.detours for slot in one.slots if slot <= now}
    if reached > standing.fired_through:
        kept = {*listed, *open_slots(standing, reached)}
    else:
        kept = {slot for slot in listed if not _is_stand_in(standing, slot)}
    return [(slot, _zone_of(standing, slot)) for slot in sorted(kept)]


def _is_stand_in(schedule: Schedule, slot: int) -> bool:
    """Whether a listed slot is the one run that `_reopened` has made of several local times."""
    second = slot // SECOND
    return _zone_of(schedule, slot) == schedule.spec.tz and schedule.trigger.second_before(second + 1) != second


def _with_kept(schedule: Schedule, listed: list[tuple[int, str]]) -> Schedule:
    """The schedule with open times at old instants, of which the first may lie before all that is decided."""
    reached = schedule.fired_through
    after = min([reached, *(slot - 1 for slot, _ in listed)])
    block = [Detour(after, reached)] if after < reached else []
    passed = msgspec.structs.replace(schedule, fired_through=after)
    return _with_detours(passed, [*block, *(Detour(slot - 1, slot, (slot,), zone) for slot, zone in listed)])


def _with_detours(schedule: Schedule, detours: Iterable[Detour]) -> Schedule:
    for detour in detours:
        schedule = with_detour(schedule, detour)
    return schedule


def _reopened(schedule: Schedule, start: int, done: int | None) -> Schedule:
    """With the local times that are not done and that its clock puts before the last run. Like the times that a
    clock jump skips, they become one run, right after the last."""
    trigger, last, spec = schedule.trigger, schedule.fired_through, schedule.spec
    rest = _after_wall(trigger, done)
    if not isinstance(rest, WallTrigger) or rest.done is None:
        return schedule
    low = max(micros_of(datetime_of(last) - FARTHEST), start, (spec.start or 0) - 1)
    run = rest.next_after(datetime_of(low))
    if run is None or micros_of(run) > (last if spec.end is None else min(last, spec.end)):
        return schedule
    slot = (last // SECOND + 1) * SECOND
    return with_detour(schedule, Detour(last, slot, (slot,), spec.tz))
