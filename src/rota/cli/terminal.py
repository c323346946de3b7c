"""Draws tables on a terminal with rich, to fit its width."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rota.cli.columns import STYLES, Column
from rota.cli.words import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

Item = TypeVar("Item")

GAP = 2
NARROWEST = {"wrap": 12, "cut": 18}  # what a column that gives way keeps

_INSIDE = re.compile(r"(?<!,) ")
_AFTER_COMMA = re.compile(r"(?<=,) ")
_GLUE = "\ue000"  # no kind of space, so that nothing is wrapped at it


class Measured(NamedTuple, Generic[Item]):
    """A column with its cells, the width that it would like and the least that it can do with."""

    column: Column[Item]
    cells: list[str]
    width: int
    least: int


def draw(items: Sequence[Item], columns: Sequence[Column[Item]], *, indent: int = 0) -> str:
    """The table, with the codes of its colours."""
    console = Console(highlight=False)
    room = console.width - indent
    shown = _fitting([_measure(column, items) for column in columns], room)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
    for measured, width in zip(shown, _widths(shown, room), strict=True):
        column = measured.column
        table.add_column(column.title, width=width, justify="right" if column.is_number else "left")
    for cells in zip(*[measured.cells for measured in shown], strict=True):
        table.add_row(*[_text(measured.column, cell) for measured, cell in zip(shown, cells, strict=True)])
    with console.capture() as captured:
        console.print(table)
    return captured.get().replace(_GLUE, " ")


def _measure(column: Column[Item], items: Sequence[Item]) -> Measured[Item]:
    cells = [printable(column.cell(item)) for item in items]
    width = max(cell_len(text) for text in (column.title, *cells))
    least = min(width, NARROWEST.get(column.narrow, width))
    if column.narrow == "wrap at commas":
        least = max(cell_len(part) for text in (column.title, *cells) for part in _AFTER_COMMA.split(text))
    return Measured(column, cells, width, least)


def _fitting(columns: list[Measured[Item]], room: int) -> list[Measured[Item]]:
    """The columns that fit into the terminal."""
    shown = list(columns)
    while sum(measured.least + GAP for measured in shown) - GAP > room:
        last = max(shown, key=lambda measured: measured.column.dropped)
        if not last.column.dropped:
            break
        shown.remove(last)
    return shown


def _widths(columns: list[Measured[Item]], room: int) -> list[int]:
    """The widths that fill the room: the widest of those that can give way does so first."""
    widths = [measured.width for measured in columns]
    excess = sum(widths) + GAP * (len(widths) - 1) - room
    for _ in range(excess):
        loose = [index for index, measured in enumerate(columns) if widths[index] > measured.least]
        if not loose:
            break
        widths[max(loose, key=lambda index: widths[index])] -= 1
    return widths


def _text(column: Column[Item], cell: str) -> Text:
    style = STYLES.get(re.split(r"\W", cell, maxsplit=1)[0], "")
    if column.narrow == "cut":
        return Text(cell, style=style, no_wrap=True, overflow="ellipsis")
    return Text(_INSIDE.sub(_GLUE, cell) if column.narrow == "wrap at commas" else cell, style=style, overflow="fold")
