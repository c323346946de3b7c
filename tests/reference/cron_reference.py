"""Cron, slowly and obviously: the yardstick that the engine is held against.

An expression becomes plain sets of numbers. Evaluation walks the local dates one by one and, on a date that
matches, looks at every matching wall time and asks the zone which instants show it:

- one instant: a run;
- two (the clock was set back): the first one, and the second one too if the expression is a cadence;
- none (the clock was set forward): nothing if the expression runs in every hour or if the whole date is missing,
  else a run at the first instant after the gap.

Nothing of the engine is imported here.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from reference.zones import instant, load, offset_at, second_of

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

DAY = 86_400
MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MONTH_NAMES = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAY_NAMES = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


class Field(NamedTuple):
    """The range of one field, and the names that stand for its numbers."""

    lowest: int
    highest: int
    names: tuple[str, ...] = ()

    def number(self, text: str) -> int:
        return self.names.index(text) + self.lowest if text in self.names else int(text)

    def numbers(self, text: str) -> frozenset[int]:
        """The values of a field made only of stars, numbers, names, ranges and steps."""
        return frozenset(value for item in text.split(",") for value in self.of_item(item))

    def of_item(self, item: str) -> list[int]:
        body, slash, step = item.partition("/")
        if body in ("*", "?"):
            first, last = self.lowest, self.highest
        elif "-" in body:
            first, last = (self.number(end) for end in body.split("-"))
        else:
            first = self.number(body)
            last = self.highest if slash else first
        size = self.highest - self.lowest + 1
        if last < first:  # 22-2 goes on after 23 with 0
            last += size
        return [v if v <= self.highest else v - size for v in range(first, last + 1, int(step or 1))]

    def is_cadence(self, text: str) -> bool:
        """Whether an item spans the whole field: `*`, `0-59`, `0/n`, or one of them with a step."""
        return len(self.numbers(text)) > 1 and any(self._spans(item) for item in text.split(","))

    def _spans(self, item: str) -> bool:
        body, slash, _ = item.partition("/")
        if body == "*":
            return True
        if "-" in body:
            return [int(end) for end in body.split("-")] == [self.lowest, self.highest]
        return bool(slash) and int(body) == self.lowest


SECOND, MINUTE, HOUR = Field(0, 59), Field(0, 59), Field(0, 23)
DAY_OF_MONTH, MONTH, YEAR = Field(1, 31), Field(1, 12, tuple(MONTH_NAMES)), Field(1970, 2199)
UNIX_WEEKDAY, QUARTZ_WEEKDAY = Field(0, 6, tuple(WEEKDAY_NAMES)), Field(1, 7, tuple(WEEKDAY_NAMES))


@dataclass(frozen=True)
class Expression:
    """A parsed expression: numbers, and the text of the two day fields."""

    times: list[int]  # the seconds of a day at which it runs, sorted
    months: frozenset[int]
    years: frozenset[int] | None  # None if no year is written: all of them
    day_of_month: str
    day_of_week: str
    weekday: Field
    every_hour: bool
    cadence: bool
    zone: str | None
    _days: dict[tuple[int, int], set[int]] = field(default_factory=dict, repr=False, compare=False)

    def runs_on(self, day: date) -> bool:
        month = (day.year, day.month)
        if month not in self._days:
            self._days[month] = self.days_in(*month)
        return day.day in self._days[month]

    def days_in(self, year: int, month: int) -> set[int]:
        """The days of one month on which it runs."""
        if month not in self.months or (self.years is not None and year not in self.years):
            return set()
        by_number = {d for item in self.day_of_month.split(",") for d in numbered_days(item, year, month)}
        by_weekday = {d for item in self.day_of_week.split(",") for d in weekday_days(item, self.weekday, year, month)}
        if is_star(self.day_of_month) or is_star(self.day_of_week):
            return by_number & by_weekday
        return by_number | by_weekday


def is_star(day_field: str) -> bool:
    """Whether a day field leaves the choice to the other one: its first character decides."""
    return day_field[0] in "?*"


def numbered_days(item: str, year: int, month: int) -> set[int]:
    """The days of a month that one item of the day-of-month field names."""
    last = monthrange(year, month)[1]
    if item == "LW":
        return {max(d for d in range(1, last + 1) if is_working_day(year, month, d))}
    body = item.removesuffix("W")
    if body.startswith("L"):
        wanted = last - int(body[2:] or 0)
    elif body != item:
        wanted = int(body)
    else:
        return {d for d in DAY_OF_MONTH.of_item(item) if d <= last}
    if not 1 <= wanted <= last:
        return set()
    if body == item:
        return {wanted}
    working = [d for d in range(1, last + 1) if is_working_day(year, month, d)]
    return {min(working, key=lambda d: abs(d - wanted))}


def is_working_day(year: int, month: int, day: int) -> bool:
    return date(year, month, day).isoweekday() <= 5


def weekday_days(item: str, weekday: Field, year: int, month: int) -> set[int]:
    """The days of a month that one item of the day-of-week field names."""
    first_weekday, last = monthrange(year, month)

    def days_with(numbers: list[int]) -> list[int]:
        sundays_first = {(number - weekday.lowest) % 7 for number in numbers}
        return [d for d in range(1, last + 1) if (first_weekday + d) % 7 in sundays_first]

    if "#" in item:
        name, nth = item.split("#")
        return set(days_with([weekday.number(name)])[int(nth) - 1 : int(nth)])
    if item.endswith("L"):
        return {days_with([weekday.number(item[:-1])])[-1]}
    return set(days_with(weekday.of_item(item)))


@lru_cache(maxsize=64)
def parse(text: str, dialect: str | None = None) -> Expression:
    """Understand a valid expression; what a wrong one does is not this module's business."""
    words = text.upper().split()
    zone = None
    if "=" in words[0]:
        zone = text.split(maxsplit=1)[0].partition("=")[2]
        words = words[1:]
    if words[0].startswith("@"):
        words = MACROS[words[0].lower()].split()
    quartz = dialect == "quartz" or (dialect is None and len(words) == 7)
    if len(words) == 5:
        words = ["0", *words]
    second, minute, hour, day_of_month, month, day_of_week, *year = words
    hours, minutes, seconds = HOUR.numbers(hour), MINUTE.numbers(minute), SECOND.numbers(second)
    return Expression(
        times=sorted(h * 3600 + m * 60 + s for h in hours for m in minutes for s in seconds),
        months=MONTH.numbers(month),
        years=YEAR.numbers(year[0]) if year else None,
        day_of_month=day_of_month,
        day_of_week=day_of_week,
        weekday=QUARTZ_WEEKDAY if quartz else UNIX_WEEKDAY,
        every_hour=len(hours) == 24,
        cadence=SECOND.is_cadence(second) or MINUTE.is_cadence(minute) or HOUR.is_cadence(hour),
        zone=zone,
    )


