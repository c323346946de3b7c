"""Rows by the batch: many to a statement, since its start costs more than a row, and all of them or none."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    Row = tuple[Any, ...]

AT_ONCE = 50  # rows of one statement


class Insert:
    """An insert into the table of jobs; `values` are what one row is made of: literals, and ? for a bound value."""

    def __init__(self, table: str, columns: Sequence[str], values: Sequence[str]) -> None:
        self._head = f"INSERT INTO {table} ({', '.join(columns)}) VALUES "
        self._row = f"({', '.join(values)})"
        self._one, self._many = self._statement(1), self._statement(AT_ONCE)

    def all_or_none(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> range | None:
        """The places that were given to all of them; None where one is there already, and then none is written."""
        if len(rows) == 1:
            written = connection.execute(self._one, rows[0])
            return range(written.lastrowid or 0, (written.lastrowid or 0) + 1) if written.rowcount == 1 else None
        if not all_or_none(connection, lambda: self._write(connection, rows), len(rows)):
            return None
        (last,) = connection.execute("SELECT last_insert_rowid()").fetchone()
        return range(last - len(rows) + 1, last + 1)

    def _write(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> int:
        return write_rows(connection, self._one, self._many, rows)

    def _statement(self, number: int) -> str:
        return f"{self._head}{', '.join([self._row] * number)} ON CONFLICT (id) DO NOTHING"


class Update:
    """An update of one job a row: `values` say what its columns become and which job it is, all of them bound."""

    def __init__(self, table: str, becomes: Sequence[str], others: str, fence: Sequence[str], condition: str) -> None:
        width = len(becomes)
        values = f"({', '.join('?' * (width + len(fence)))})"
        is_it = " AND ".join(f"{column} = ?" for column in fence)
        is_one = " AND ".join(f"{table}.{column} = new.column{place}" for place, column in enumerate(fence, width + 1))
        plain = ", ".join(f"{column} = ?" for column in becomes)
        given = ", ".join(f"{column} = new.column{place}" for place, column in enumerate(becomes, 1))
        rows = f"(VALUES {', '.join([values] * AT_ONCE)}) AS new"
        self._one = f"UPDATE {table} SET {plain}, {others} WHERE {is_it} AND {condition}"
        self._many = f"UPDATE {table} SET {given}, {others} FROM {rows} WHERE {is_one} AND {condition}"

    def write(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> int:
        """How many jobs were what their rows say."""
        return write_rows(connection, self._one, self._many, rows)


def write_rows(connection: sqlite3.Connection, one: str, many: str, rows: Sequence[Row]) -> int:
    """Write rows by statements for many and for one; how many were."""
    whole = len(rows) // AT_ONCE * AT_ONCE
    flat = [tuple(chain.from_iterable(rows[start : start + AT_ONCE])) for start in range(0, whole, AT_ONCE)]
    written = connection.executemany(many, flat).rowcount if flat else 0
    return written + (connection.executemany(one, rows[whole:]).rowcount if rows[whole:] else 0)


def all_or_none(connection: sqlite3.Connection, write: Callable[[], int], number: int) -> bool:
    """Whether so many rows were written; nothing is where it were others."""
    connection.execute("SAVEPOINT jobs")
    if write() != number:
        connection.execute("ROLLBACK TO jobs")
        return False
    connection.execute("RELEASE jobs")
    return True
