"""Finds properties of a rule that would surprise its author, with the dates on which they will."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rota.triggers.cron_field import (
    DAY_OF_MONTH,
    FIRST_YEAR,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    UNIX_WEEKDAY,
    WEEKDAYS,
    YEAR,
    parse_field,
)
from rota.triggers.month_days import MONTH_LENGTHS
from rota.triggers.phrases import ENGLISH
from rota.triggers.trigger import Caveat, wall_datetime
from rota.triggers.zone import DAY, Span, Zone, date_is_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rota.triggers.calendar_rule import CalendarRule
    from rota.triggers.cron_text import CronFields
    from rota.triggers.wall_pattern import WallPattern

MOST_SHOWN = 3  # wall times named per clock change
MOST_NAMED = 2  # hours (or minutes) that are named one by one; more of them are a span in which every second is meant
FIFTH = "only about one month in three has a fifth such weekday: no run in the others"

_FIFTHS = sum(1 << 5 * day + 4 for day in range(7))


class DatedRule(Protocol):
    """A calendar trigger: its rule, and the dates that it names."""

    @property
    def rule(self) -> CalendarRule: ...

    def wall_dates(self, first: int, end: int, /) -> Iterable[int]: ...

    def anchor_day_of_month(self) -> int: ...


def cron_caveats(pattern: WallPattern, zone: Zone, low: int, high: int) -> Iterator[Caveat]:
    """The caveats of a cron expression between two instants."""
    fields = pattern.fields
    yield from _day_fields(fields)
    yield from _lone_steps(fields)
    yield from _every_second_of_an_hour(fields)
    yield from _rare_dates(fields)
    yield from _clock_changes(
        zone,
        low,
        high,
        lambda first, end: _walls(pattern, first, end),
        every_hour=fields.is_every_hour,
        cadence=fields.is_cadence,
    )


def calendar_caveats(trigger: DatedRule, zone: Zone, time: int, low: int, high: int) -> Iterator[Caveat]:
    """The caveats of a calendar rule between two instants."""
    yield from _rare_calendar_dates(trigger)

    def walls(first: int, end: int) -> list[int]:
        days = trigger.wall_dates(first // DAY, end // DAY + 1)
        return [day * DAY + time for day in days if first <= day * DAY + time < end]

    yield from _clock_changes(zone, low, high, walls, every_hour=False, cadence=False)


def _clock_changes(
    zone: Zone,
    low: int,
    high: int,
    walls: Callable[[int, int], list[int]],
    *,
    every_hour: bool,
    cadence: bool,
) -> Iterator[Caveat]:
    """One caveat per clock change that touches the rule."""
    span = zone.span(low)
    while span.hi <= high:
        span = zone.span(span.hi)
        if span.before < span.offset:
            yield from _gap(zone, span, walls, every_hour=every_hour)
        elif span.before > span.offset:
            yield from _fold(zone, span, walls, cadence=cadence)


def _gap(zone: Zone, span: Span, walls: Callable[[int, int], list[int]], *, every_hour: bool) -> Iterator[Caveat]:
    gap = (span.lo + span.before, span.lo + span.offset)
    swallowed = walls(*gap)
    if not swallowed:
        return
    at = zone.datetime_of(span.lo)
    if all(date_is_missing(wall, gap) for wall in swallowed):
        code, what = "gap.date", "no run, because the whole date is missing"
    elif every_hour:
        code, what = "gap.hourly", "no run, because the next one follows within the hour"
    else:
        code, what = "gap.instead", f"one run at {at:%H:%M} instead"
    jump = f"clocks jump from {_clock(gap[0])} to {_clock(gap[1])}"
    message = f"{_shown(swallowed)} does not exist in {zone.name} ({jump}): {what}"
    values = {**_change_values(zone, swallowed, *gap), "run_at": f"{at:%H:%M}"}
    yield Caveat("gap", message, at=at, code=code, values=values)


def _fold(zone: Zone, span: Span, walls: Callable[[int, int], list[int]], *, cadence: bool) -> Iterator[Caveat]:
    again = walls(span.lo + span.offset, span.lo + span.before)
    if not again:
        return
    code, what = ("repeat.both", "runs on both passes") if cadence else ("repeat.once", "runs once, on the first pass")
    late, early = span.lo + span.before, span.lo + span.offset
    back = f"clocks fall back from {_clock(late)} to {_clock(early)}"
    message = f"{_shown(again)} happens twice in {zone.name} ({back}): {what}"
    values = _change_values(zone, again, late, early)
    yield Caveat("repeat", message, at=zone.datetime_of(span.lo), code=code, values=values)


def _walls(pattern: WallPattern, first: int, end: int) -> list[int]:
    """The first few matching wall seconds in first <= wall < end."""
    found: list[int] = []
    wall = pattern.after(first - 1)
    while wall is not None and wall < end and len(found) <= MOST_SHOWN:
        found.append(wall)
        wall = pattern.after(wall)
    return found


def _shown(walls: list[int]) -> str:
    """2026-03-08 02:00, 02:30 and more."""
    times = [_clock(wall) for wall in walls[:MOST_SHOWN]]
    more = ["more"] if len(walls) > MOST_SHOWN else []
    return f"{wall_datetime(walls[0]):%Y-%m-%d} {ENGLISH.joined(times + more)}"


def _change_values(zone: Zone, walls: list[int], before: int, after: int) -> dict[str, str | int]:
    """The values of the message about a clock change."""
    times = [_clock(wall) for wall in walls[:MOST_SHOWN]]
    return {
        "date": f"{wall_datetime(walls[0]):%Y-%m-%d}",
        "times": ", ".join([*times, "…"] if len(walls) > MOST_SHOWN else times),
        "zone": zone.name,
        "clock_before": _clock(before),
        "clock_after": _clock(after),
    }


def _clock(wall: int) -> str:
    return f"{wall_datetime(wall):%H:%M:%S}" if wall % 60 else f"{wall_datetime(wall):%H:%M}"


def _day_fields(fields: CronFields) -> Iterator[Caveat]:
    days, weekdays = fields.day_of_month.text, fields.day_of_week.text
    both = f"day-of-month '{days}' and day-of-week '{weekdays}' are both given"
    if fields.is_either:
        message = f"{both}: it runs on days that match either one (or), as Unix cron does"
        yield Caveat("day-or", message, code="day.or", values={"days": days, "weekdays": weekdays})
    elif "*" not in {days, weekdays} and "?" not in {days, weekdays}:
        message = f"{both}, and one begins with '*': it runs only on days that match both (and)"
        yield Caveat("day-and", message, code="day.and", values={"days": days, "weekdays": weekdays})


def _lone_steps(fields: CronFields) -> Iterator[Caveat]:
    """Steps that leave one value: `*/60` minutes is minute 0 alone, and no interval of an hour."""
    kinds = (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, UNIX_WEEKDAY, YEAR)  # weekdays are names in the text by now
    for kind, field in zip(kinds, (*fields[:6], fields.year), strict=True):
        for item in field.text.split(",") if field else ():
            values = parse_field(item, kind).values if "/" in item else []
            if len(values) == 1:
                only = _value_text(kind.name, values[0])
                yield Caveat(
                    "step",
                    f"{kind.name} field '{item}': the step leaves one value only, {only}; "
                    "it never counts on across the end of the field",
                    code="step",
                    values={"field": kind.name, "text": item, "only": only},
                )


def _value_text(kind: str, value: int) -> str:
    if kind == UNIX_WEEKDAY.name:
        return WEEKDAYS[value]
    return f"{kind} {value + FIRST_YEAR if kind == YEAR.name else value}"


def _every_second_of_an_hour(fields: CronFields) -> Iterator[Caveat]:
    """`* 9 * * *`: a star left of a named hour, if one run is nearly always meant."""
    seconds, minutes, hours = (len(field.values) for field in fields[:3])
    of_seconds = seconds == 60 and min(minutes, hours) <= MOST_NAMED
    if not of_seconds and not (seconds == 1 and minutes == 60 and hours <= MOST_NAMED):
        return
    rate = "second" if of_seconds else "minute"
    zero = parse_field("0", SECOND)
    one = fields._replace(second=zero if of_seconds else fields.second, minute=zero if minutes == 60 else fields.minute)
    runs = f"it runs every {rate} of the times that it names, {seconds * minutes * hours:,} times on each such day"
    values: dict[str, str | int] = {"times": seconds * minutes * hours, "text": one.text}
    yield Caveat("every", f"{runs}; for one run, write '{one.text}'", code=f"every.{rate}", values=values)


def _rare_dates(fields: CronFields) -> Iterator[Caveat]:
    """Days that some of the named months never have, or have only in leap years."""
    if fields.is_either and fields.day_of_week.mask:
        return  # the weekday keeps it firing anyway
    months = fields.month.values
    named = fields.day_of_month.text.split(",")  # a day inside a range or a step is no surprise
    for day in (29, 30, 31):
        without = [ENGLISH.name("months", month - 1) for month in months if _longest(month) < day]
        if without and str(day) in named:
            message = f"{ENGLISH.joined(without)} never {_has(without)} day {day}: no run on it there"
            yield Caveat("rare-date", message, code="rare.never", values={"months": ", ".join(without), "day": day})
    if months == [2] and fields.day_of_month.mask == 1 << 29:
        message = "29 February exists only in leap years: no run for three years (or seven) in a row"
        yield Caveat("rare-date", message, code="rare.leap")
    weekday = fields.day_of_week
    if weekday.nth and not weekday.mask and not weekday.nth & ~_FIFTHS:
        yield Caveat("rare-date", FIFTH, code="rare.fifth")


def _longest(month: int) -> int:
    return 29 if month == 2 else MONTH_LENGTHS[month - 1]


def _has(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _rare_calendar_dates(trigger: DatedRule) -> Iterator[Caveat]:
    rule = trigger.rule
    if rule.nth == 5:
        yield Caveat("rare-date", FIFTH, code="rare.fifth")
    day = trigger.anchor_day_of_month()
    if rule.weekday is not None or rule.unit not in {"months", "quarters", "years"} or day <= 28:
        return
    if rule.month_end == "skip":
        yield Caveat("rare-date", f"months without day {day} are skipped", code="rare.skipped", values={"day": day})
    elif rule.month_end == "clamp":
        message = f"in months without day {day} it runs on their last day"
        yield Caveat("rare-date", message, code="rare.clamped", values={"day": day})
