"""Says which nominal times of a schedule are still open, by its rule, its bounds and earlier decisions.

The rule names the times. A detour replaces the rule for a while: within it, only the times that it lists are
occurrences. A pause over missed runs, an announced run that is kept in another zone, and a local date that a zone
change put into the past are detours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota.model.micros import SECOND
from rota.model.reasons import reason_text
from rota.model.schedules.done import done_day, done_wall, later, past_of, past_with_passed, wall_of
from rota.model.schedules.schedule import PAUSED, Ahead, Detour, Past

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.model.schedules.schedule import Schedule

# Why an occurrence made no job, in the ledger's words. The reasons of an overlap and of a key also name the job.
OVERLAP = "overlap"  # with the job
UNIQUE = "unique"  # with the job
MISSED = reason_text("missed")  # its time had passed
NOT_CLAIMED = reason_text("not_claimed")  # its job was created before it was due, and no worker claimed it
DISABLED = reason_text("disabled")
RETIRED = reason_text("retired")
RETIMED = reason_text("retimed")
SILENT = (PAUSED, DISABLED, RETIRED, RETIMED)  # an edit decided it: how the reason begins


class Skip(Struct, frozen=True, kw_only=True):
    """Occurrences that made no job, as the range after_at < t <= through_at."""

    after_at: int
    through_at: int
    count: int
    outcome: str  # skipped | coalesced
    reason: str  # begins with one of the words above

    @property
    def word(self) -> str:
        """Why, as one word of a few: overlap, unique, paused, disabled, catch-up or coalesced."""
        return "coalesced" if self.outcome == "coalesced" else self.reason.partition(" ")[0].rstrip(":")


def next_slot(schedule: Schedule, after: int) -> int | None:
    """The first nominal time later than `after` that is open: within the schedule's bounds and never fired before."""
    return None if schedule.is_spent else _next(schedule, max(after, schedule.made_through))


def coming_slot(schedule: Schedule, after: int) -> int | None:
    """The next run after an instant, whether its job is made already or not."""
    if not schedule.has_jobs_ahead:
        return next_slot(schedule, after)
    made = _next(schedule, max(after, schedule.fired_through))
    return made if made is not None and made <= schedule.made_through else next_slot(schedule, after)


def slots_after(schedule: Schedule, after: int) -> Iterator[int]:
    """The next runs after an instant, one after the other."""
    if schedule.has_jobs_ahead or schedule.detours or schedule.taken:
        while (slot := coming_slot(schedule, after)) is not None:
            yield slot
            after = slot
    elif not schedule.is_spent:
        yield from _slots_by_rule(schedule, max(after, schedule.made_through))


def last_slot(schedule: Schedule, until: int) -> int | None:
    """The last nominal time at or before `until` that is open."""
    if schedule.is_spent:
        return None
    slot = _last(schedule, until)
    return slot if slot is not None and slot > schedule.made_through else None


def settled_through(schedule: Schedule, now: int) -> int:
    """The instant through which decisions are final. Jobs created for later times can still be revoked."""
    if not schedule.has_jobs_ahead:
        return schedule.fired_through
    return max(schedule.fired_through, min(schedule.made_through, _last(schedule, now) or 0))


