"""Defines calendar rules: every n days, weeks, months, quarters or years at a wall time, counted from an anchor date.

The next run is found by arithmetic, whatever the distance: six years of downtime cost no more than one day.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Self

from rota.keywords import known_keywords
from rota.triggers.bounds import last_instant, read_end, read_start
from rota.triggers.calendar_dates import EPOCH, DayDates, MonthDates
from rota.triggers.calendar_rule import (
    MONTHS_IN,
    CalendarRule,
    check_rule,
    read_nth,
    read_time,
    read_unit,
    read_weekday,
    rule_parts,
)
from rota.triggers.caveats import calendar_caveats
from rota.triggers.explain import explain_calendar
from rota.triggers.option_names import FOR_TRIGGERS
from rota.triggers.phrases import ENGLISH, Phrases
from rota.triggers.rezoned import WallTrigger
from rota.triggers.trigger import second_of, wall_datetime
from rota.triggers.zone import DAY, EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, time

    from rota.triggers.trigger import Caveat, Trigger


@known_keywords("calendar()", FOR_TRIGGERS)
def calendar(
    *,
    days: int | None = None,
    weeks: int | None = None,
    months: int | None = None,
    quarters: int | None = None,
    years: int | None = None,
    at: str | time | None = None,
    start: date | None = None,
    end: date | None = None,
    on: str | None = None,
    nth: int | str | None = None,
    month_end: str = "clamp",
    tz: object = None,
) -> Trigger:
    """A trigger by the calendar: `calendar(months=3, at="00:05", start=date(2026, 1, 15))`.

    `start` is the anchor that everything is counted from; without one it is the schedule's start or creation once it
    has one, and 1970-01-01 until then. `on="tue"` names a weekday, for weeks or, with `nth=2` or `nth="last"`, for
    months. `month_end` decides about the 31st in a shorter month: "clamp" to its last day, "skip" it, or "last" for the
    last day of every month.
    """
    given = {"days": days, "weeks": weeks, "months": months, "quarters": quarters, "years": years}
    unit, count = read_unit(given)
    rule = CalendarRule(
        unit=unit,
        step=count,
        at=read_time(at),
        start=read_start(start),
        end=read_end(end),
        weekday=read_weekday(on),
        nth=read_nth(nth),
        month_end=month_end,
    )
    check_rule(rule)
    return Calendar(rule, tz)


class Calendar(WallTrigger):
    """A calendar rule in a zone."""

    __slots__ = ("_dates", "_first", "_last", "_time", "rule")

    def __init__(
        self, rule: CalendarRule, tz: object, *, done: datetime | None = None, kept: int | None = None
    ) -> None:
        super().__init__(tz, done=done, kept=kept)
        self.rule = rule
        wall = self._zone.wall_of(rule.start) if isinstance(rule.start, int) else None
        self._time = rule.at if rule.at is not None else (wall or 0) % DAY
        self._first = rule.start if isinstance(rule.start, int) else EARLIEST
        self._last = last_instant(rule.end, self._zone)
        self._dates = _dates_of(rule, self._anchor_day(wall))
        self._set_floor()

    def explain(self, phrases: Phrases = ENGLISH) -> str:
        first = wall_datetime(self._dates.order(0) * DAY)
        return explain_calendar(self.rule, self._time, first, self.tz, phrases)

    def _caveats(self, low: int, high: int) -> Iterator[Caveat]:
        return calendar_caveats(self, self._zone, self._time, low, high)

    def wall_dates(self, low: int, high: int) -> Iterator[int]:
        """The days since the epoch, in low <= day < high, that the rule names."""
        k = self._dates.index_near(low)
        while self._dates.order(k) < high:
            day = self._dates.day(k)
            if day is not None and low <= day < high:
                yield day
            k += 1

    def anchor_day_of_month(self) -> int:
        return wall_datetime(self._dates.anchor * DAY).day

    def _next(self, t: int) -> int | None:
        t = max(t, self._first - 1)
        k = self._index_after(t)
        while True:
            found = self._instant(k)
            if found is not None:
                return found if found <= self._last else None
            if self._order(k) > LATEST:
                return None
            k += 1

    def _previous(self, t: int) -> int | None:
        k = self._index_after(min(t - 1, self._last)) - 1
        while k >= 0:
            found = self._instant(k)
            if found is not None:
                return found if found >= self._first else None
            k -= 1
        return None

    def _count(self, low: int, high: int) -> int:
        low, high = max(low, self._first - 1), min(high, self._last)
        if high <= low:
            return 0
        first, end = self._index_after(low), self._index_after(high)
        named = self._dates.count_below(end) - self._dates.count_below(first)
        return named - sum(self._names(day, first, end) for day in self._zone.missing_days())

    def _names(self, day: int, first: int, end: int) -> bool:
        """Whether one of the k in first <= k < end is that day."""
        near = self._dates.index_near(day)
        return any(self._dates.day(k) == day for k in range(max(near, first), min(near + 4, end)))

    def _index_after(self, t: int) -> int:
        """The first k whose time is later than t: a step or two from a good guess."""
        k = self._dates.index_near(self._zone.wall_of(t) // DAY)
        while self._order(k) <= t:
            k += 1
        return k

    def _order(self, k: int) -> int:
        return self._zone.instant_of(self._dates.order(k) * DAY + self._time)

    def _instant(self, k: int) -> int | None:
        day = self._dates.day(k)
        return None if day is None else self._zone.instant_if_exists(day * DAY + self._time)

    def _anchor_day(self, wall: int | None) -> int:
        if wall is not None:
            return wall // DAY
        return self.rule.start.toordinal() - EPOCH if isinstance(self.rule.start, date) else 0

    def _last_in_gap(self, low: int, high: int) -> int | None:
        """The wall time inside a gap that a run at its end stands for."""
        for midnight in (high - 1 - (high - 1) % DAY, low - low % DAY):
            if low <= midnight + self._time < high and any(self.wall_dates(midnight // DAY, midnight // DAY + 1)):
                return midnight + self._time
        return None

    def bound(self, tz: object = None, *, start: datetime | None = None) -> Trigger:
        """Fill in the zone and the anchor where they are still open."""
        trigger = super().bound(tz)
        if self.rule.start is not None or start is None or not isinstance(trigger, Calendar):
            return trigger
        anchor = wall_datetime(trigger._zone.wall_of(second_of(start))).date()  # noqa: SLF001 - its own kind
        return type(self)(self.rule._replace(start=anchor), trigger.tz, done=self.done, kept=self.kept)

    def _guards_dates(self) -> bool:
        return True

    @property
    def is_dated(self) -> bool:
        return True

    def _end_of(self, done: date) -> datetime:
        """A date is done once its one wall time is."""
        return wall_datetime((done.toordinal() - EPOCH) * DAY + self._time)

    def _replaced(self, tz: str | None, *, done: datetime | None, kept: int | None) -> Self:
        """The anchor's date and wall time stay; only the zone around them changes."""
        rule = self.rule
        if isinstance(rule.start, int) and self.tz is not None:
            anchor = wall_datetime(self._zone.wall_of(rule.start)).date()
            rule = rule._replace(start=anchor, at=self._time)
        return type(self)(rule, tz, done=done, kept=kept)

    def __str__(self) -> str:
        return " ".join(["calendar", *rule_parts(self.rule), *([f"tz={self.tz}"] if self.tz else []), *self._past()])


def _dates_of(rule: CalendarRule, anchor: int) -> DayDates | MonthDates:
    if rule.unit == "days":
        return DayDates(anchor, rule.step)
    if rule.unit == "weeks":
        return DayDates(anchor, 7 * rule.step, rule.weekday)
    dates = MonthDates(
        anchor,
        rule.step * MONTHS_IN[rule.unit],
        month_end=rule.month_end,
        weekday=rule.weekday,
        nth=rule.nth,
    )
    dates.check_satisfiable()
    return dates
