"""Writes and reads the compact text form of triggers, for stores and files: `str(trigger)` and `trigger_from_text`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from rota.errors import BadTrigger, UnknownZone
from rota.triggers.bounds import bound_from_text, instant_from
from rota.triggers.calendar import Calendar, calendar
from rota.triggers.calendar_rule import UNITS
from rota.triggers.cron import Cron, cron
from rota.triggers.cron_text import ZONE_PREFIXES
from rota.triggers.every import every
from rota.triggers.once import once

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date

    from rota.triggers.trigger import Trigger

LONGEST = 512


def trigger_from_text(text: str) -> Trigger:
    """The trigger that wrote this text: `cron 0 9 * * MON-FRI tz=Europe/Paris`."""
    if not isinstance(text, str) or len(text) > LONGEST:
        raise BadTrigger(f"a trigger's text is at most {LONGEST} characters long")
    kind, _, rest = text.strip().partition(" ")
    read = _READERS.get(kind)
    if read is None:
        known = ", ".join(_READERS)
        raise BadTrigger(f"'{text[:40]}' is not a trigger's text", text=text, fix=f"it begins with one of {known}")
    words, options = _split(rest)
    return read(words, options)


def text_in_zone(text: str, tz: str) -> str:
    """A rule's text in another zone. If its own zone is unknown, only the name of the zone is replaced."""
    try:
        rule = trigger_from_text(text)
    except UnknownZone:
        return " ".join(f"tz={tz}" if word.startswith("tz=") else word for word in text.split())
    return str(rule.rezoned(tz)) if rule.tz else text


def _split(rest: str) -> tuple[str, dict[str, str]]:
    """The words before the first key=value, and those pairs."""
    words: list[str] = []
    options: dict[str, str] = {}
    for part in rest.split():
        key, equals, value = part.partition("=")
        if not equals:
            words.append(part)
        elif key in options:
            raise BadTrigger(f"'{key}' is given twice", text=rest)
        else:
            options[key] = value
    return " ".join(words), options


def _read_cron(words: str, options: dict[str, str]) -> Trigger:
    done, kept = options.pop("done", None), options.pop("kept", None)
    prefixes = [f"{key}={options.pop(key)} " for key in list(options) if key != "tz" and key.upper() in ZONE_PREFIXES]
    _refuse_unknown(options, "tz", "dialect")
    trigger = cron(f"{''.join(prefixes)}{words}", tz=options.get("tz"), dialect=options.get("dialect"))
    return _with_past(trigger, done, kept)


def _read_every(words: str, options: dict[str, str]) -> Trigger:
    _refuse_unknown(options, "start", "end", "tz")
    return every(words, start=_bound(options, "start"), end=_bound(options, "end"), tz=options.get("tz"))


def _read_once(words: str, options: dict[str, str]) -> Trigger:
    _refuse_unknown(options, "tz")
    return once(_instant(words), tz=options.get("tz"))


def _read_calendar(words: str, options: dict[str, str]) -> Trigger:
    done, kept = options.pop("done", None), options.pop("kept", None)
    if words:
        raise BadTrigger(f"'{words[:40]}' is not understood in a calendar trigger's text")
    _refuse_unknown(options, *UNITS, "at", "start", "end", "on", "nth", "month_end", "tz")
    nth = options.get("nth")
    trigger = calendar(
        **{unit: _whole(options[unit]) for unit in UNITS if unit in options},
        at=options.get("at"),
        start=_bound(options, "start"),
        end=_bound(options, "end"),
        on=options.get("on"),
        nth=nth if nth in {None, "last"} else _whole(str(nth)),
        month_end=options.get("month_end", "clamp"),
        tz=options.get("tz"),
    )
    return _with_past(trigger, done, kept)


_READERS: dict[str, Callable[[str, dict[str, str]], Trigger]] = {
    "cron": _read_cron,
    "every": _read_every,
    "calendar": _read_calendar,
    "once": _read_once,
}


def _with_past(trigger: Trigger, done: str | None, kept: str | None) -> Trigger:
    """The trigger with the past that its text form remembers."""
    if done is None and kept is None:
        return trigger
    if not isinstance(trigger, (Cron, Calendar)):
        raise BadTrigger("done= and kept= belong to cron and calendar triggers")
    return trigger.with_past(done=_local(done), kept=None if kept is None else instant_from(_instant(kept), "kept"))


def _bound(options: dict[str, str], key: str) -> date | None:
    return bound_from_text(options[key]) if key in options else None


def _instant(text: str) -> datetime:
    found = bound_from_text(text)
    if not isinstance(found, datetime):
        raise BadTrigger(f"'{text[:40]}' is not an instant", text=text, fix="write it as 2026-01-31T00:05:00Z")
    return found


def _local(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError as err:
        raise BadTrigger(f"'{text[:40]}' is not a local time", text=text) from err


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise BadTrigger(f"'{text[:20]}' is not a whole number", text=text)
    return int(text)


def _refuse_unknown(options: dict[str, str], *known: str) -> None:
    for key in options:
        if key not in known:
            raise BadTrigger(f"'{key[:20]}' is not understood here", fix=f"known are {', '.join(known)}")
