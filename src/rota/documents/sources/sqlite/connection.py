"""Connections to the owner's file: one for each thread, because SQLite's transactions belong to a connection."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from rota.clock import utc_micros
from rota.documents.sources.tables.dialect import Database, Selected, Session
from rota.errors import BadOption
from rota.store.shared.forks import abandon
from rota.store.sqlite.faults import LOCK_PATIENCE, translate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Place = str | Path | Callable[[], sqlite3.Connection]


class _Held(NamedTuple):
    """A thread's connection. Its lock is held during a call: closing it in the middle of one would crash."""

    connection: sqlite3.Connection
    lock: threading.Lock
    pid: int


class SqliteSession(Session):
    """A connection whose rows are plain tuples, whatever its owner has set."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.now = utc_micros()
        self._connection = connection

    def select(self, sql: str, params: Sequence[Any] = ()) -> Selected:
        cursor = self._cursor().execute(sql, tuple(params))
        return Selected([column[0] for column in cursor.description or ()], cursor.fetchall())

    def run(self, sql: str, params: Sequence[Any] = ()) -> None:
        self._cursor().execute(sql, tuple(params))

    def run_many(self, sql: str, params: Sequence[Sequence[Any]]) -> None:
        self._cursor().executemany(sql, [tuple(one) for one in params])

    def _cursor(self) -> sqlite3.Cursor:
        cursor = self._connection.cursor()
        cursor.row_factory = None
        return cursor


class SqliteDatabase(Database):
    """A file, or what a function of the owner's opens."""

    def __init__(self, given: Place) -> None:
        if isinstance(given, str) and (not given or given == ":memory:"):
            raise BadOption(
                f"SqliteSource cannot use {given!r}: such a database belongs to one connection; name a file, or give a "
                "function that opens a connection to a database that threads share"
            )
        if not callable(given) and not isinstance(given, (str, Path)):
            raise BadOption(
                "SqliteSource takes the path of a file, or a function that returns a connection of sqlite3; "
                f"got {given!r}"
            )
        self._given = given
        self._path = Path("the database" if callable(given) else given)
        self._opened: list[_Held] = []
        self._local = threading.local()

    def now(self) -> int:
        return utc_micros()

    @contextmanager
    def read(self) -> Iterator[Session]:
        with self._connection() as connection:
            yield SqliteSession(connection)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One transaction, which no other writes beside."""
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield SqliteSession(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close all connections, each after the call that uses it."""
        opened, self._opened, self._local = self._opened, [], threading.local()
        for held in opened:
            if held.lock.acquire(timeout=LOCK_PATIENCE):
                with suppress(sqlite3.ProgrammingError):  # one that only its own thread may close ends with that thread
                    held.connection.close()
                held.lock.release()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with self._translated():
            held = self._held()
            with held.lock:
                yield held.connection

    def _held(self) -> _Held:
        held: _Held | None = getattr(self._local, "held", None)
        if held is not None and held.pid == os.getpid():
            return held
        if held is not None:  # opened before a fork: closing it here would free locks of the parent's
            abandon(self._opened)
            self._opened = []
        made = _Held(self._open(), threading.Lock(), os.getpid())
        self._local.held = made
        self._opened.append(made)
        return made

    def _open(self) -> sqlite3.Connection:
        if callable(self._given):
            found = self._given()
            if not isinstance(found, sqlite3.Connection):
                raise BadOption(
                    f"the function that SqliteSource was given returned {found!r}, not a sqlite3.Connection"
                )
        else:  # a file that is missing is an error, and is not made
            where = f"file:{quote(str(self._path))}?mode=rw"
            found = sqlite3.connect(where, uri=True, timeout=LOCK_PATIENCE, check_same_thread=False)
            found.text_factory = _text
        found.isolation_level = None
        if getattr(found, "autocommit", None) is False:
            found.autocommit = True  # type: ignore[attr-defined,unused-ignore]  # from Python 3.12 on
        return found

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as err:
            raise translate(err, self._path) from err


def _text(given: bytes) -> str:
    """A text of the owner's. Bytes that are no UTF-8 must not make a whole batch unreadable."""
    return given.decode(errors="surrogateescape")
