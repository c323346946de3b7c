"""Defines the columns of a table, and the colours of the words in its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Item = TypeVar("Item")

STYLES = {  # words that mean the same everywhere
    "succeeded": "green",
    "on": "green",
    "alive": "green",
    "open": "green",
    "running": "cyan",
    "failed": "red",
    "broken": "red",
    "silent": "red",
    "paused": "yellow",
    "cancelled": "yellow",
    "disabled": "yellow",
    "retired": "yellow",
    "retrying": "yellow",
}


class Column(NamedTuple, Generic[Item]):
    """One column of a table: its title, the cell of an item, and how it gives way on a narrow terminal."""

    title: str
    cell: Callable[[Item], str]
    narrow: Literal["never", "wrap", "wrap at commas", "cut"] = "never"
    is_number: bool = False
    dropped: int = 0  # where the rest does not fit, the column with the highest number goes first; 0 stays
