"""Writes instants and spans as people read them, for the answers of `why`."""

from __future__ import annotations

from rota.errors import BadTrigger
from rota.model.micros import SECOND
from rota.triggers.zone import find_zone

# A unit, its seconds, up to how many of it are said, and the smaller unit of the rest.
_UNITS = (("m", 60, 100, "s", 1), ("h", 3_600, 48, "m", 60), ("d", 86_400, 10, "h", 3_600))


def wall_words(at: int, tz: str) -> str:
    """An instant by the clock of a zone, Sun 2026-03-08 03:00 EDT; by UTC if the zone is unknown."""
    try:
        zone = find_zone(tz)
    except BadTrigger:
        zone = find_zone("UTC")
    moment = zone.datetime_of(at // SECOND)
    clock = f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"
    return f"{moment:%a %Y-%m-%d} {clock} {moment.tzname()}"


def span_words(micros: int) -> str:
    """12 ms, 3.2 s, 5 m, 5 m 44 s, 3 h 20 m, 2 d"""
    seconds = max(0, micros) / SECOND
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.3g} s"
    for unit, size, most, part, part_size in _UNITS:
        whole, rest = divmod(round(seconds / part_size), size // part_size)
        if seconds < most * size:
            return f"{whole:,} {unit} {rest} {part}" if rest else f"{whole:,} {unit}"
    return f"{seconds / 86_400:,.0f} d"


def counted(number: int, noun: str) -> str:
    """1 attempt, 2 attempts"""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
