"""Finds what a function's hints mark as secret: parameters, fields of their types, and the return value."""

from __future__ import annotations

import inspect
import re
from dataclasses import is_dataclass
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, NewType, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from rota.model.jobs.payload import DEEPEST
from rota.model.secrets.redaction import RESULT, Redaction, Secret, argument_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_PARAMETER = inspect.Parameter
_SCALARS = {str, int, float, bool, bytes, type(None)}  # types of values that mark nothing
_WORD = re.compile(r"\bSecret\b")


class Marks(Struct, frozen=True, kw_only=True):
    """The values that one function's hints mark as secret."""

    parameters: frozenset[str] = frozenset()  # whose whole value is secret
    fields: tuple[str, ...] = ()  # keys that are secret wherever they occur
    is_result: bool = False

    def __bool__(self) -> bool:
        return bool(self.parameters or self.fields or self.is_result)


def marks_of(function: Callable[..., Any]) -> Marks:
    """The marks of a function. A hint that cannot be resolved marks its value if its text has the word Secret."""
    fields: dict[str, None] = {}
    hints = hints_of(function, with_marks=True)
    whole = [
        name
        for name, hint in hints.items()
        if (_WORD.search(hint) if isinstance(hint, str) else _look(hint, fields, set()))
    ]
    return Marks(
        parameters=frozenset(name for name in whole if name != "return"),
        fields=tuple(fields),
        is_result="return" in whole,
    )


def hints_of(function: Callable[..., Any], *, with_marks: bool = False) -> dict[str, Any]:
    """A function's hints, each by itself: one that cannot be resolved stays text, and the others are still read."""
    plain = _written(function)
    try:
        return get_type_hints(plain, include_extras=with_marks)
    except Exception:  # noqa: BLE001 - a hint's own code may raise anything
        found = getattr(plain, "__annotations__", {})
    return {name: _resolved(plain, name, hint, with_marks=with_marks) for name, hint in found.items()}


