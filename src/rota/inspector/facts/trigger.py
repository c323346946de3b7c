"""Defines triggers, as JSON shows them: {"cron": …}, {"every": …}, {"calendar": {…}} or {"once": …}."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct


class CalendarFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Every so many days, weeks, months, quarters or years."""

    days: int | None = None
    weeks: int | None = None
    months: int | None = None
    quarters: int | None = None
    years: int | None = None
    at: str | None = None  # the local time, such as 00:05
    start: str | None = None
    end: str | None = None
    on: str | None = None  # a weekday, such as tue
    nth: int | Literal["last"] | None = None
    month_end: Literal["clamp", "skip", "last"] = "clamp"


class TriggerFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When a schedule runs: one of cron, every, calendar and once."""

    cron: str | None = None
    dialect: Literal["unix", "quartz"] | None = None  # of cron, if the number of fields does not imply it
    every: str | None = None
    calendar: CalendarFacts | None = None
    once: datetime | None = None
    start: str | None = None  # of every
    end: str | None = None  # of every
    tz: str | None = None


def trigger_facts(text: str) -> TriggerFacts:
    """A trigger's own text as JSON shows it; the past that it remembers of a change of zone is not shown."""
    kind, _, rest = text.partition(" ")
    words, pairs = [], {}
    for part in rest.split():
        key, equals, value = part.partition("=")
        if equals:
            pairs[key] = value
        else:
            words.append(part)
    tz = pairs.pop("tz", None)
    pairs = {key: value for key, value in pairs.items() if key not in {"done", "kept"}}
    said: dict[str, Any] = {"calendar": pairs} if kind == "calendar" else {kind: " ".join(words), **pairs}
    return msgspec.convert({**said, "tz": tz}, TriggerFacts, strict=False)