def wall_second(wall: datetime) -> int:
    """A wall time as if it were UTC: the epoch second before any offset is taken off."""
    return (wall - datetime(1970, 1, 1)) // timedelta(seconds=1)


def instants_of(zone: ZoneInfo, wall: datetime) -> list[int]:
    """The instants at which the zone's clocks show a wall time: none in a gap, two in a fold."""
    found = set()
    for fold in (0, 1):
        offset = wall.replace(tzinfo=zone, fold=fold).utcoffset()
        second = wall_second(wall - offset)
        if instant(second).astimezone(zone).replace(tzinfo=None, fold=0) == wall:
            found.add(second)
    return sorted(found)


def gap_end(zone: ZoneInfo, wall: datetime) -> int:
    """The first instant after the gap that a wall time is in."""
    before, after = (wall.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    low, high = wall_second(wall - after), wall_second(wall - before)
    new_offset = offset_at(zone, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if offset_at(zone, middle) == new_offset else (middle, high)
    return high


def date_exists(zone: ZoneInfo, day: date) -> bool:
    """Whether any clock of the zone ever showed the date (Samoa had no 30 December 2011)."""
    first = datetime(day.year, day.month, day.day)
    last = first + timedelta(seconds=DAY - 1)
    if instants_of(zone, first) or instants_of(zone, last):
        return True
    return gap_end(zone, first) != gap_end(zone, last)


def constant_offset(zone: ZoneInfo, day: date) -> int | None:
    """The offset of a date when it is the same from two days before to two days after, else None."""
    noon = wall_second(datetime(day.year, day.month, day.day, 12))
    offsets = {offset_at(zone, noon + shift * DAY) for shift in (-2, -1, 0, 1, 2)}
    return offsets.pop() if len(offsets) == 1 else None


def instants_on(expression: Expression, zone: ZoneInfo, day: date) -> list[int]:
    """All runs whose wall time is on one local date."""
    if not expression.runs_on(day):
        return []
    midnight = datetime(day.year, day.month, day.day)
    offset = constant_offset(zone, day)
    if offset is not None:  # an ordinary date: every wall time is one instant
        start = wall_second(midnight) - offset
        return [start + time for time in expression.times]
    found: set[int] = set()
    for time in expression.times:
        wall = midnight + timedelta(seconds=time)
        passes = instants_of(zone, wall)
        if passes:
            found.update(passes if expression.cadence else passes[:1])
        elif not expression.every_hour and date_exists(zone, day):
            found.add(gap_end(zone, wall))
    return sorted(found)


def local_date(zone: ZoneInfo, second: int) -> date:
    return instant(second).astimezone(zone).date()


def occurrences(text: str, zone_name: str, start: int, end: int, *, dialect: str | None = None) -> list[int]:
    """Every run in (start, end], as epoch seconds, sorted."""
    expression = parse(text, dialect)
    zone = load(expression.zone or zone_name)
    day = local_date(zone, start) - timedelta(days=2)
    last_day = local_date(zone, end) + timedelta(days=2)
    found: set[int] = set()
    while day <= last_day:
        found.update(t for t in instants_on(expression, zone, day) if start < t <= end)
        day += timedelta(days=1)
    return sorted(found)


def next_after(text: str, zone_name: str, second: int, limit_days: int, *, dialect: str | None = None) -> int | None:
    """The first run after an instant, or None if no local date up to limit_days later has one."""
    return _first(text, zone_name, second, limit_days, dialect, 1)


def previous_before(
    text: str, zone_name: str, second: int, limit_days: int, *, dialect: str | None = None
) -> int | None:
    """The last run before an instant, or None if no local date up to limit_days earlier has one."""
    return _first(text, zone_name, second, limit_days, dialect, -1)


def _first(text: str, zone_name: str, second: int, limit_days: int, dialect: str | None, direction: int) -> int | None:
    expression = parse(text, dialect)
    zone = load(expression.zone or zone_name)
    today = local_date(zone, second)

    def runs(days_away: int) -> list[int]:
        on_date = instants_on(expression, zone, today + timedelta(days=days_away * direction))
        return [t for t in on_date if (t - second) * direction > 0]

    for days_away in range(-2, limit_days + 1):
        found = runs(days_away)
        if found:  # a clock set back at midnight lets the neighbouring date come first
            found += runs(days_away + 1)
            return min(found) if direction > 0 else max(found)
    return None


def never_fires(text: str, *, dialect: str | None = None) -> bool:
    """Whether no date of 1970 through 2199 matches."""
    expression = parse(text, dialect)
    return not any(expression.days_in(year, month) for year in range(1970, 2200) for month in range(1, 13))


def runs_of(text: str, zone_name: str, after: datetime, count: int) -> list[int]:
    """The next runs one after the other, for a small table."""
    found: list[int] = []
    second: int | None = second_of(after)
    while second is not None and len(found) < count:
        second = next_after(text, zone_name, second, 3000)
        if second is not None:
            found.append(second)
    return found
