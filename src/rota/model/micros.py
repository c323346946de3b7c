"""Converts instants: whole microseconds since the epoch inside Rota, datetimes at the border only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rota.errors import BadDuration, NaiveDatetime
from rota.triggers.bounds import FIRST, check_years
from rota.triggers.duration import LONGEST, fine_text_of, milliseconds_of, seconds_of
from rota.triggers.zone import EARLIEST, LATEST

SECOND = 1_000_000
MILLISECOND = 1_000
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


def check_instant(field: str, given: datetime, *, first: datetime = FIRST) -> int:
    """An instant that a user gave, as microseconds: the one check for every option, parameter and file."""
    micros = micros_of(given)
    check_years(field, given, first)
    return micros


def optional_instant(field: str, given: datetime | None) -> int | None:
    return None if given is None else check_instant(field, given)


def datetime_of(micros: int) -> datetime:
    """Microseconds since the epoch as an aware datetime in UTC.

    It never fails, because one record must not break a list: an instant outside the calendar becomes the calendar's
    first or last days, and `outside_calendar` reports the record.
    """
    return _EPOCH + timedelta(microseconds=max(EARLIEST * SECOND, min(micros, LATEST * SECOND)))


def outside_calendar(**instants: int | None) -> str:
    """Why a record with these instants cannot be read; empty if it can."""
    wrong = [f"{name}={at}" for name, at in instants.items() if at is not None and not _is_in_calendar(at)]
    return f"cannot be read: {', '.join(wrong)} (microseconds since 1970) is outside the calendar" if wrong else ""


def _is_in_calendar(micros: int) -> bool:
    return EARLIEST * SECOND <= micros <= LATEST * SECOND


def iso_text(micros: int) -> str:
    """An instant as JSON shows it: 2026-01-31T09:00:00Z."""
    return datetime_of(micros).isoformat().replace("+00:00", "Z")


def optional_datetime(micros: int | None) -> datetime | None:
    return None if micros is None else datetime_of(micros)


def span_of(duration: str | timedelta) -> int:
    """A duration as microseconds: whole seconds, at least one."""
    return seconds_of(duration) * SECOND


def fine_span_of(duration: str | timedelta, *, least: int = 0) -> int:
    """A duration that may be shorter than a second, as microseconds: whole milliseconds, at least so many."""
    return milliseconds_of(duration, least=least) * MILLISECOND


def timeout_of(timeout: str | timedelta | float) -> float:
    """How long a caller waits, in seconds; a plain number is seconds, as in every timeout of Python's own."""
    if isinstance(timeout, (int, float)):
        if isinstance(timeout, bool) or not 0 <= timeout <= LONGEST:
            raise BadDuration(f"timeout={timeout!r} must be from 0 seconds to 100 years", text=str(timeout))
        return float(timeout)
    return fine_span_of(timeout) / SECOND


def span_text(micros: int) -> str:
    """A duration in microseconds as people write it: "1h30m", "250ms", "0s"."""
    return fine_text_of(micros // MILLISECOND)
