"""Writes a call as Python code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def call(task: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """A call as Python writes it: mail.send('ann', copies=2)."""
    words = [repr(value) for value in args] + [f"{name}={value!r}" for name, value in kwargs.items()]
    return f"{task}({', '.join(words)})"
