"""Shows a schedule as a form: its fields as text, and the body of the API that they stand for.

The editor sends what the API takes, so that a rule about a schedule stands in one place.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from rota.app import internals
from rota.errors import BadTrigger, RotaError
from rota.inspector.facts.schedule import stored_bound
from rota.inspector.facts.trigger import trigger_facts
from rota.inspector.facts.values import duration
from rota.inspector.wall_times import wall_instant
from rota.sentences import Said, sentence
from rota.triggers.zone import find_zone
from rota.web.pages.json_text import BadJson, decode_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rota.app import App
    from rota.inspector.facts.trigger import TriggerFacts
    from rota.model.schedules.schedule import Schedule, ScheduleSpec
    from rota.web.pages.forms import Form

KINDS = ("every", "cron", "calendar", "once")
UNITS = ("days", "weeks", "months", "quarters", "years")
OF_TRIGGER = (
    "kind", "every", "every_start", "every_end", "cron", "dialect", "count", "unit", "at", "on", "nth", "month_end",
    "from", "to", "once",
)  # fmt: skip
OPEN = ("queue", "tz", "tenant", "jitter", "lookahead", "start", "end", "key")  # empty: None
NUMBERS = ("priority", "max_runs", "catchup_limit")
PLAIN = ("task", "overlap", "catchup", "grace", "description")
FIELDS = (*OF_TRIGGER, *PLAIN, "args", "kwargs", *OPEN, *NUMBERS)
TIMES = ("trigger", "tz", "start", "end", "jitter", "max_runs", "tenant", "lookahead")
DEFAULTS = {
    **dict.fromkeys(FIELDS, ""),
    "kind": "every", "every": "1h", "cron": "0 9 * * mon-fri", "count": "1", "unit": "months", "at": "09:00",
    "month_end": "clamp", "overlap": "skip", "catchup": "latest", "grace": "1m", "catchup_limit": "100",
    "args": "[]", "kwargs": "{}",
}  # fmt: skip

Values = dict[str, str]


class FormProblem(Exception):
    """A field that does not say what it should, and why."""

    def __init__(self, field: str, message: Said) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


def values_of(form: Form, head: str = "") -> Values:
    """The fields that were sent; what was not sent is as in an empty form."""
    return {name: form.get(f"{head}{name}", DEFAULTS[name]).strip() for name in FIELDS}


def stored_values(app: App, schedule: Schedule) -> Values:
    """The form of a schedule. What its tenant says is left open; what is hidden stays hidden."""
    spec = schedule.spec
    call = internals(app).redaction.call(spec.payload.encode())
    bounds = {name: _bound_text(stored_bound(spec, name)) for name in ("start", "end")}
    return {
        **DEFAULTS,
        **_trigger_values(spec),
        **bounds,
        "task": spec.task,
        "args": json.dumps(call.args, ensure_ascii=False),
        "kwargs": json.dumps(call.kwargs, ensure_ascii=False),
        "overlap": spec.overlap,
        "catchup": spec.catchup,
        "catchup_limit": str(spec.catchup_limit),
        "grace": duration(spec.grace) or "0s",
        "description": spec.description,
        "queue": "" if "queue" in spec.follows else spec.queue,
        "priority": "" if "priority" in spec.follows else str(spec.priority),
        "tz": "" if "tz" in spec.follows else spec.tz,
        "tenant": spec.tenant,
        "jitter": duration(spec.jitter) or "",
        "lookahead": duration(spec.lookahead) or "",
        "max_runs": "" if spec.max_runs is None else str(spec.max_runs),
        "key": spec.key,
    }


def _bound_text(bound: Any) -> str:
    if isinstance(bound, datetime):
        return str(msgspec.to_builtins(bound))
    return "" if bound is None else str(bound.isoformat())


def _trigger_values(spec: ScheduleSpec) -> Values:
    try:
        facts = trigger_facts(spec.trigger)
    except (RotaError, ValueError, msgspec.ValidationError):  # another version wrote it, or a hand
        return {"kind": "cron", "cron": spec.trigger}
    if facts.cron is not None:
        return {"kind": "cron", "cron": facts.cron, "dialect": facts.dialect or ""}
    if facts.every is not None:
        return {"kind": "every", "every": facts.every, "every_start": facts.start or "", "every_end": facts.end or ""}
    if facts.once is not None:
        return {"kind": "once", "once": _wall_text(facts.once, spec.tz)}
    return _calendar_values(facts)


def _calendar_values(facts: TriggerFacts) -> Values:
    said = facts.calendar
    if said is None:
        return {}
    unit = next((unit for unit in UNITS if getattr(said, unit) is not None), "days")
    return {
        "kind": "calendar",
        "unit": unit,
        "count": str(getattr(said, unit)),
        "at": said.at or "",
        "on": said.on or "",
        "nth": "" if said.nth is None else str(said.nth),
        "month_end": said.month_end,
        "from": said.start or "",
        "to": said.end or "",
    }


def _wall_text(at: datetime, tz: str) -> str:
    try:
        local = find_zone(tz).datetime_of(int(at.timestamp()))
    except BadTrigger:
        local = at
    return f"{local:%Y-%m-%dT%H:%M:%S}" if local.second else f"{local:%Y-%m-%dT%H:%M}"


# What the fields stand for.


def body_of(values: Values, tz: str) -> dict[str, Any]:
    """The whole schedule as the API takes it; `tz` is the zone in which wall times are meant where none is named."""
    return {
        "trigger": trigger_body(values, tz),
        "args": _json(values, "args", list),
        "kwargs": _json(values, "kwargs", dict),
        **{name: values[name] for name in PLAIN},
        **{name: values[name] or None for name in OPEN},
        **{name: _number(values[name]) for name in NUMBERS if values[name] or name != "catchup_limit"},
    }


def patch_of(values: Values, base: Values, tz: str) -> dict[str, Any]:
    """Only what was changed, so that the rest stays as it is stored."""
    changed = {name for name in FIELDS if values[name] != base[name]}
    wanted = {name for name in changed if name not in OF_TRIGGER}
    if changed & set(OF_TRIGGER):
        wanted.add("trigger")
    return {name: value for name, value in body_of(values, tz).items() if name in wanted}


def only_times(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a preview is about: no task need be known yet."""
    return {name: value for name, value in body.items() if name in TIMES}


