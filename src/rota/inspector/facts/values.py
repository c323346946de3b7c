"""Converts values that facts share: instants in UTC, spans as text, and structs filled from a thing's attributes."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from rota.model.micros import span_text

if TYPE_CHECKING:
    from datetime import datetime

Facts = TypeVar("Facts", bound=Struct)


def utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.astimezone(UTC)


def duration(micros: int) -> str | None:
    """A span such as 1h30m; None for no span."""
    return span_text(micros) if micros else None


def filled(kind: type[Facts], thing: object, **own: Any) -> Facts:
    """Facts with the thing's attributes of the same names, and the given values for the others."""
    return kind(**{name: getattr(thing, name) for name in kind.__struct_fields__ if name not in own}, **own)
