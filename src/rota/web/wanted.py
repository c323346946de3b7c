"""Says what the field of a request wants: the values of a choice, or the description of its type."""

from __future__ import annotations

import re
from enum import Enum
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct

from rota.sentences import Said, sentence
from rota.web.types import WANTED

LONGEST = 80  # characters of a value that are shown

_STEPS = re.compile(r"[^.\[\]]+")


def value_at(given: Any, path: str) -> Any:
    """The value that was sent at a path such as trigger.calendar.nth or state[0]; None if there is none."""
    for step in _STEPS.findall(path):
        if isinstance(given, dict):
            given = given.get(step)
        elif isinstance(given, (list, tuple)) and step.isdigit() and int(step) < len(given):
            given = given[int(step)]
        else:
            return None
    return given


def shown(value: Any) -> str:
    """A plain value as it was sent, cut short; nothing of what is no plain value."""
    if not isinstance(value, (str, int, float)):
        return ""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def wanted_at(kind: Any, path: str) -> Said:
    """What the type wants at a path; empty if its type says no more than what it is made from."""
    hints = [kind]
    for step in _STEPS.findall(path):
        hints = [inner for hint in hints for inner in _inside(hint, step)]
    choices = [str(choice) for hint in hints for choice in _choices(hint)]
    if choices:
        if len(choices) == 1:
            return choices[0]
        return sentence("kind.or", "{first} or {other}", first=", ".join(choices[:-1]), other=choices[-1])
    text = next((text for hint in hints for text in _descriptions(hint)), "")
    return WANTED.get(text, text)


def _parts(hint: Any) -> list[Any]:
    """The hint and what it is made of: the members of a union, and what Annotated is about."""
    if get_origin(hint) is Annotated:
        return [hint, *_parts(get_args(hint)[0])]
    if get_origin(hint) is not None and get_origin(hint) not in {Literal, list, tuple, dict}:
        return [part for argument in get_args(hint) for part in _parts(argument)]
    return [hint]


def _inside(hint: Any, step: str) -> list[Any]:
    found = []
    for part in _parts(hint):
        if isinstance(part, type) and issubclass(part, Struct):
            found += [inner for name, inner in get_type_hints(part, include_extras=True).items() if name == step]
        elif get_origin(part) in {list, tuple}:
            found += [argument for argument in get_args(part) if argument is not Ellipsis]
    return found


def _choices(hint: Any) -> list[Any]:
    found: list[Any] = []
    for part in _parts(hint):
        if get_origin(part) is Literal:
            found += get_args(part)
        elif isinstance(part, type) and issubclass(part, Enum):
            found += [member.value for member in part]
    return found


def _descriptions(hint: Any) -> list[str]:
    metas = [meta for part in _parts(hint) if get_origin(part) is Annotated for meta in get_args(part)[1:]]
    return [meta.description for meta in metas if isinstance(meta, Meta) and meta.description]