def trigger_body(values: Values, tz: str) -> dict[str, Any]:
    match values["kind"]:
        case "cron":
            return {"cron": values["cron"], "dialect": values["dialect"] or None}
        case "calendar":
            return {"calendar": _calendar_body(values)}
        case "once":
            return {"once": _once(values["once"], tz)}
        case _:
            bounds = {"start": values["every_start"] or None, "end": values["every_end"] or None}
            return {"every": values["every"], **bounds}


def _calendar_body(values: Values) -> dict[str, Any]:
    unit = values["unit"] if values["unit"] in UNITS else "days"
    return {
        unit: _number(values["count"]),
        "at": values["at"] or None,
        "on": values["on"] or None,
        "nth": _number(values["nth"]) if values["nth"] else None,
        "month_end": values["month_end"] or "clamp",
        "start": values["from"] or None,
        "end": values["to"] or None,
    }


def _once(text: str, tz: str) -> str:
    """The instant of a wall time in the schedule's zone; what names its own offset is an instant already."""
    try:
        given = datetime.fromisoformat(text)
    except ValueError as err:
        raise FormProblem(
            "once", sentence("form.time", "{text!r} is not a time; write it as 2026-10-14T09:00", text=text)
        ) from err
    if given.tzinfo is None:
        given = wall_instant(given, find_zone(tz))
    return given.isoformat()


def _number(text: str) -> int | str | None:
    """A number where it is one; anything else is left to be refused by name."""
    if not text:
        return None
    return int(text) if text.lstrip("-").isdecimal() and text.isascii() and len(text) <= 18 else text


def _json(values: Values, name: str, kind: type) -> Any:
    text = values[name] or ("[]" if kind is list else "{}")
    try:
        found = decode_json(text)
    except BadJson as err:
        raise FormProblem(
            name,
            sentence(
                "form.json",
                "{field}: line {line}, column {column} is not valid JSON",
                field=name,
                line=err.line,
                column=err.column,
            ),
        ) from err
    if not isinstance(found, kind):
        wanted = (
            sentence("form.list", 'a list such as ["daily", 3]')
            if kind is list
            else sentence("form.object", 'an object such as {{"copies": 2}}')
        )
        raise FormProblem(name, sentence("form.wanted", "{field}: write {wanted}", field=name, wanted=wanted))
    return found
