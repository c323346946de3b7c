"""Begins transactions: what every write shares, writes in a caller's own transaction, and statements for many rows."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from rota.failpoints import reach
from rota.model.jobs.series import added
from rota.store.contract import Seal
from rota.store.shared.changing import Counts
from rota.store.sqlite import clock
from rota.store.sqlite.block_index import BlockIndex
from rota.store.sqlite.caller_transaction import caller_transaction
from rota.store.sqlite.codec import numbers_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType

    from rota.store.contract import Channel
    from rota.store.sqlite.codec import Row
    from rota.store.sqlite.connection import Database
    from rota.store.sqlite.notify import Notifier

LARGEST_IN = 500  # values in one IN (…) list
AT_ONCE = 50  # rows of one statement: its start costs more than a row


class Tables:
    """A connection as the steps use it that all stores with tables share."""

    __slots__ = ("_namespace", "connection")

    def __init__(self, connection: sqlite3.Connection, namespace: str) -> None:
        self.connection = connection
        self._namespace = namespace

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        rows: list[Row] = []
        for some in _bounded(values):
            rows += self._execute(statement, some)
        return rows

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        return sum(self._execute(statement, some).rowcount for some in _bounded(values))

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        return self.connection.executemany(self._text(statement), rows).rowcount if rows else 0

    def insert(self, table: str, types: Mapping[str, str], rows: Iterable[Row], tail: str = "") -> int:
        marks = ", ".join("?" * len(types))
        return self.run_many(f"INSERT INTO {{ns}}.{table} ({', '.join(types)}) VALUES ({marks}) {tail}", list(rows))

    def _execute(self, statement: str, values: Sequence[Any]) -> sqlite3.Cursor:
        return self.connection.execute(self._text(statement, values), _flat(values))

    def _text(self, statement: str, values: Sequence[Any] = ()) -> str:
        """A list of values has a mark for each. (JSON would end a text at a NUL, and older builds have none.)"""
        for value in values:
            if isinstance(value, list):
                statement = statement.replace("= ANY(?)", f"IN ({', '.join('?' * len(value))})", 1)
        return statement.replace("{ns}.", f"{self._namespace}_")


def _bounded(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The values of a statement. If one is a list, it is divided: a statement may have so many values and no more."""
    at = next((n for n, value in enumerate(values) if isinstance(value, list) and len(value) > LARGEST_IN), None)
    if at is None:
        yield values
        return
    for start in range(0, len(values[at]), LARGEST_IN):
        yield [*values[:at], values[at][start : start + LARGEST_IN], *values[at + 1 :]]


def _flat(values: Sequence[Any]) -> list[Any]:
    return [part for value in values for part in (value if isinstance(value, list) else [value])]


class Transaction(Tables):
    """One write transaction: its connection, its instant, the counters that it changes, and whom it notifies."""

    __slots__ = ("blocks", "channels", "counts", "now")

    def __init__(self, connection: sqlite3.Connection, now: int, blocks: BlockIndex, namespace: str) -> None:
        super().__init__(connection, namespace)
        self.now = now
        self.blocks = blocks
        self.counts = Counts()
        self.channels: list[Channel] = []

    def notify(self, *channels: Channel) -> None:
        """Wake the listeners of these channels once the transaction is committed."""
        self.channels += channels


class Seals:
    """The seal of one namespace, which every write that brings or wants work reads in its own transaction."""

    def __init__(self, namespace: str, describe: str) -> None:
        self._meta = f"{namespace}_meta"
        self._describe = describe
        self._select = f"SELECT value FROM {self._meta} WHERE name = 'seal'"

    def put(self, connection: sqlite3.Connection, seal: Seal | None) -> None:
        connection.execute(f"DELETE FROM {self._meta} WHERE name = 'seal'")
        if seal is not None:
            packed = msgspec.json.encode(seal).decode()
            connection.execute(f"INSERT INTO {self._meta} VALUES ('seal', ?)", (packed,))

    def get(self, connection: sqlite3.Connection) -> Seal | None:
        row = connection.execute(self._select).fetchone()
        return None if row is None else msgspec.json.decode(row[0], type=Seal)

    def check(self, connection: sqlite3.Connection) -> None:
        """Refuse work if the store is sealed."""
        seal = self.get(connection)
        if seal is not None:
            raise seal.refusal(self._describe)


class Verb:
    """The write transaction of one verb, from its begin to its notifications. A class for its cost: every verb pays."""

    __slots__ = ("_is_work", "_now", "_transactions", "_tx", "_verb", "_writing")

    def __init__(self, transactions: Transactions, verb: str, now: int | None, *, is_work: bool) -> None:
        self._transactions = transactions
        self._verb = verb
        self._now = now
        self._is_work = is_work
        self._writing = transactions.database.write()

    def __enter__(self) -> Transaction:
        connection = self._writing.__enter__()
        try:
            self._tx = self._transactions.begun(connection, self._now, is_work=self._is_work)
        except BaseException as err:  # an interrupt, too
            self._writing.__exit__(type(err), err, err.__traceback__)
            raise
        return self._tx

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        if err is not None:
            self._writing.__exit__(kind, err, trace)
            return
        tx = self._tx
        try:
            reach(f"{self._verb}.before_commit")
            self._transactions.write_counts(tx)
            fresh = tx.blocks.fresh()
        except BaseException as fault:
            self._writing.__exit__(type(fault), fault, fault.__traceback__)
            raise
        self._writing.__exit__(None, None, None)
        if fresh:
            tx.blocks.keep(fresh)
        reach(f"{self._verb}.after_commit")
        for channel in tx.channels:
            self._transactions.notifier.notify(channel)