def _written(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose hints hold: under decorators and `functools.partial`, or an object's `__call__`."""
    plain: Callable[..., Any] = inspect.unwrap(function)
    while isinstance(plain, partial):
        plain = inspect.unwrap(plain.func)
    is_object = not inspect.isroutine(plain) and not isinstance(plain, type)
    return hints_holder if is_object and (hints_holder := getattr(type(plain), "__call__", None)) else plain  # noqa: B004


def readable(function: Callable[..., Any], signature: inspect.Signature) -> inspect.Signature:
    """The signature as its author would write it: `password: str`, without the mark `Annotated[str, Secret]`."""
    hints = hints_of(function)
    shown = [
        one if one.annotation is one.empty else one.replace(annotation=hints.get(name, one.annotation))
        for name, one in signature.parameters.items()
    ]
    returns = signature.return_annotation
    if returns is not signature.empty:
        returns = hints.get("return", returns)
    return signature.replace(parameters=shown, return_annotation=None if returns is type(None) else returns)


def _resolved(function: Callable[..., Any], name: str, hint: Any, *, with_marks: bool) -> Any:
    alone = SimpleNamespace(__annotations__={name: hint})
    try:
        return get_type_hints(alone, globalns=getattr(function, "__globals__", {}), include_extras=with_marks)[name]
    except Exception:  # noqa: BLE001 - likewise
        return hint if isinstance(hint, str) else str(hint)


def secrets_of(
    parameters: Mapping[str, inspect.Parameter],
    marks: Marks,
    extra: Sequence[str],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> list[int | str]:
    """The entries that a payload needs about a call, so that readers without the function hide the same values."""
    names = Redaction(tuple(extra))
    positions = [
        index
        for index, name in zip(range(len(args)), positional(parameters), strict=False)
        if name in marks.parameters or names.is_secret(name)
    ]
    rest = next((name for name, one in parameters.items() if one.kind is _PARAMETER.VAR_KEYWORD), "")
    is_rest = bool(rest) and (rest in marks.parameters or names.is_secret(rest))
    own: dict[str, None] = {}  # marked fields that the values' own types have: a subclass may mark more than its hint
    positions += [index for index, value in enumerate(args) if _look_at(value, own) and index not in positions]
    named = [
        argument_entry(name)
        for name, value in kwargs.items()
        if name in marks.parameters or (is_rest and name not in parameters) or _look_at(value, own)
    ]
    fields = [f".{name}" for name in dict.fromkeys((*marks.fields, *own))]
    endings = [f"*{name}" for name in extra] if args or kwargs else []
    return [*positions, *named, *fields, *endings, *([RESULT] if marks.is_result else [])]


def positional(parameters: Mapping[str, inspect.Parameter]) -> Iterator[str]:
    """The names that arguments by position have; those of `*rest` all have its name."""
    for name, parameter in parameters.items():
        if parameter.kind is _PARAMETER.VAR_POSITIONAL:
            while True:
                yield name
        if parameter.kind not in {_PARAMETER.POSITIONAL_ONLY, _PARAMETER.POSITIONAL_OR_KEYWORD}:
            return
        yield name


def is_scalar(value: Any) -> bool:
    """Whether a value's own type can mark nothing."""
    return type(value) in _SCALARS


def _look_at(value: Any, fields: dict[str, None], depth: int = 0) -> bool:
    """Whether a value's own type marks all of it; the marked fields inside it are added to `fields`."""
    if is_scalar(value) or depth > DEEPEST:
        return False
    if isinstance(value, dict):
        items = list(value.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        items = list(value)
    else:
        items = [getattr(value, name, None) for name, _ in _fields(type(value))]
    parts = [_look_at(item, fields, depth + 1) for item in items]  # all are looked at: each may have fields
    return any(parts) or _look(type(value), fields, set())


def _look(hint: Any, fields: dict[str, None], seen: set[Any]) -> bool:
    """Whether a hint marks the whole value; marked fields inside it are added to `fields`."""
    if get_origin(hint) is Annotated:
        kind, *notes = get_args(hint)
        return any(note is Secret or isinstance(note, Secret) for note in notes) or _look(kind, fields, seen)
    marked = [part for part in get_args(hint) if _look(part, fields, seen)]  # all are looked at: each may have fields
    kind = get_origin(hint) or hint  # of Box[int] the fields of Box
    if type(kind).__name__ == "TypeAliasType":  # `type Pin = Annotated[str, Secret]`, from Python 3.12 on
        return _look(kind.__value__, fields, seen) or bool(marked)
    if isinstance(kind, NewType):
        return _look(kind.__supertype__, fields, seen)
    if not isinstance(kind, type) or kind in seen:
        return bool(marked)
    seen.add(kind)
    named = [name for name, part in _fields(kind) if _look(part, fields, seen)]
    if _is_array(kind):
        return bool(marked or named)  # JSON has no names for its fields, so that all of it is hidden
    fields.update(dict.fromkeys(named))
    return bool(marked)


def _is_array(kind: type) -> bool:
    """Whether JSON has a list for it: a NamedTuple, or a Struct that says so."""
    if issubclass(kind, Struct):
        return kind.__struct_config__.array_like
    return issubclass(kind, tuple)


def _fields(kind: type) -> Iterator[tuple[str, Any]]:
    """The fields of a dataclass, Struct, TypedDict or NamedTuple, by the names that JSON has for them."""
    if not (is_dataclass(kind) or issubclass(kind, Struct) or hasattr(kind, "__annotations__")):
        return
    try:
        hints = get_type_hints(kind, include_extras=True)
        encoded = (
            {one.name: one.encode_name for one in msgspec.structs.fields(kind)} if issubclass(kind, Struct) else {}
        )
    except Exception:  # noqa: BLE001 - as for functions
        return
    for name, hint in hints.items():
        yield encoded.get(name, name), hint
