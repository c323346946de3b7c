"""Writes data to stdout as a table, JSON, JSON lines or CSV, and messages about it to stderr.

On a terminal a table is drawn by rich; in a pipe it is plain aligned text without colour.
"""

from __future__ import annotations

import csv
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from rota.cli.columns import STYLES
from rota.cli.words import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rota.cli.columns import Column

Item = TypeVar("Item")

FORMS = ("table", "json", "jsonl", "csv")


class Output:
    """Writes the data of a command, in the requested format."""

    def __init__(self, form: str = "table") -> None:
        self.form = form

    def rows(
        self,
        items: Sequence[Item],
        columns: Sequence[Column[Item]],
        kind: type[msgspec.Struct],
        facts: Callable[[Item], msgspec.Struct],
        *,
        empty: str,
    ) -> None:
        """A list: its columns for people, its facts (structs of one kind) for machines."""
        if self.form == "table":
            self._table(items, columns, empty)
        elif self.form == "csv":
            _write_csv(kind, [facts(item) for item in items])
        elif self.form == "jsonl":
            for item in items:
                write(msgspec.json.encode(facts(item)))
        else:
            _write_json([facts(item) for item in items])

    def page(self, facts: msgspec.Struct, lines: Callable[[], Iterable[str]]) -> None:
        """One thing: lines for people, its facts for machines."""
        if self.form == "table":
            for line in lines():
                write(line)
        elif self.form == "csv":
            _write_csv(type(facts), [facts])
        elif self.form == "jsonl":
            write(msgspec.json.encode(facts))
        else:
            _write_json(facts)

    def _table(self, items: Sequence[Item], columns: Sequence[Column[Item]], empty: str) -> None:
        if not items:
            say(empty)
        else:
            for line in table_lines(items, columns):
                write(line)


def write(text: str | bytes, *, err: bool = False, nl: bool = True) -> None:
    """Write to stdout or stderr. Colours are written to terminals only, and not if NO_COLOR is set."""
    click.echo(text, err=err, nl=nl, color=False if os.environ.get("NO_COLOR") else None)


def say(*lines: str) -> None:
    """Remarks for people, beside the data. If stderr is a full disk or a closed pipe, the command continues."""
    with suppress(OSError):
        for line in lines:
            write(line, err=True)


def warn(text: str) -> None:
    say(f"{click.style('warning:', fg='yellow')} {text}")


def table_lines(items: Sequence[Item], columns: Sequence[Column[Item]], *, indent: str = "") -> list[str]:
    """A table: on a terminal it fits the width, in a pipe it takes the room that it needs."""
    if sys.stdout.isatty():
        from rota.cli.terminal import draw  # noqa: PLC0415 - only a terminal needs rich, and it is slow to import

        return [indent + line for line in draw(items, columns, indent=len(indent)).splitlines()]
    cells = [[printable(column.cell(item)) for column in columns] for item in items]
    return aligned([[column.title for column in columns], *cells], indent=indent)


def aligned(rows: Sequence[Sequence[str]], *, indent: str = "") -> list[str]:
    """Rows of text with their columns below each other."""
    widths = [max(len(click.unstyle(cell)) for cell in column) for column in zip(*rows, strict=True)]
    return [
        (indent + "  ".join(_padded(cell, width) for cell, width in zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]


def heading(text: str) -> str:
    return click.style(text, bold=True)


def coloured(word: str) -> str:
    """A state in its colour."""
    return click.style(word, fg=STYLES.get(word))


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - len(click.unstyle(cell)))


def _write_json(data: Any) -> None:
    write(msgspec.json.format(msgspec.json.encode(data), indent=2))


def _write_csv(kind: type[msgspec.Struct], rows: Sequence[msgspec.Struct]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(kind.__struct_fields__)
    for row in rows:
        writer.writerow([_csv_cell(value) for value in msgspec.to_builtins(row).values()])


def _csv_cell(value: Any) -> Any:
    """Lists and mappings as JSON; nothing for None."""
    return msgspec.json.encode(value).decode() if isinstance(value, (list, dict, bool)) else value
