"""Begins transactions: what every write shares, and writes within a caller's own transaction."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rota.errors import BadOption
from rota.failpoints import reach
from rota.store.contract import Seal
from rota.store.shared.counting import Counts
from rota.store.sqlite import clock
from rota.store.sqlite.block_index import BlockIndex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from rota.store.contract import Channel
    from rota.store.sqlite.connection import Database
    from rota.store.sqlite.notify import Notifier

LARGEST_IN = 500  # values in one IN (…) list


class Transaction:
    """One write transaction: its connection, its instant, the counters that it changes, and whom it notifies."""

    __slots__ = ("blocks", "channels", "connection", "counts", "now")

    def __init__(self, connection: sqlite3.Connection, now: int, blocks: BlockIndex) -> None:
        self.connection = connection
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


class Transactions:
    """Begins the transactions of one namespace."""

    def __init__(
        self, database: Database, namespace: str, seals: Seals, blocks: BlockIndex, notifier: Notifier
    ) -> None:
        self._database = database
        self._namespace = namespace
        self._seals = seals
        self._blocks = blocks
        self._notifier = notifier
        self._count = (
            f"INSERT INTO {namespace}_count VALUES (?, ?, ?) ON CONFLICT (queue, name) DO UPDATE SET n = n + excluded.n"
        )

    @contextmanager
    def write(self, verb: str, now: int | None = None, *, is_work: bool = False) -> Iterator[Transaction]:
        """A transaction that also writes the counters which it changes. Its instant is taken once it has begun:
        waiting for another process's transaction may have taken seconds."""
        with self._database.write() as connection:
            if is_work:
                self._seals.check(connection)
            self._blocks.begin()
            tx = Transaction(connection, clock.at(now), self._blocks)
            yield tx
            reach(f"{verb}.before_commit")
            connection.executemany(self._count, tx.counts.rows())
            fresh = self._blocks.fresh()
        self._blocks.keep(fresh)
        reach(f"{verb}.after_commit")
        for channel in tx.channels:
            self._notifier.notify(channel)

    def work(self, verb: str, now: int | None = None) -> AbstractContextManager[Transaction]:
        """A transaction that brings or wants work, or changes what waits: a sealed store refuses it."""
        return self.write(verb, now, is_work=True)

    def read(self) -> AbstractContextManager[sqlite3.Connection]:
        return self._database.read()

    def snapshot(self) -> AbstractContextManager[sqlite3.Connection]:
        """All that is read is of one instant."""
        return self._database.snapshot()

    def check_open(self, connection: sqlite3.Connection) -> None:
        """Refuse work if the store is sealed."""
        self._seals.check(connection)

    @contextmanager
    def guest(self, transaction: object, *, is_work: bool) -> Iterator[Transaction]:
        """A write within the caller's own transaction, which may come to nothing: nothing is known from it."""
        connection = check_transaction(transaction, self._database.path)
        if is_work:
            self._seals.check(connection)
        tx = Transaction(connection, clock.at(None), BlockIndex(self._namespace))
        yield tx
        connection.executemany(self._count, tx.counts.rows())


def check_transaction(transaction: object, path: Path) -> sqlite3.Connection:
    """The caller's connection, with a transaction begun: it must be on the store's own file."""
    if not isinstance(transaction, sqlite3.Connection):
        raise BadOption(f"tx= takes a sqlite3 connection here, got {type(transaction).__name__}")
    files = [row[2] for row in transaction.execute("PRAGMA database_list") if row[1] == "main"]
    if not files or not files[0] or Path(files[0]).resolve() != path.resolve():
        shown = files[0] if files and files[0] else "a database in memory"
        raise BadOption(
            f"tx= is a connection to {shown}, but the jobs are kept in {path}: one transaction needs one file"
        )
    if not transaction.in_transaction:
        transaction.execute("BEGIN IMMEDIATE")  # a savepoint alone would commit when it is released
    return transaction


def rows_in(
    connection: sqlite3.Connection, query: str, values: Sequence[Any], extra: str = ""
) -> list[tuple[Any, ...]]:
    """What a query that ends with IN finds, in lists of bounded length."""
    rows: list[tuple[Any, ...]] = []
    for start in range(0, len(values), LARGEST_IN):
        chunk = values[start : start + LARGEST_IN]
        rows += connection.execute(f"{query} ({', '.join('?' * len(chunk))}) {extra}", chunk)
    return rows
