"""Calendar intervals, slowly and obviously: every occurrence k = 0, 1, 2, … in turn.

The k-th date is always counted from the anchor, never from the date before it. A date and the wall time become an
instant as a fixed time of cron does: after a gap its end, in a fold the first pass, on a missing date none.

Nothing of the engine is imported here.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import MAXYEAR, date, datetime, timedelta
from itertools import count, takewhile
from typing import TYPE_CHECKING

from reference.cron_reference import date_exists, gap_end, instants_of, local_date
from reference.zones import load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS = {"days": 1, "weeks": 7}
MONTHS = {"months": 1, "quarters": 3, "years": 12}
SLACK = timedelta(days=3)  # an occurrence is never further than this from its date


@dataclass(frozen=True)
class Rule:
    """What a calendar interval says; `at` is the second of the day."""

    unit: str
    n: int
    start: date
    at: int = 0
    zone: str = "UTC"
    on: str | None = None
    nth: int | str | None = None
    month_end: str = "clamp"
    end_date: date | None = None
    end_at: int | None = None

    def dates(self) -> Iterator[date]:
        """The local dates that the rule names, in order, to the end of the calendar."""
        return self._days() if self.unit in DAYS else self._months()

    def _days(self) -> Iterator[date]:
        anchor = self.start
        while self.on and anchor.weekday() != WEEKDAYS.index(self.on):
            anchor += timedelta(days=1)
        return (anchor + timedelta(days=k * self.n * DAYS[self.unit]) for k in count())

    def _months(self) -> Iterator[date]:
        first = self.start.year * 12 + self.start.month - 1
        for index in range(first, MAXYEAR * 12, self.n * MONTHS[self.unit]):
            year, month = divmod(index, 12)
            day = self._day_in(year, month + 1)
            if day is not None and date(year, month + 1, day) >= self.start:
                yield date(year, month + 1, day)

    def _day_in(self, year: int, month: int) -> int | None:
        """The day of the month on which a month of the series runs."""
        last = monthrange(year, month)[1]
        if self.on:
            wanted = WEEKDAYS.index(self.on)
            found = [d for d in range(1, last + 1) if date(year, month, d).weekday() == wanted]
            position = len(found) if self.nth == "last" else int(self.nth)
            return found[position - 1] if position <= len(found) else None
        if self.month_end == "last":
            return last
        if self.month_end == "skip" and self.start.day > last:
            return None
        return min(self.start.day, last)

    def instant_on(self, day: date) -> int | None:
        """The one instant of a date, None if the date is missing or after the end."""
        zone = load(self.zone)
        second = fixed_time(zone, datetime(day.year, day.month, day.day) + timedelta(seconds=self.at))
        if second is None or (self.end_at is not None and second > self.end_at):
            return None
        if self.end_date is not None and local_date(zone, second) > self.end_date:
            return None
        return second


def fixed_time(zone: ZoneInfo, wall: datetime) -> int | None:
    """A fixed wall time as an instant, None if its whole date is missing."""
    passes = instants_of(zone, wall)
    if passes:
        return passes[0]
    return gap_end(zone, wall) if date_exists(zone, wall.date()) else None


def occurrences(rule: Rule, start: int, end: int) -> list[int]:
    """Every occurrence in (start, end], as epoch seconds, in order."""
    zone = load(rule.zone)
    first_day, last_day = local_date(zone, start) - SLACK, local_date(zone, end) + SLACK
    near = (day for day in takewhile(lambda day: day <= last_day, rule.dates()) if day >= first_day)
    return [t for t in map(rule.instant_on, near) if t is not None and start < t <= end]


def next_after(rule: Rule, second: int, limit_days: int) -> int | None:
    """The first occurrence after an instant, or None if there is none up to limit_days later."""
    today = local_date(load(rule.zone), second)
    for day in takewhile(lambda day: day <= today + timedelta(days=limit_days), rule.dates()):
        if day >= today - SLACK:
            found = rule.instant_on(day)
            if found is not None and found > second:
                return found
    return None


def previous_before(rule: Rule, second: int) -> int | None:
    """The last occurrence before an instant, or None if the first is later."""
    today = local_date(load(rule.zone), second)
    behind = list(takewhile(lambda day: day <= today + SLACK, rule.dates()))
    for day in reversed(behind):
        found = rule.instant_on(day)
        if found is not None and found < second:
            return found
    return None
