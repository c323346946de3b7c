"""Reads times that a table or a JSON document stores as text, and writes new ones in the form that was there."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from rota.model.micros import MILLISECOND, SECOND, datetime_of, micros_of

_FORM = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)([T ])(\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?\s*(Z|[+-]\d\d:\d\d)?\s*", re.ASCII | re.IGNORECASE
)
_DEFAULT = next(_FORM.finditer("2026-01-31T09:00:00Z"))
LAST = {"day": 31, "hour": 24, "minute": 59, "second": 59}  # as SQLite counts: February 30th is two days after the 28th


def micros_in_text(text: str) -> int | None:
    """The instant that a text names; None if it names none. A text without a zone is in UTC, as for SQLite."""
    found = _FORM.fullmatch(text.partition("\0")[0])  # SQLite reads no further either
    if found is None:
        return None
    year, month, _, _, hour, minute, second, fraction, zone = found.groups()
    day = int(found[3])
    if day < 1 or any(int(found[number] or 0) > last for number, last in zip((3, 5, 6, 7), LAST.values(), strict=True)):
        return None
    try:
        first = datetime(int(year), int(month), 1, tzinfo=UTC)
        span = timedelta(days=day - 1, hours=int(hour), minutes=int(minute), seconds=int(second or 0))
        at = first + span - _offset(zone)
    except (ValueError, OverflowError):
        return None
    return micros_of(at) + int((fraction or ".0")[1:].ljust(6, "0")[:6])


def step_of(like: object) -> int:
    """The microseconds between two times in the form of a text: a second, or a millisecond if it has a fraction."""
    return MILLISECOND if _form(like)[8] else SECOND


def text_of(micros: int, like: object) -> str:
    """An instant in UTC, with the separator, the digits and the zone of another time in the same place."""
    found = _form(like)
    separator, fraction, zone = found[4], found[8], found[9]
    rest = micros % SECOND
    places = len(fraction) - 1 if fraction else 0
    if rest and places < 3:
        places = 3 if rest % MILLISECOND == 0 else 6
    whole = datetime_of(micros - rest).replace(tzinfo=None).isoformat(separator)
    digits = "." + f"{rest:06d}".ljust(places, "0")[:places] if places else ""
    return f"{whole}{digits}{_utc_suffix(zone)}"


def _form(like: object) -> re.Match[str]:
    found = _FORM.fullmatch(like) if isinstance(like, str) else None
    return found or _DEFAULT


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone in "Zz":
        return timedelta(0)
    span = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    return -span if zone[0] == "-" else span


def _utc_suffix(zone: str | None) -> str:
    if zone is None:
        return ""
    return "Z" if zone in "Zz" else "+00:00"
