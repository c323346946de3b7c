"""Reads the owner's extra condition on rows: equal values by name, or SQL with parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rota.errors import BadOption

if TYPE_CHECKING:
    from collections.abc import Callable

Given = Mapping[str, Any] | str | tuple[str, Sequence[Any]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """SQL that follows AND, its parameters, the columns that it names, and those that it ties to one value."""

    sql: str = ""
    params: tuple[Any, ...] = ()
    columns: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()


def condition_of(given: Given, *, mark: str, quote: Callable[[str], str]) -> Condition:
    """`{"status": "open"}`, `"total > 5"`, or `("total > %s", [5])` with the marks of the driver."""
    if given is None:
        return Condition()
    if isinstance(given, Mapping):
        return _equal_values(given, mark, quote)
    if isinstance(given, str):
        sql = given.replace("%", "%%") if mark == "%s" else given
        return Condition(sql=_wrapped(sql))
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str):
        return Condition(sql=_wrapped(given[0]), params=tuple(given[1]))
    raise BadOption(
        f"the condition {given!r} cannot be used; write {{'status': 'open'}}, 'total > 5' or ('total > {mark}', [5])"
    )


def _equal_values(given: Mapping[str, Any], mark: str, quote: Callable[[str], str]) -> Condition:
    tests = [f"{quote(name)} IS NULL" if value is None else f"{quote(name)} = {mark}" for name, value in given.items()]
    if not tests:
        return Condition()
    values = tuple(value for value in given.values() if value is not None)
    fixed = tuple(name for name, value in given.items() if value is not None)
    return Condition(sql=_wrapped(" AND ".join(tests)), params=values, columns=tuple(given), fixed=fixed)


def _wrapped(sql: str) -> str:
    if not sql.strip():
        raise BadOption("the condition is empty; leave it out, or write SQL such as \"status = 'open'\"")
    return f" AND (\n{sql}\n)"  # the line break ends a comment of the owner's
