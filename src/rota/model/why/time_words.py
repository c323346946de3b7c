"""Instants and spans as people read them, for the answers of `why`."""

from __future__ import annotations

from rota.errors import BadTrigger
from rota.model.micros import SECOND
from rota.triggers.zone import find_zone


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
    """12 ms, 3.2 s, 5 m, 3 h, 2 d"""
    seconds = max(0, micros) / SECOND
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for unit, size, most in (("s", 1, 100), ("m", 60, 100), ("h", 3_600, 48)):
        if seconds < most * size:
            return f"{seconds / size:.3g} {unit}"
    days = seconds / 86_400
    return f"{days:.3g} d" if days < 1_000 else f"{days:,.0f} d"  # 3 digits of more would be 6.29e+04


def counted(number: int, noun: str) -> str:
    """1 attempt, 2 attempts"""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
