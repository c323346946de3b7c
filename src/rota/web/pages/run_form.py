"""Builds the form that calls a task from the task's type hints, and builds the call from a filled form.

What a browser sends is text. Each field becomes the JSON value that its hint asks for, or an error at that field.
"""

from __future__ import annotations

import inspect
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from rota.errors import RotaError
from rota.model.jobs.payload import REDACTED, unpack_call
from rota.model.secrets.hints import hints_of
from rota.web.pages.json_text import BadJson, decode_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from zoneinfo import ZoneInfo

    from rota.tasks.task import Task

PREFIX = "arg."  # of the fields that are arguments
MOST_CHOICES = 200
_PARAMETER = inspect.Parameter
_SIMPLE: dict[Any, str] = {
    str: "text", int: "int", float: "float", bool: "bool", date: "date", datetime: "datetime", Decimal: "decimal",
}  # fmt: skip
_REST: dict[Any, str] = {_PARAMETER.VAR_POSITIONAL: "list", _PARAMETER.VAR_KEYWORD: "object"}


class Choice(NamedTuple):
    """One of the values that a parameter takes: what the form sends, what people read, and the value as JSON has it."""

    sent: str
    shown: str
    value: Any


class Field(Struct, frozen=True, kw_only=True):
    """One parameter as a field of the form."""

    name: str
    kind: str  # text, int, float, decimal, bool, date, datetime, choice, json, any, list or object
    hint: str  # the type, as Python writes it
    is_required: bool
    is_secret: bool
    by_position: bool
    is_nullable: bool  # an empty field of a required parameter is None
    choices: list[Choice]

    @property
    def key(self) -> str:
        return f"{PREFIX}{self.name}"


class Fault(Exception):
    """Why a field's text is not what its hint asks for: a text of the catalogue."""

    def __init__(self, key: str, **values: str) -> None:
        super().__init__(key)
        self.key = key
        self.values = values

    def hidden(self) -> Fault:
        """The same without the text, which is a secret."""
        return Fault(self.key, **{name: REDACTED if name == "text" else said for name, said in self.values.items()})


class Read(NamedTuple):
    """The call that a form makes, and what is wrong with it, by field."""

    args: list[Any]
    kwargs: dict[str, Any]
    faults: dict[str, Fault | str]


def fields_of(task: Task[Any, Any], redact: tuple[str, ...]) -> list[Field]:
    hints, signature = hints_of(task.function), task.signature
    return [
        _field(one, hints.get(one.name, Any), is_secret=signature.is_secret(one.name, redact))
        for one in signature.parameters.values()
    ]


def shows_plainly(field: Field) -> bool:
    """Whether what is typed into a field can be repeated: it is no secret, and no JSON that may hold one."""
    return not field.is_secret and field.kind not in {"json", "any", "list", "object"}


def read_call(
    task: Task[Any, Any],
    fields: list[Field],
    sent: Mapping[str, str],
    zone: ZoneInfo,
    *,
    by_name: frozenset[str] = frozenset(),
    is_checked: bool = True,
) -> Read:
    """The arguments that a form holds; a field that is left empty leaves its parameter's default.

    Those `by_name` were given so by the call that the form began with: a hidden value is found again at its place. Such
    a form is not checked here: the check needs the hidden values.
    """
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    faults: dict[str, Fault | str] = {}
    for position, field in enumerate(fields):
        try:
            text = sent.get(field.key, "")
            found: Any = REDACTED if text == REDACTED and not is_checked else _value(field, text, zone)
        except Fault as fault:
            faults[field.name] = fault
            continue
        if found is _NOTHING:
            continue
        if field.kind == "object":
            kwargs |= found
        elif field.kind == "list" and len(args) < position:
            faults[field.name] = Fault("catalog.bad_rest")
        elif field.kind == "list":
            args += found
        elif field.by_position and len(args) == position and field.name not in by_name:
            args.append(found)
        else:
            kwargs[field.name] = found
    if is_checked and not faults:
        faults |= _misfits(task, fields, args, kwargs)
    return Read(args, kwargs, faults)


_NOTHING = object()


def _misfits(task: Task[Any, Any], fields: list[Field], args: list[Any], kwargs: dict[str, Any]) -> dict[str, str]:
    """What the task's own check refuses, at the field that it names."""
    found: dict[str, str] = {}
    try:
        request = task.job(*args, **kwargs)
        misfits = list(task.signature.misfits(unpack_call(request.payload), is_written=True))
    except RotaError as err:
        misfits = [str(err)]
    for misfit in misfits:
        found.setdefault(field_named(fields, misfit), misfit)
    return found


