"""Reads bounds: the start and end of a rule, given as a local date or as an instant, both inclusive."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from math import ceil
from typing import TYPE_CHECKING

from rota.errors import BadInstant, BadInterval
from rota.sentences import sentence
from rota.triggers.trigger import instant_text, second_of, wall_second
from rota.triggers.zone import DAY, EARLIEST, LATEST

if TYPE_CHECKING:
    from rota.triggers.zone import Zone

FIRST = datetime(1970, 1, 1, tzinfo=UTC)  # the earliest time that a user may give …
LAST = datetime(2200, 1, 1, tzinfo=UTC)  # … and the latest, so that every zone, sum and store can hold and show it
OLDEST_START = datetime(1900, 1, 1, tzinfo=UTC)  # a start is also the date that intervals are counted from

Bound = date | int  # a local date, whatever the zone; or seconds since the epoch


def read_start(given: object) -> Bound | None:
    """A start as the user gave it; a fraction of a second is rounded up, so nothing is early."""
    if isinstance(given, datetime):
        second = second_of(given)
        return second + 1 if given.microsecond else second
    return _read_date("start", given)


def read_end(given: object) -> Bound | None:
    if isinstance(given, datetime):
        return second_of(given)
    return _read_date("end", given)


def check_order(start: Bound | None, end: Bound | None) -> None:
    """An end before its start is an error, raised immediately if both are of one kind."""
    if start is None or end is None or isinstance(start, date) != isinstance(end, date):
        return
    if bound_text(end) < bound_text(start):
        raise BadInterval(
            sentence(
                "bounds.order",
                "the end ({end}) lies before the start ({start})",
                end=bound_text(end),
                start=bound_text(start),
            )
        )


def first_instant(bound: Bound | None, zone: Zone) -> int | None:
    """The first instant at or after a start."""
    return zone.instant_of(wall_second(bound)) if isinstance(bound, date) else bound


def last_instant(bound: Bound | None, zone: Zone) -> int:
    """The last instant at or before an end: for a date, the last second of that local day."""
    if bound is None:
        return LATEST
    return zone.instant_of(wall_second(bound) + DAY) - 1 if isinstance(bound, date) else bound


def bound_text(bound: Bound) -> str:
    return bound.isoformat() if isinstance(bound, date) else instant_text(bound)


def bound_from_text(text: str) -> date:
    """A bound as its text form has it: a date, or an instant that ends in Z."""
    try:
        found = datetime.fromisoformat(text) if "T" in text else date.fromisoformat(text)
        if not isinstance(found, datetime):
            return found
        if found.tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError) as err:
        raise BadInterval(
            sentence("bounds.not_date", "'{text}' is not a date or an instant", text=text[:40]), text=text
        ) from err
    raise BadInterval(
        sentence("bounds.no_zone", "'{text}' has no timezone", text=text[:40]),
        text=text,
        fix=sentence("bounds.no_zone_fix", "end it with Z for UTC"),
    )


def check_years(field: str, given: date, first: datetime = FIRST) -> None:
    """Refuse an instant, or a day, outside the years that Rota accepts."""
    at = given if isinstance(given, datetime) else datetime.combine(given, time(), tzinfo=UTC)
    if not first <= at <= LAST:
        raise BadInstant(
            sentence(
                "bounds.years",
                "{field}: {given} is not between {first:%Y-%m-%d} and {last:%Y-%m-%d} UTC",
                field=field,
                given=given.isoformat(),
                first=first,
                last=LAST,
            ),
            text=given.isoformat(),
            fix=sentence("bounds.years_fix", "give a time within those years"),
            field=field,
        )


def instant_from(given: object, what: str) -> int:
    """An aware datetime as the whole second at or after it."""
    if not isinstance(given, datetime):
        raise BadInterval(f"{what} must be an aware datetime, got {given!r}")
    second = second_of(given)  # refuses a naive one
    if not EARLIEST < second < LATEST:
        raise BadInterval(
            sentence(
                "bounds.ends",
                "{what} lies too near the ends of the calendar: {given}",
                what=what,
                given=given.isoformat(),
            )
        )
    return ceil(given.timestamp())


def _read_date(what: str, given: object) -> date | None:
    if given is None or isinstance(given, date):
        return given
    raise BadInterval(f"{what} must be a date or an aware datetime, got {given!r}")
