"""Formats instants, spans and calls for a screen, and reads times as people type them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def instant(at: datetime) -> str:
    """2026-10-14 09:00:00Z"""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def instant_with_millis(at: datetime) -> str:
    """2026-10-14 09:00:00.123Z"""
    utc = at.astimezone(UTC)
    return f"{utc:%Y-%m-%d %H:%M:%S}.{utc.microsecond // 1000:03}Z"


def local(at: datetime) -> str:
    """The wall time that `at` carries, with its zone: 2026-10-14 09:00 EDT."""
    if at.tzname() in {None, "UTC"}:
        return instant(at)
    time = f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"
    return f"{at:%Y-%m-%d} {time} {at.tzname()}"


def relative(at: datetime, now: datetime) -> str:
    """The distance of an instant from now: "in 5 m", "2 h ago"."""
    seconds = (at - now).total_seconds()
    if abs(seconds) < 1:
        return "now"
    return f"in {coarse(seconds)}" if seconds > 0 else f"{coarse(-seconds)} ago"


def beside(at: datetime, now: datetime) -> str:
    """An instant in UTC with how far away it is."""
    return f"{instant(at)} ({relative(at, now)})"


def span(seconds: float) -> str:
    """A duration in words: "12 ms", "3.2 s", "5 m 20 s", "3 h 20 m"."""
    if seconds < 0.9995:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{round(seconds, 1):g} s"
    whole = round(seconds)
    for unit, size, part, part_size in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // part_size
            return f"{whole // size} {unit} {rest} {part}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


def count(number: int, noun: str) -> str:
    """1 job, 1,200 jobs."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(words: Sequence[str], last: str = "and") -> str:
    """mail, sync and default"""
    return f"{', '.join(words[:-1])} {last} {words[-1]}" if len(words) > 1 else "".join(words)


def printable(text: str) -> str:
    """Text from elsewhere, without the characters by which it could steer a terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


def first_line(text: str | None) -> str:
    return printable((text or "").partition("\n")[0])


def coarse(seconds: float) -> str:
    """One unit: "90 s", "5 m", "3 h", "2 d"."""
    for unit, size, most in (("s", 1, 100), ("m", 60, 100), ("h", 3_600, 48)):
        if seconds < most * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"
