"""Reads JSON that a person types: its value, or the line and column at which it is wrong."""

from __future__ import annotations

import json
from typing import Any

import msgspec


class BadJson(Exception):
    """Text that is not JSON, and where that shows."""

    def __init__(self, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}")
        self.line = line
        self.column = column


def decode_json(text: str) -> Any:
    """The value; lines and columns of an error begin with 1."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise BadJson(*_place(text)) from None


def _place(text: str) -> tuple[int, int]:
    """Where the text stops being JSON. The other decoder counts as people do; what it accepts is wrong at its end."""
    try:
        json.loads(text)
    except json.JSONDecodeError as err:
        return err.lineno, err.colno
    except RecursionError:
        pass
    lines = text.split("\n")
    return len(lines), len(lines[-1]) + 1
