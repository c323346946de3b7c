"""Reads triggers as JSON sends them: {"cron": …}, {"every": …}, {"calendar": {…}} or {"once": …}."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from rota.errors import BadTrigger
from rota.sentences import sentence
from rota.triggers import calendar, cron, every, once
from rota.triggers.bounds import bound_from_text
from rota.web.types import Body, Bound, Duration, Instant, Zone

if TYPE_CHECKING:
    from datetime import date

    from rota.triggers import Trigger

Count = Annotated[int, Meta(ge=1, le=10_000)]
KINDS = ("cron", "every", "calendar", "once")


class CalendarBody(Body, frozen=True, kw_only=True):
    """Every so many days, weeks, months, quarters or years; exactly one of them is said."""

    days: Count | None = None
    weeks: Count | None = None
    months: Count | None = None
    quarters: Count | None = None
    years: Count | None = None
    at: Annotated[str, Meta(max_length=16, description="the local time, such as 00:05")] | None = None
    start: Bound | None = None
    end: Bound | None = None
    on: Annotated[str, Meta(max_length=16, description="a weekday, such as tue")] | None = None
    nth: Annotated[int, Meta(ge=1, le=5)] | Literal["last"] | None = None
    month_end: Literal["clamp", "skip", "last"] = "clamp"


class TriggerBody(Body, frozen=True, kw_only=True):
    """When: exactly one of cron, every, calendar and once is said."""

    cron: Annotated[str, Meta(max_length=256, examples=["0 9 * * mon-fri"])] | None = None
    dialect: Literal["unix", "quartz"] | None = None  # of cron, where the number of fields does not say it
    every: Duration | None = None
    calendar: CalendarBody | None = None
    once: Instant | None = None
    start: Bound | None = None  # of every
    end: Bound | None = None  # of every
    tz: Zone | None = None


def read_trigger(body: TriggerBody) -> Trigger:
    """The trigger that is meant; BadTrigger if it is none."""
    said = [kind for kind in KINDS if getattr(body, kind) is not None]
    if len(said) != 1:
        raise BadTrigger(
            sentence(
                "trigger.kinds",
                "a trigger says exactly one of {known}; got {got}",
                known=", ".join(KINDS),
                got=" and ".join(said) or "none",
            )
        )
    _refuse_others(body, said[0])
    if body.cron is not None:
        return cron(body.cron, tz=body.tz, dialect=body.dialect)
    if body.every is not None:
        return every(body.every, start=_bound(body.start), end=_bound(body.end), tz=body.tz)
    if body.once is not None:
        return once(body.once, tz=body.tz)
    return _calendar(body)


def _calendar(body: TriggerBody) -> Trigger:
    said = body.calendar or CalendarBody()
    fields = {name: getattr(said, name) for name in said.__struct_fields__ if name not in {"start", "end"}}
    return calendar(**fields, start=_bound(said.start), end=_bound(said.end), tz=body.tz)


def _refuse_others(body: TriggerBody, kind: str) -> None:
    for name, owner in (("dialect", "cron"), ("start", "every"), ("end", "every")):
        if getattr(body, name) is not None and kind != owner:
            raise BadTrigger(
                sentence(
                    "trigger.foreign", "'{name}' belongs to {owner}, not to {kind}", name=name, owner=owner, kind=kind
                )
            )


def _bound(text: str | None) -> date | None:
    return None if text is None else bound_from_text(text)
