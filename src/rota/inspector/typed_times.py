"""Reads times as people type them: an instant with its zone, or a duration before now."""

from __future__ import annotations

from datetime import datetime

from rota.errors import BadOption, NaiveDatetime
from rota.model.micros import check_instant, span_of
from rota.sentences import sentence


def instant_from(text: str) -> datetime:
    """An instant that a user typed: 2026-10-14T09:00Z."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError as err:
        raise BadOption(
            sentence(
                "time.instant",
                "{text!r} is not a time; write it as 2026-10-14T09:00Z or 2026-10-14T09:00+02:00",
                text=text,
            )
        ) from err
    if at.tzinfo is None:
        example = at.isoformat(timespec="minutes")
        raise NaiveDatetime(
            sentence("time.naive", "{text!r} has no timezone, so it names no instant", text=text),
            text=text,
            fix=sentence("time.naive_fix", "add one, as in {example}Z or {example}+02:00", example=example),
        )
    return at


def past_from(field: str, text: str, now: int) -> int:
    """A point in the past, in microseconds: a duration counts back from now ("2h"), anything else is an instant."""
    if text[:1].isdigit() and text[-1:] in set("wdhms"):
        return now - span_of(text)
    try:
        return check_instant(field, instant_from(text))
    except NaiveDatetime:
        raise
    except BadOption as err:
        raise BadOption(
            sentence(
                "time.past",
                "{text!r} is not a time; write how long ago, such as 2h, or a time, such as 2026-10-14T09:00Z",
                text=text,
            )
        ) from err