def field_named(fields: list[Field], misfit: str) -> str:
    """The field that a message is about; empty if it names none."""
    return next((field.name for field in fields if f"'{field.name}'" in misfit), "")


def _field(one: inspect.Parameter, hint: Any, *, is_secret: bool) -> Field:
    inner, is_nullable = _without_none(hint)
    kind, choices = _kind_of(inner)
    kind = _REST.get(one.kind, kind)
    shown = hint if isinstance(hint, str) else "" if hint is Any else inspect.formatannotation(hint)
    return Field(
        name=one.name,
        kind=kind,
        hint=shown,
        is_required=one.default is one.empty and one.kind not in _REST,
        is_secret=is_secret,
        by_position=one.kind in {one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD},
        is_nullable=is_nullable,
        choices=choices,
    )


def _without_none(hint: Any) -> tuple[Any, bool]:
    """`X` of `X | None`, and whether None is taken."""
    if get_origin(hint) not in {Union, UnionType}:
        return hint, False
    others = [part for part in get_args(hint) if part is not NoneType]
    is_nullable = len(others) < len(get_args(hint))
    return (others[0], is_nullable) if len(others) == 1 else (hint, is_nullable)


def _kind_of(hint: Any) -> tuple[str, list[Choice]]:
    if hint is Any or isinstance(hint, str):
        return "any", []
    if get_origin(hint) is Literal:
        return _choices([(value, str(value)) for value in get_args(hint)])
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choices([(msgspec.to_builtins(one), f"{one.name}: {one.value}") for one in hint])
    return _SIMPLE.get(hint, "json"), []


def _choices(values: list[tuple[Any, str]]) -> tuple[str, list[Choice]]:
    if len(values) > MOST_CHOICES:
        return "any", []
    try:
        plain = [(msgspec.to_builtins(value), shown) for value, shown in values]
    except (TypeError, ValueError):
        return "any", []
    return "choice", [Choice(f"c{index}", shown, value) for index, (value, shown) in enumerate(plain)]


def _value(field: Field, text: str, zone: ZoneInfo) -> Any:
    if field.kind not in {"text", "any"}:
        text = text.strip()
    if text == "":
        if not field.is_required:
            return _NOTHING
        if field.is_nullable:
            return None
        if field.kind != "text":
            raise Fault("catalog.needed")
    return _READERS[field.kind](field, text, zone)


def _whole(_: Field, text: str, __: ZoneInfo) -> int:
    try:
        return int(text)
    except ValueError:
        raise Fault("catalog.bad_int", text=text) from None


def _number(_: Field, text: str, __: ZoneInfo) -> float:
    try:
        found = float(text)
    except ValueError:
        raise Fault("catalog.bad_float", text=text) from None
    if found - found != 0:  # JSON has no infinity
        raise Fault("catalog.bad_float", text=text)
    return found


def _day(_: Field, text: str, __: ZoneInfo) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise Fault("catalog.bad_date", text=text) from None


def _moment(_: Field, text: str, zone: ZoneInfo) -> str:
    return local_instant(text, zone).isoformat()


def local_instant(text: str, zone: ZoneInfo) -> datetime:
    """What a browser's field for a time holds, by the viewer's clock; one with an offset stays as it is."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Fault("catalog.bad_datetime", text=text) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=zone)


def _chosen(field: Field, text: str, __: ZoneInfo) -> Any:
    found = [choice for choice in field.choices if choice.sent == text]
    if not found:
        raise Fault("catalog.bad_choice", text=text)
    return found[0].value


def _json(_: Field, text: str, __: ZoneInfo) -> Any:
    try:
        return decode_json(text)
    except BadJson as err:
        raise Fault("catalog.bad_json", line=str(err.line), column=str(err.column)) from None


def _list(field: Field, text: str, zone: ZoneInfo) -> list[Any]:
    found = _json(field, text, zone)
    if not isinstance(found, list):
        raise Fault("catalog.bad_list")
    return found


def _object(field: Field, text: str, zone: ZoneInfo) -> dict[str, Any]:
    found = _json(field, text, zone)
    if not isinstance(found, dict):
        raise Fault("catalog.bad_object")
    return found


def _any(_: Field, text: str, __: ZoneInfo) -> Any:
    """JSON where it can be read as such, otherwise text: as the command line has it."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


_READERS: dict[str, Callable[[Field, str, ZoneInfo], Any]] = {
    "text": lambda _field, text, _zone: text,
    "decimal": lambda _field, text, _zone: text,
    "int": _whole,
    "float": _number,
    "bool": lambda _field, text, _zone: text == "true",
    "date": _day,
    "datetime": _moment,
    "choice": _chosen,
    "json": _json,
    "list": _list,
    "object": _object,
    "any": _any,
}
