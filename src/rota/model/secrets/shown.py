"""Writes records as people may see them, such as in a log line: without fields that may hold secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msgspec import Struct


def without(record: Struct, *hidden: str) -> str:
    """The repr of a record; the hidden fields are named, and their values are not shown."""
    names = record.__struct_fields__
    fields = (f"{name}=…" if name in hidden else f"{name}={getattr(record, name)!r}" for name in names)
    return f"{type(record).__name__}({', '.join(fields)})"
