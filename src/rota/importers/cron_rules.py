"""Computes the next runs of a line by cron's own rules: day by day, without any code of the time engine.

A dry run shows them beside Rota's own, so that two computations are compared.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import date

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
MONTHS = {name: number for number, name in enumerate(_MONTHS, start=1)}
WEEKDAYS = {name: number for number, name in enumerate(_WEEKDAYS)}
FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, MONTHS),
    (0, 7, WEEKDAYS),
)
LONGEST_WALK = 366 * 9  # days between two runs: from one 29 February to the next, across 2100
MINUTE = timedelta(minutes=1)


def runs_of_cron(
    expression: str, tz: str, after: datetime, count: int = 3, *, joins_days: Callable[[tuple[bool, bool]], bool] = any
) -> tuple[datetime, ...] | None:
    """The next runs; None if the text says more than five plain fields. `joins_days`: whether one
    of two restricted day fields is enough."""
    texts = expression.split()
    try:
        fields = [_values(text, *FIELDS[index]) for index, text in enumerate(texts)]
        minutes, hours, month_days, months, week_days = fields
    except (ValueError, KeyError, IndexError):
        return None
    is_wild = texts[0].startswith("*") or texts[1].startswith("*")
    either = not texts[2].startswith("*") and not texts[4].startswith("*")
    zone = ZoneInfo(tz)
    day = after.astimezone(zone).date()
    found: list[datetime] = []
    for _ in range(count * LONGEST_WALK):
        fits = day.day in month_days, day.isoweekday() % 7 in {number % 7 for number in week_days}
        if day.month in months and (joins_days(fits) if either else all(fits)):
            of_day = {at for wall in _walls(day, hours, minutes) for at in _instants(wall, zone, is_wild=is_wild)}
            found += sorted(at for at in of_day if at > after)
        if len(found) >= count:
            break
        day += timedelta(days=1)
    return tuple(at.astimezone(zone) for at in found[:count])


def _walls(day: date, hours: set[int], minutes: set[int]) -> Iterator[datetime]:
    for hour in hours:
        for minute in minutes:
            yield datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001 - a wall time has no zone


def _instants(wall: datetime, zone: ZoneInfo, *, is_wild: bool) -> Iterator[datetime]:
    """When a wall time is. In a gap, a rule with named times runs at its end; a repeated hour counts once for it."""
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first.astimezone(zone).replace(tzinfo=None) != wall:
        if not is_wild:
            yield _end_of_gap(first, zone)
        return
    yield first
    if second != first and is_wild:
        yield second


def _end_of_gap(at: datetime, zone: ZoneInfo) -> datetime:
    offset = at.astimezone(zone).utcoffset()
    while (at - MINUTE).astimezone(zone).utcoffset() == offset:
        at -= MINUTE
    return at


def _values(text: str, first: int, last: int, names: dict[str, int]) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        low, _, high = span.partition("-")
        start = first if span == "*" else _number(low, names)
        end = _number(high, names) if high else last if span == "*" or step else start
        if not first <= start <= end <= last:
            raise ValueError(part)
        found.update(range(start, end + 1, int(step or 1)))
    return found


def _number(text: str, names: dict[str, int]) -> int:
    return names[text.lower()] if text.isalpha() else int(text)