def count_slots(schedule: Schedule, after: int, through: int) -> int:
    """How many nominal times lie in after < t <= through, by the rule alone."""
    after = after if schedule.spec.start is None else max(after, schedule.spec.start - 1)
    return schedule.trigger.count_seconds(after // SECOND, through // SECOND) if through > after else 0


def count_open(schedule: Schedule, after: int, through: int) -> int:
    """How many of them are left by the detours, those that the detours list included."""
    spans = list(_spans(_all_detours(schedule), after, through))
    return sum(1 if is_listed else count_slots(schedule, low, high) for low, high, is_listed in spans)


def skip_range(schedule: Schedule, through: int, outcome: str, reason: str, *, since: int | None = None) -> list[Skip]:
    """The skips of every open occurrence up to `through`, or of those later than `since`; empty if none is."""
    if schedule.is_spent:
        return []
    end = schedule.spec.end
    after = schedule.made_through if since is None else max(since, schedule.made_through)
    skips = []
    for low, high, is_listed in _spans(_all_detours(schedule), after, through):
        last = high if is_listed else _last_by_rule(schedule, high if end is None else min(high, end))
        if last is not None and last > low:
            count = 1 if is_listed else count_slots(schedule, low, last)
            skips.append(Skip(after_at=low, through_at=last, count=count, outcome=outcome, reason=reason))
    return skips


def low_of(schedule: Schedule, slot: int, after: int) -> int:
    """The start of a slot's record, given the slot before it. Times in a detour have records of their own."""
    detours = _all_detours(schedule)
    passed = [detour.through for detour in detours if detour.through < slot]
    listed = [one for detour in detours for one in detour.slots if one < slot]
    entered = [detour.after for detour in detours if detour.after < slot]
    return max([after, *passed, *listed, *entered])


def with_ahead(schedule: Schedule, **changes: Any) -> Schedule:
    """The schedule with other fields of `ahead`; None if none is set."""
    ahead = msgspec.structs.replace(schedule.ahead or Ahead(), **changes)
    return msgspec.structs.replace(schedule, ahead=None if ahead == Ahead() else ahead)


def trimmed(schedule: Schedule) -> Schedule:
    """The schedule without detours that are past. If the next detour has no open time, it is passed to its end,
    unless it holds dates that are done by another clock or rule: a change of the rule opens these again."""
    if schedule.ahead is None:
        return schedule
    through = schedule.fired_through
    left: list[Detour] = []
    for detour in schedule.detours:
        slots = tuple(slot for slot in detour.slots if slot > through)
        is_next = detour.after <= through or not _is_open(schedule, through, detour.after)
        if left or slots or not is_next or (detour.is_date and detour.through > through):
            left.append(msgspec.structs.replace(detour, slots=slots))
        else:
            through = max(through, detour.through)
    taken = tuple(span for span in schedule.taken if span[1] > through)
    past = past_with_passed(schedule, through, left) or schedule.ahead.past
    passed = msgspec.structs.replace(schedule, fired_through=through)
    return with_ahead(passed, detours=tuple(left), taken=taken, past=past)


def _is_open(schedule: Schedule, after: int, through: int) -> bool:
    """Whether the rule names a time in between."""
    slot = _next_by_rule(schedule, after)
    return slot is not None and slot <= through


def with_detour(schedule: Schedule, detour: Detour) -> Schedule:
    """The schedule with one more detour, which replaces the parts of others that it covers."""
    return with_ahead(schedule, detours=_laid(schedule.detours, detour))


def _laid(detours: tuple[Detour, ...], detour: Detour) -> tuple[Detour, ...]:
    parts = [detour]
    for other in detours:
        early, late = min(other.through, detour.after), max(other.after, detour.through)
        if other.after < early:
            parts.append(part_of(other, other.after, early))
        if late < other.through:
            parts.append(part_of(other, late, other.through))
    return tuple(sorted(parts, key=lambda part: part.after))


def _all_detours(schedule: Schedule) -> tuple[Detour, ...]:
    """The detours, and the spans that were decided while the clock stood ahead: nothing in those is open."""
    detours = schedule.detours
    for after, through in schedule.taken:
        detours = _laid(detours, Detour(after, through))
    return detours


def part_of(detour: Detour, after: int, through: int) -> Detour:
    slots = tuple(slot for slot in detour.slots if after < slot <= through)
    return msgspec.structs.replace(detour, after=after, through=through, slots=slots)


def silenced(schedule: Schedule, through: int, why: str) -> tuple[Schedule, list[Skip]]:
    """The schedule after a silence up to `through`, and the skips of the times within it.

    Times missed before the silence stay open: catch-up decides about them. The silence decides on the times that fell
    into it and on no other, for the time after the last of them may be another one by another zone's clock.
    """
    since = schedule.quiet_since
    if through <= since:
        return schedule, []  # it was over before it began
    skips = skip_range(schedule, through, "skipped", why, since=since)
    if not skips:
        return schedule, []
    last = skips[-1].through_at
    first = next_slot(schedule, schedule.made_through)
    if first is not None and first <= since:
        return with_detour(_with_silenced(schedule, since, last), Detour(since, last)), skips
    passed = trimmed(msgspec.structs.replace(schedule, fired_through=max(schedule.fired_through, last)))
    if not schedule.trigger.is_dated and past_of(passed) == past_of(schedule):
        return passed, skips
    past = Past(past_of(schedule).start, passed.fired_through, done_wall(passed), done_day(schedule, since))
    return with_ahead(passed, past=past), skips  # the dates that it passes are not run


def _with_silenced(schedule: Schedule, since: int, through: int) -> Schedule:
    """The schedule that remembers the local times of another zone's clock which fell into a silence."""
    zoned = [(slot, one.zone) for one in schedule.detours if one.zone for slot in one.slots]
    walls = [wall_of(schedule, slot, zone) for slot, zone in zoned if since < slot <= through]
    past = past_of(schedule)
    return (
        with_ahead(schedule, past=msgspec.structs.replace(past, done=later(past.done, *walls))) if walls else schedule
    )


def _next(schedule: Schedule, after: int) -> int | None:
    for detour in _all_detours(schedule):
        if detour.through <= after:
            continue
        slot = _next_by_rule(schedule, after) if after < detour.after else None
        if slot is not None and slot <= detour.after:
            return slot
        listed = next((slot for slot in detour.slots if slot > after), None)
        if listed is not None:
            return listed
        after = detour.through
    return _next_by_rule(schedule, after)


def _last(schedule: Schedule, until: int) -> int | None:
    end = schedule.spec.end
    for low, high, is_listed in reversed(list(_spans(_all_detours(schedule), schedule.fired_through, until))):
        slot = high if is_listed else _last_by_rule(schedule, high if end is None else min(high, end))
        if slot is not None and slot > low:
            return slot
    return None


def _next_by_rule(schedule: Schedule, after: int) -> int | None:
    spec = schedule.spec
    if spec.start is not None:
        after = max(after, spec.start - 1)
    second = schedule.trigger.next_second(after // SECOND)
    if second is None:
        return None
    slot = second * SECOND
    return slot if spec.end is None or slot <= spec.end else None


def _slots_by_rule(schedule: Schedule, after: int) -> Iterator[int]:
    start, end, next_second = schedule.spec.start, schedule.spec.end, schedule.trigger.next_second
    second = next_second((after if start is None else max(after, start - 1)) // SECOND)
    while second is not None and (end is None or second * SECOND <= end):
        yield second * SECOND
        second = next_second(second)


def _last_by_rule(schedule: Schedule, until: int) -> int | None:
    second = schedule.trigger.second_before(until // SECOND + 1)
    if second is None:
        return None
    slot = second * SECOND
    return slot if schedule.spec.start is None or slot >= schedule.spec.start else None


def _spans(detours: tuple[Detour, ...], after: int, through: int) -> Iterator[tuple[int, int, bool]]:
    """The spans of after < t <= through that the rule decides, and each time that a detour lists (the last value),
    in order."""
    for detour in detours:
        if detour.through <= after or detour.after >= through:
            continue
        if after < detour.after:
            yield after, detour.after, False
        for slot in detour.slots:
            if after < slot <= through:
                yield slot - 1, slot, True
        after = max(after, detour.through)
    if after < through:
        yield after, through, False
