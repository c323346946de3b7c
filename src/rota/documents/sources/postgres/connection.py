"""Connects to the owner's database: a pool, short transactions, the server's clock, translated errors."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import tuple_row
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader
from psycopg_pool import ConnectionPool, PoolTimeout

from rota.documents.sources.server_clock import ServerClock
from rota.documents.sources.tables.dialect import Database, Selected, Session
from rota.errors import BadOption, StoreError, StoreUnavailable
from rota.store.postgres.address import describe
from rota.store.postgres.faults import translate
from rota.store.shared.forks import abandon

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from psycopg.abc import Buffer

DEADLINE = 8.0  # seconds for a connection, and for a row that another transaction has locked
CONNECTIONS = 4  # one locks and writes, one renews, and people look
CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
# A default of the owner's, such as SERIALIZABLE, would make a queue fail where it can wait. A process that is stopped
# within a transaction must not keep rows locked.
BEGIN = (
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; "
    f"SET LOCAL lock_timeout = {int(DEADLINE * 1000)}; "
    f"SET LOCAL idle_in_transaction_session_timeout = {int(DEADLINE * 1000)}; "
    f"{CLOCK}"
)


class _Timestamptz(TimestamptzLoader):
    """Infinity, and what is outside of Python's calendar, as text: one row must not break a batch."""

    def load(self, data: Buffer) -> Any:
        try:
            return super().load(data)
        except psycopg.DataError:
            return bytes(data).decode()


class _Timestamp(TimestampLoader):
    """Likewise."""

    def load(self, data: Buffer) -> Any:
        try:
            return super().load(data)
        except psycopg.DataError:
            return bytes(data).decode()


class _Date(DateLoader):
    """Likewise."""

    def load(self, data: Buffer) -> Any:
        try:
            return super().load(data)
        except psycopg.DataError:
            return bytes(data).decode()


class PostgresSession(Session):
    """A connection whose rows are plain tuples, whatever its owner has set."""

    def __init__(self, connection: psycopg.Connection[Any], now: int = 0) -> None:
        self.now = now
        self._connection = connection

    def select(self, sql: str, params: Sequence[Any] = ()) -> Selected:
        """Not as a prepared statement: that would fail once its owner has added a column to the table."""
        cursor = self._cursor()
        cursor.execute(sql.encode(), tuple(params), prepare=False)
        return Selected([column.name for column in cursor.description or ()], cursor.fetchall())

    def run(self, sql: str, params: Sequence[Any] = ()) -> None:
        self._cursor().execute(sql.encode(), tuple(params))

    def run_many(self, sql: str, params: Sequence[Sequence[Any]]) -> None:
        if params:
            self._cursor().executemany(sql.encode(), params)

    def _cursor(self) -> psycopg.Cursor[tuple[Any, ...]]:
        cursor = self._connection.cursor(row_factory=tuple_row)
        for name, loader in (("timestamptz", _Timestamptz), ("timestamp", _Timestamp), ("date", _Date)):
            cursor.adapters.register_loader(name, loader)
        return cursor


class PostgresDatabase(Database):
    """A database by its address, or by a pool of the owner's, which is never closed here."""

    def __init__(self, given: str | ConnectionPool[Any]) -> None:
        if not isinstance(given, (str, ConnectionPool)):
            raise BadOption(
                "PostgresSource takes a URL such as 'postgresql://host/shop', or a psycopg_pool.ConnectionPool; "
                f"got {given!r}"
            )
        self._given = given
        self._where = _where(given)
        self._pool = given if isinstance(given, ConnectionPool) else None
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._clock = ServerClock(self._ask)

    def now(self) -> int:
        return self._clock.now()

    def _ask(self) -> int:
        with self.read() as session:
            now: int = session.select(CLOCK).rows[0][0]
        return now

    @contextmanager
    def read(self) -> Iterator[Session]:
        with self._connection() as connection:
            was = connection.autocommit
            if not was:
                connection.autocommit = True
            try:
                yield PostgresSession(connection)
            finally:
                if not was and not connection.closed:
                    connection.autocommit = False

    @contextmanager
    def write(self) -> Iterator[Session]:
        with self._connection() as connection, connection.transaction():
            asked_at = time.monotonic()
            cursor = connection.cursor(row_factory=tuple_row).execute(BEGIN)
            while cursor.nextset():
                pass
            (now,) = cursor.fetchone() or (0,)
            self._clock.sync(now, asked_at)
            yield PostgresSession(connection, now)

    def close(self) -> None:
        if isinstance(self._given, str) and self._pool is not None:
            if self._pid == os.getpid():
                self._pool.close()
            self._pool = None

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Any]]:
        try:
            with self._living_pool().connection(timeout=DEADLINE) as connection:
                yield connection
        except PoolTimeout as err:
            raise StoreUnavailable(f"no connection to {self._where} in {DEADLINE:g} s ({err}); is it running?") from err
        except (errors.UndefinedTable, errors.UndefinedColumn, errors.InsufficientPrivilege) as err:
            raise StoreError(f"{self._where}: {str(err).splitlines()[0]}; `check()` of the source says more") from err
        except psycopg.Error as err:
            raise translate(err, self._where) from err

    def _living_pool(self) -> ConnectionPool[Any]:
        with self._lock:
            if self._pid != os.getpid():
                self._after_fork()
            if self._pool is None:
                self._pool = ConnectionPool(
                    str(self._given),
                    min_size=1,
                    max_size=CONNECTIONS,
                    open=True,
                    kwargs={
                        "autocommit": True,
                        "connect_timeout": int(DEADLINE),
                        "tcp_user_timeout": int(DEADLINE * 1000),
                    },
                )
            return self._pool

    def _after_fork(self) -> None:
        if isinstance(self._given, ConnectionPool):
            raise StoreError(
                f"the pool of {self._where} was opened before a fork; give the source a URL, or make it in the child"
            )
        abandon(self._pool)
        self._pool = None
        self._pid = os.getpid()


def _where(given: str | ConnectionPool[Any]) -> str:
    """The database for people, without its password."""
    info = given if isinstance(given, str) else given.conninfo
    if not isinstance(info, str):
        return "the postgresql database of the pool"
    try:
        return describe(conninfo_to_dict(info))
    except psycopg.ProgrammingError as err:
        raise BadOption("the address of the PostgreSQL database cannot be read; write postgresql://host/name") from err
