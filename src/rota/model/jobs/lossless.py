"""Finds values that JSON would give back as something else, because no hint says what they were.

A datetime becomes text, a dataclass a dict. If the parameter is annotated, the value is made again from the annotation.
If it is not, the task would silently get another type. A tuple that becomes a list is accepted: Python treats them
alike.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Collection, Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

OPEN = (Any, object, inspect.Parameter.empty)  # hints that say nothing
SCALARS = frozenset({str, int, float, bool, type(None)})
_UNIONS = (Union, types.UnionType)
_BARE = frozenset({list, dict, tuple, set, frozenset})  # containers of anything


def is_open(hint: Any) -> bool:
    """Whether a hint leaves open what a value, or something inside it, is."""
    if any(hint is one for one in OPEN):
        return True
    try:
        return _is_open(hint)
    except TypeError:  # it cannot be hashed, so it is no hint that is known
        return True


@lru_cache(maxsize=1024)
def _is_open(hint: Any) -> bool:
    if isinstance(hint, str) or hint in _BARE or not _is_known(hint):
        return True
    origin = get_origin(hint)
    is_container = isinstance(origin, type) and issubclass(origin, Collection)
    return (is_container or origin in _UNIONS) and any(is_open(part) for part in _inner(hint))


def changed_type(value: Any, hint: Any = Any) -> str:
    """The type of the first value that would come back as another; "" if all come back as they are."""
    kind = type(value)
    if kind in SCALARS or not is_open(hint):
        return ""
    if not any(hint is one for one in OPEN) and not (isinstance(hint, Hashable) and _is_known(hint)):
        hint = Any
    if get_origin(hint) in _UNIONS:
        return _in_union(value, _inner(hint))
    if kind is dict:
        return _in_dict(value, _inner(hint))
    if kind in {list, tuple}:
        return _first(map(changed_type, value, _hints_of_items(hint, len(value))))
    if kind in {set, frozenset} and not any(hint is one for one in OPEN):
        return _first(map(changed_type, value, _hints_of_items(hint, len(value))))
    return kind.__qualname__


def fitting_hint(value: Any) -> str:
    """A hint by which a value with such a type in it would come back as it is, as its author would write it."""
    kind = type(value)
    if kind is dict:
        key = next((type(key) for key in value if type(key) is not str), str)
        return f"dict[{'None' if key is type(None) else key.__qualname__}, {_hint_of_first(value.values())}]"
    if kind in {list, tuple}:
        return f"list[{_hint_of_first(value)}]"
    return kind.__qualname__


def _hint_of_first(values: Iterable[Any]) -> str:
    return next((fitting_hint(value) for value in values if changed_type(value)), "Any")


def _in_dict(value: dict[Any, Any], inner: list[Any]) -> str:
    """A dict: JSON has text for keys, and only a hint makes something else of them."""
    keys = (f"dict with a key of type {type(key).__qualname__}" for key in value if type(key) is not str)
    named = inner[-1] if inner else Any
    return ("" if inner else next(keys, "")) or _first(changed_type(item, named) for item in value.values())


def _in_union(value: Any, inner: list[Any]) -> str:
    """A value of a union: a value that is no container is made again by the member that names its type."""
    if type(value) in {list, tuple, dict}:
        return changed_type(value, next(part for part in inner if is_open(part)))
    says = [part for part in inner if part is not type(None) and not is_open(part)]
    return "" if says else type(value).__qualname__


def _inner(hint: Any) -> list[Any]:
    return [part for part in get_args(hint) if part is not Ellipsis]


def _hints_of_items(hint: Any, length: int) -> list[Any]:
    inner = _inner(hint)
    if get_origin(hint) is tuple and len(inner) == length:
        return inner
    return inner[:1] * length if inner else [Any] * length


def _first(found: Iterable[str]) -> str:
    return next((text for text in found if text), "")


@lru_cache(maxsize=1024)
def _is_known(hint: Any) -> bool:
    """Whether values can be made from this hint at all; if not, the task gets plain JSON."""
    try:
        msgspec.json.Decoder(hint)
    except Exception:  # noqa: BLE001 - a hint may be anything
        return False
    return True
