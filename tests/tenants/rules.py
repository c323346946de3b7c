"""Rules of recurrence read day by day, in the plainest way: zoneinfo alone says which instants they name.

Instants are whole seconds since the epoch. A wall time that a clock change skips runs once, at the end of the gap; one
that comes twice runs the first time, or both times where the rule is a cadence; a date that does not exist has no run.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from rota import calendar, cron, every

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.triggers import Trigger

DAY = timedelta(days=1)


@dataclass(frozen=True)
class CronRule:
    """Some times of day, on some days of the month or of the week."""

    minute: int
    hours: tuple[int, ...]
    day: int | None = None
    weekday: int | None = None  # 0 is Monday
    is_cadence: bool = False  # the hours are written as */n

    def trigger(self) -> Trigger:
        hours = f"*/{24 // len(self.hours)}" if self.is_cadence else ",".join(str(hour) for hour in self.hours)
        weekday = "*" if self.weekday is None else str((self.weekday + 1) % 7)
        return cron(f"{self.minute} {hours} {self.day or '*'} * {weekday}")

    def walls(self, day: date) -> list[time]:
        if self.day not in {None, day.day} or self.weekday not in {None, day.weekday()}:
            return []
        return [time(hour, self.minute) for hour in self.hours]


@dataclass(frozen=True)
class CalendarRule:
    """Every so many days, weeks or months from an anchor."""

    unit: str
    step: int
    at: time
    anchor: date
    weekday: int | None = None
    nth: int | None = None  # -1 is the last
    is_cadence: bool = False

    def trigger(self) -> Trigger:
        on = None if self.weekday is None else ("mon", "tue", "wed", "thu", "fri", "sat", "sun")[self.weekday]
        nth = {None: None, -1: "last"}.get(self.nth, self.nth)
        return calendar(**{self.unit: self.step}, at=f"{self.at:%H:%M}", start=self.anchor, on=on, nth=nth)

    def walls(self, day: date) -> list[time]:
        return [self.at] if day >= self.anchor and self._names(day) else []

    def _names(self, day: date) -> bool:
        if self.unit == "days":
            return (day - self.anchor).days % self.step == 0
        if self.unit == "weeks":
            first = self.anchor
            while self.weekday not in {None, first.weekday()}:
                first += DAY
            return (day - first).days % (7 * self.step) == 0
        months = {"months": 1, "quarters": 3, "years": 12}[self.unit] * self.step
        distance = (day.year - self.anchor.year) * 12 + day.month - self.anchor.month
        return distance % months == 0 and day.day == self._day_in(day.year, day.month)

    def _day_in(self, year: int, month: int) -> int | None:
        if self.nth is None:
            return min(self.anchor.day, monthrange(year, month)[1])
        days = weekdays_in(year, month, self.weekday)
        if self.nth == -1:
            return days[-1]
        return days[self.nth - 1] if self.nth <= len(days) else None


@dataclass(frozen=True)
class EveryRule:
    """A fixed length of elapsed time, from the schedule's start or creation."""

    hours: int

    def trigger(self) -> Trigger:
        return every(f"{self.hours}h")


Rule = CronRule | CalendarRule | EveryRule


@lru_cache
def zone_of(tz: str) -> ZoneInfo:
    """A zone from the tzdata package, which Rota prefers to the system's copy, too."""
    with resources.files("tzdata").joinpath("zoneinfo", *tz.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=tz)


def days_named(rule: CronRule | CalendarRule, tz: str, first: date, last: date) -> Iterator[tuple[int, datetime]]:
    """The instants of the runs of these local days, each with the wall time that it stands for."""
    known, day = known_days(rule, tz), first
    while day <= last:
        if day not in known:
            known[day] = list(named_on(rule, tz, day))
        yield from known[day]
        day += DAY


@lru_cache(maxsize=64)
def known_days(rule: CronRule | CalendarRule, tz: str) -> dict[date, list[tuple[int, datetime]]]:  # noqa: ARG001
    """What the rule was found to name in that zone, by day: an oracle asks for the same days again and again."""
    return {}


def named_on(rule: CronRule | CalendarRule, tz: str, day: date) -> Iterator[tuple[int, datetime]]:
    for wall in rule.walls(day):
        naive = datetime.combine(day, wall)
        for instant in instants_of(naive, zone_of(tz), both=rule.is_cadence):
            yield instant, naive


@lru_cache(maxsize=1_000)
def weekdays_in(year: int, month: int, weekday: int | None) -> list[int]:
    """The days of the month that fall on it."""
    length = monthrange(year, month)[1]
    return [day for day in range(1, length + 1) if date(year, month, day).weekday() == weekday]


def instants_of(naive: datetime, zone: ZoneInfo, *, both: bool) -> list[int]:
    """When a wall time is: once, twice, or at the end of the gap that swallows it; never on a missing date."""
    passes = [second_of(naive.replace(tzinfo=zone, fold=fold)) for fold in (0, 1)]
    if passes[0] < passes[1]:
        return passes if both else passes[:1]
    if passes[0] == passes[1]:
        return passes[:1]
    end = gap_end(zone, passes[1], passes[0])
    before, after = (datetime.fromtimestamp(at, zone).date() for at in (end - 1, end))
    return [] if before < naive.date() < after else [end]


@lru_cache(maxsize=100_000)
def gap_end(zone: ZoneInfo, low: int, high: int) -> int:
    """The second at which the clocks are put forward."""
    old = datetime.fromtimestamp(low, zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if datetime.fromtimestamp(middle, zone).utcoffset() == old else (low, middle)
    return high


def second_of(moment: datetime) -> int:
    return int(moment.astimezone(UTC).timestamp())


@lru_cache(maxsize=10_000)
def first_second(day: date, tz: str) -> int:
    """When a local day begins, also if it has no midnight (or where its clocks show midnight twice)."""
    zone = zone_of(tz)
    passes = [second_of(datetime.combine(day, time(), zone).replace(fold=fold)) for fold in (0, 1)]
    return min(passes) if passes[0] <= passes[1] else gap_end(zone, passes[1], passes[0])


def local_time(at: int, tz: str) -> datetime:
    return datetime.fromtimestamp(at, zone_of(tz)).replace(tzinfo=None)


def local_day(at: int, tz: str) -> date:
    return datetime.fromtimestamp(at, zone_of(tz)).date()
