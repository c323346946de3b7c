"""Fills the form of a task with an existing call: the text of each field, and the fields as a template shows them.

A call that the fields cannot hold exactly, such as one with an argument that the task no longer has, is edited as JSON.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rota.app import internals
from rota.errors import UnknownTask
from rota.model.jobs.payload import REDACTED
from rota.web.pages.run_form import Fault, fields_of, read_call

if TYPE_CHECKING:
    from collections.abc import Mapping
    from zoneinfo import ZoneInfo

    from rota.app import App
    from rota.tasks.task import Task
    from rota.web.pages.page import Visit
    from rota.web.pages.run_form import Field

OF = "arg_of"  # the field of a form that names the task whose fields it has


def known_task(app: App, name: str) -> Task[Any, Any] | None:
    """The task of this server's app."""
    try:
        return internals(app).registry.get(name) if name else None
    except UnknownTask:
        return None


def filled(
    task: Task[Any, Any], fields: list[Field], args: list[Any], kwargs: Mapping[str, Any], zone: ZoneInfo
) -> dict[str, str] | None:
    """What each field says for a call; None if the form would make another call of it."""
    values = _by_field(fields, args, kwargs)
    if values is None:
        return None
    given = [field for field in fields if field.name in values]
    said = {field.key: _text(field, values[field.name], zone) for field in given}
    read = read_call(task, given, said, zone, by_name=frozenset(kwargs), is_checked=False)
    if read.faults or not _is_same([*read.args], [*args]) or not _is_same(read.kwargs, dict(kwargs)):
        return None
    return said


def _by_field(fields: list[Field], args: list[Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    values: dict[str, Any] = {}
    left_args, left_kwargs = [*args], dict(kwargs)
    for field in fields:
        if field.kind == "list":
            values |= {field.name: left_args} if left_args else {}
            left_args = []
        elif field.kind == "object":
            values |= {field.name: left_kwargs} if left_kwargs else {}
            left_kwargs = {}
        elif field.by_position and left_args:
            values[field.name] = left_args.pop(0)
        elif field.name in left_kwargs:
            values[field.name] = left_kwargs.pop(field.name)
    return None if left_args or left_kwargs else values


def _text(field: Field, value: Any, zone: ZoneInfo) -> str:
    if value is None:
        return ""
    if value == REDACTED:
        return REDACTED
    match field.kind:
        case "bool":
            return {True: "true", False: "false"}.get(value, "")
        case "choice":
            return next((choice.sent for choice in field.choices if choice.value == value), "")
        case "datetime":
            return _wall_text(value, zone)
        case "text" | "decimal" | "int" | "float" | "date":
            return str(value)
        case "any" if isinstance(value, str) and _is_text(value):
            return value
    return json.dumps(value, ensure_ascii=False)


def _is_text(value: str) -> bool:
    """Whether a text is none that a field of any type would read as JSON."""
    try:
        json.loads(value)
    except ValueError:
        return bool(value)
    return False


def _wall_text(value: Any, zone: ZoneInfo) -> str:
    """An instant as a browser's field for a time has it, by the viewer's clock."""
    try:
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return str(value)
    if at.tzinfo is None or at.microsecond:
        return ""
    return at.astimezone(zone).replace(tzinfo=None).isoformat()


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same, 1 and True apart; times in two zones may be one instant."""
    if isinstance(one, str) and isinstance(other, str) and one != other:
        try:
            return datetime.fromisoformat(one) == datetime.fromisoformat(other)
        except (TypeError, ValueError):
            return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[name], other[name]) for name in one)
    return type(one) is type(other) and bool(one == other)


def shown_fields(
    visit: Visit, task: Task[Any, Any], sent: Mapping[str, str], faults: Mapping[str, Fault | str]
) -> list[dict[str, Any]]:
    """The fields of a task for a template, with what was typed and what is wrong with it."""
    fields = fields_of(task, internals(visit.app).redaction.extra)
    return [_shown(visit, field, sent.get(field.key, ""), faults.get(field.name)) for field in fields]


def _shown(visit: Visit, field: Field, text: str, fault: Fault | str | None) -> dict[str, Any]:
    return {
        "field": field,
        "id": f"f-{field.name}",
        "value": "" if field.is_secret and text != REDACTED else text,
        "is_kept": text == REDACTED,
        "fault": said(visit, fault.hidden() if field.is_secret and isinstance(fault, Fault) else fault),
    }


def said(visit: Visit, fault: Fault | str | None) -> str:
    """A fault as a sentence in the viewer's language."""
    if isinstance(fault, Fault):
        return str(visit.words.texts.text(fault.key, **fault.values).unescape())
    return fault or ""
