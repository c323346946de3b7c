"""Timezones as the PyPI tzdata package has them, read by the standard library alone.

The references and the tests find offsets and transitions here, by asking for the offset at many instants; they
share no code with the engine.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PROBE = 5 * 86_400  # two transitions of one zone are never as close as this
FIRST = 0
LAST = int((datetime(2101, 1, 1, tzinfo=UTC) - EPOCH).total_seconds())


@cache
def zone_names() -> tuple[str, ...]:
    """Every zone that tzdata lists, sorted."""
    return tuple(sorted(files("tzdata").joinpath("zones").read_text().split()))


@cache
def distinct_zones() -> tuple[str, ...]:
    """One name for each set of rules: many names are aliases of another."""
    by_rules: dict[bytes, str] = {}
    for name in zone_names():
        by_rules.setdefault(_file_of(name).read_bytes(), name)
    return tuple(by_rules.values())


def _file_of(name: str) -> Traversable:
    return files("tzdata").joinpath("zoneinfo", *name.split("/"))


@cache
def load(name: str) -> ZoneInfo:
    """The zone from tzdata's own file, whatever the system has."""
    with _file_of(name).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


def instant(second: int) -> datetime:
    """The UTC datetime of an epoch second, any year."""
    return EPOCH + timedelta(seconds=second)


def second_of(moment: datetime) -> int:
    """The epoch second of an aware datetime, rounded down."""
    return (moment.astimezone(UTC) - EPOCH) // timedelta(seconds=1)


def offset_at(zone: ZoneInfo, second: int) -> int:
    """Seconds east of UTC at an instant."""
    return int(instant(second).astimezone(zone).utcoffset().total_seconds())


@cache
def transitions(name: str) -> tuple[tuple[int, int, int], ...]:
    """All changes of the offset from 1970 through 2100: (first second with the new one, old, new)."""
    zone, found = load(name), []
    before = offset_at(zone, FIRST)
    for probe in range(FIRST + PROBE, LAST, PROBE):
        after = offset_at(zone, probe)
        if after != before:
            found.append((_first_with(zone, after, probe - PROBE, probe), before, after))
            before = after
    return tuple(found)


def _first_with(zone: ZoneInfo, offset: int, low: int, high: int) -> int:
    """The first second in (low, high] with the offset, given that one change lies there."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if offset_at(zone, middle) == offset else (middle, high)
    return high
