"""Instants inside Rota: whole microseconds since the epoch. Datetimes appear at the border only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rota.errors import NaiveDatetime
from rota.triggers.duration import seconds_of

SECOND = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros_of(instant: datetime) -> int:
    """An aware datetime as microseconds since the epoch."""
    if not isinstance(instant, datetime) or instant.utcoffset() is None:
        raise NaiveDatetime(
            f"{instant!r} has no timezone, so it names no instant",
            text=str(instant),
            fix="add one, as in datetime.now(UTC) or .astimezone()",
        )
    return (instant - _EPOCH) // _MICROSECOND


def datetime_of(micros: int) -> datetime:
    """Microseconds since the epoch as an aware datetime in UTC."""
    return _EPOCH + timedelta(microseconds=micros)


def optional_datetime(micros: int | None) -> datetime | None:
    return None if micros is None else datetime_of(micros)


def span_of(duration: str | timedelta) -> int:
    """A duration as microseconds."""
    return seconds_of(duration) * SECOND
