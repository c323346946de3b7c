"""Reads times as people type them. A time that names no zone is wall time in a zone that the command knows."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from rota.errors import BadOption
from rota.model.micros import datetime_of
from rota.sentences import sentence
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from rota.triggers.zone import Zone

DAY_LENGTH = len("2026-10-14")

_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")


def time_from(text: str, zone: Zone, now: datetime) -> datetime:
    """An instant that a user typed. One without a zone is in this zone, and a clock time is the last such."""
    text = text.strip()
    if _CLOCK.fullmatch(text):
        return _last_at(text, zone, now)
    try:
        given = datetime.fromisoformat(text)
    except ValueError as err:
        raise BadOption(
            sentence(
                "time.wall",
                "{text!r} is not a time; write it as 02:30, 2026-10-14 02:30 or 2026-10-14T02:30Z",
                text=text,
            )
        ) from err
    return given if given.tzinfo is not None else wall_instant(given, zone)


def day_or_time_from(text: str) -> date:
    """A day, an instant, or wall time, which is a naive datetime until `in_zone` makes it an instant."""
    text = text.strip()
    try:
        return date.fromisoformat(text) if len(text) == DAY_LENGTH else datetime.fromisoformat(text)
    except ValueError as err:
        raise BadOption(
            sentence(
                "time.day",
                "{text!r} is not a day or a time; write it as 2026-10-14, 2026-10-14 09:00 or 2026-10-14T09:00Z",
                text=text,
            )
        ) from err


def in_zone(given: date, tz: str) -> date:
    """The same day or instant; wall time as the instant that it is in this zone."""
    is_wall = isinstance(given, datetime) and given.tzinfo is None
    return wall_instant(given, find_zone(tz)) if is_wall and isinstance(given, datetime) else given


def wall_instant(wall: datetime, zone: Zone) -> datetime:
    """The instant of a wall time. One that a clock change skips is the end of the jump; of two, the first is used."""
    seconds = zone.instant_of(round((wall.replace(tzinfo=UTC) - datetime_of(0)).total_seconds()))
    return datetime.fromtimestamp(seconds, UTC)


def _last_at(text: str, zone: Zone, now: datetime) -> datetime:
    try:
        clock = time.fromisoformat(text.rjust(5, "0"))
    except ValueError as err:
        raise BadOption(sentence("time.clock", "{text!r} is not a time of day; write it as 02:30", text=text)) from err
    today: date = zone.datetime_of(int(now.timestamp())).date()
    at = wall_instant(datetime.combine(today, clock), zone)
    return at if at <= now else wall_instant(datetime.combine(today - timedelta(days=1), clock), zone)
