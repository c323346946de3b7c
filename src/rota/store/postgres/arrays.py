"""Arrays as PostgreSQL reads them, written by hand: the driver takes longer over a list than the server does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def literal(values: Sequence[Any]) -> str:
    """A list of numbers, texts, bytes or truths (or None) as one text."""
    kinds = set(map(type, values))
    if kinds == {int}:
        return f"{{{','.join(map(str, values))}}}"
    return f"{{{','.join(map(_item, values))}}}"


def once(values: list[Any]) -> list[Any]:
    """A column as it is sent where one element may stand for all: that one, if all are the same."""
    return values[:1] if values.count(values[0]) == len(values) else values


def _item(value: Any) -> str:
    if value is None:
        return "NULL"
    if value is True or value is False:
        return "t" if value else "f"
    if isinstance(value, str):
        return f'"{_escaped(value)}"'
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    return str(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"') if "\\" in text or '"' in text else text
