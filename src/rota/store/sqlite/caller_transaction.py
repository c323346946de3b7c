"""Checks whether a connection of the caller's may carry our writes in its own transaction."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rota.store.shared.caller_connection import (
    OnLoop,
    driver_connection,
    elsewhere,
    not_begun,
    not_taken,
    unusable,
    within_savepoint,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class _Rows:
    """What a statement on an async connection answered, read to its end."""

    def __init__(self, rows: list[Any], rowcount: int, lastrowid: int | None) -> None:
        self._rows = iter(rows)
        self.rowcount = rowcount
        self.lastrowid = lastrowid

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows


class AsyncConnection:
    """A connection of aiosqlite, called from another thread than its loop's: what the store uses of sqlite3's."""

    def __init__(self, given: OnLoop) -> None:
        self._given = given
        self.isolation_level = given.connection.isolation_level

    @property
    def row_factory(self) -> Any:
        return self._given.connection.row_factory

    @row_factory.setter
    def row_factory(self, factory: Any) -> None:
        self._given.connection.row_factory = factory

    @property
    def text_factory(self) -> Any:
        return self._given.connection.text_factory

    @text_factory.setter
    def text_factory(self, factory: Any) -> None:
        self._given.connection.text_factory = factory

    @property
    def in_transaction(self) -> bool:
        return bool(self._given.connection.in_transaction)

    @property
    def autocommit(self) -> object:
        """As sqlite3 has it since Python 3.12. aiosqlite shows the connection only to its row factory."""
        found: list[object] = []

        def note(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
            found.append(getattr(cursor.connection, "autocommit", None))
            return row

        before, self.row_factory = self.row_factory, note
        try:
            self.execute("SELECT 1")
        finally:
            self.row_factory = before
        return found[0]

    def execute(self, statement: str, values: Sequence[Any] = ()) -> _Rows:
        async def run() -> _Rows:
            async with self._given.connection.execute(statement, values) as cursor:
                return _Rows(list(await cursor.fetchall()), cursor.rowcount, cursor.lastrowid)

        return self._given.wait(run())

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> _Rows:
        async def run() -> _Rows:
            async with self._given.connection.executemany(statement, rows) as cursor:
                return _Rows([], cursor.rowcount, cursor.lastrowid)

        return self._given.wait(run())


@contextmanager
def caller_transaction(transaction: object, path: Path) -> Iterator[sqlite3.Connection]:
    """The caller's connection, with a transaction begun. If the block fails, its writes are undone, and no others.

    Until the block ends, the connection gives rows as tuples and text as str, as the store reads them.
    """
    connection = _connection(transaction)
    before = connection.row_factory, connection.text_factory
    connection.row_factory, connection.text_factory = None, str
    try:
        _check(connection, transaction, path)
        with within_savepoint(connection.execute, lambda: connection.in_transaction):
            yield connection
    finally:
        connection.row_factory, connection.text_factory = before


def _check(connection: sqlite3.Connection, transaction: object, path: Path) -> None:
    """Refuse a connection to another file, or one whose writes nothing would bind together."""
    try:
        files = [row[2] for row in connection.execute("PRAGMA database_list") if row[1] == "main"]
    except (sqlite3.ProgrammingError, ValueError) as err:  # closed, or of another thread
        raise unusable(transaction, err) from err
    if not files or not files[0] or Path(files[0]).resolve() != path.resolve():
        shown = files[0] if files and files[0] else "a database in memory"
        raise elsewhere(shown, path, "file")
    if not connection.in_transaction:
        if connection.isolation_level is None or getattr(connection, "autocommit", None) is True:
            raise not_begun("connection.execute('BEGIN')")
        connection.execute("BEGIN IMMEDIATE")  # a savepoint alone would commit when it is released


def _connection(transaction: object) -> sqlite3.Connection:
    if isinstance(transaction, OnLoop):
        if type(transaction.connection).__module__.partition(".")[0] == "aiosqlite":
            return cast("sqlite3.Connection", AsyncConnection(transaction))
        found = None
    else:
        found = driver_connection(transaction, (sqlite3.Connection,))
    if not isinstance(found, sqlite3.Connection):
        more = ", or an aiosqlite connection in a coroutine"
        raise not_taken(transaction, "sqlite3", more, "another database")
    return found