class Transactions:
    """Begins the transactions of one namespace."""

    def __init__(
        self, database: Database, namespace: str, seals: Seals, blocks: BlockIndex, notifier: Notifier
    ) -> None:
        self.database = database
        self.notifier = notifier
        self._namespace = namespace
        self._seals = seals
        self._blocks = blocks
        self._count = (
            f"INSERT INTO {namespace}_count VALUES (?, ?, ?) ON CONFLICT (queue, name) DO UPDATE SET n = n + excluded.n"
        )

    def write(self, verb: str, now: int | None = None, *, is_work: bool = False) -> Verb:
        """A transaction that also writes the counters which it changes. Its instant is taken once it has begun:
        waiting for another process's transaction may have taken seconds."""
        return Verb(self, verb, now, is_work=is_work)

    def work(self, verb: str, now: int | None = None) -> Verb:
        """A transaction that adds or claims work, or changes waiting jobs: a sealed store refuses it."""
        return Verb(self, verb, now, is_work=True)

    def begun(self, connection: sqlite3.Connection, now: int | None, *, is_work: bool) -> Transaction:
        """The transaction that has begun on this connection."""
        if is_work:
            self._seals.check(connection)
        self._blocks.begin()
        return Transaction(connection, clock.at(now), self._blocks, self._namespace)

    def read(self) -> AbstractContextManager[sqlite3.Connection]:
        return self.database.read()

    def select(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        """What one query finds."""
        with self.read() as connection:
            return Tables(connection, self._namespace).rows(query, values)

    def snapshot(self) -> AbstractContextManager[sqlite3.Connection]:
        """All that is read is of one instant."""
        return self.database.snapshot()

    def check_open(self, connection: sqlite3.Connection) -> None:
        """Refuse work if the store is sealed."""
        self._seals.check(connection)

    @contextmanager
    def guest(self, transaction: object, *, is_work: bool) -> Iterator[Transaction]:
        """A write within the caller's own transaction, which may come to nothing: nothing is known from it."""
        with self.database.translated, caller_transaction(transaction, self.database.path) as connection:
            if is_work:
                self._seals.check(connection)
            tx = Transaction(connection, clock.at(None), BlockIndex(self._namespace), self._namespace)
            yield tx
            self.write_counts(tx)
        for channel in tx.channels:
            self.notifier.expect(channel)

    def write_counts(self, tx: Transaction) -> None:
        for row in tx.counts.rows():
            tx.connection.execute(self._count, row)
        if tx.counts.runs:
            self._add_runs(tx.connection, tx.counts.minute, tx.counts.runs)

    def _add_runs(self, connection: sqlite3.Connection, minute: int, runs: list[int]) -> None:
        """Add numbers to a minute. The transaction has the file's one write lock, so that reading first is safe."""
        query = f"SELECT numbers FROM {self._namespace}_series WHERE minute = ?"
        row = connection.execute(query, (minute,)).fetchone()
        numbers = added(numbers_of(row[0]), runs) if row else runs
        values = (minute, msgspec.json.encode(numbers).decode())
        connection.execute(f"INSERT OR REPLACE INTO {self._namespace}_series VALUES (?, ?)", values)


def rows_in(
    connection: sqlite3.Connection, query: str, values: Sequence[Any], extra: str = ""
) -> list[tuple[Any, ...]]:
    """What a query that ends with IN finds, in lists of bounded length."""
    rows: list[tuple[Any, ...]] = []
    for start in range(0, len(values), LARGEST_IN):
        chunk = values[start : start + LARGEST_IN]
        rows += connection.execute(f"{query} ({', '.join('?' * len(chunk))}) {extra}", chunk)
    return rows


class Insert:
    """An insert into the table of jobs; `values` are what one row is made of: literals, and ? for a bound value."""

    def __init__(self, table: str, columns: Sequence[str], values: Sequence[str]) -> None:
        self._head = f"INSERT INTO {table} ({', '.join(columns)}) VALUES "
        self._row = f"({', '.join(values)})"
        self._one, self._many = self._statement(1), self._statement(AT_ONCE)

    def all_or_none(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> range | None:
        """The positions that all of them got; None, and nothing is written, if one of them exists already."""
        if len(rows) == 1:
            position = self.one(connection, rows[0])
            return None if position is None else range(position, position + 1)
        if not all_or_none(connection, lambda: self._write(connection, rows), len(rows)):
            return None
        (last,) = connection.execute("SELECT last_insert_rowid()").fetchone()
        return range(last - len(rows) + 1, last + 1)

    def one(self, connection: sqlite3.Connection, row: Row) -> int | None:
        """The position that a job got; None if it exists already."""
        written = connection.execute(self._one, row)
        return written.lastrowid if written.rowcount == 1 else None

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
        is_one = " AND ".join(
            f"{table}.{column} = new.column{number}" for number, column in enumerate(fence, width + 1)
        )
        plain = ", ".join(f"{column} = ?" for column in becomes)
        given = ", ".join(f"{column} = new.column{number}" for number, column in enumerate(becomes, 1))
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
