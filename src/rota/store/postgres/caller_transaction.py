"""Checks whether a connection of the caller's may carry our writes in its own transaction."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from rota.errors import BadOption
from rota.store.postgres.connection import IDENTITY
from rota.store.postgres.transaction import Transaction
from rota.store.shared.caller_connection import (
    OnLoop,
    driver_connection,
    elsewhere,
    not_begun,
    not_taken,
    within_savepoint,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.store.postgres.connection import Database, Result


def write_in(
    database: Database, transaction: object, work: Callable[[Transaction, int], Result], *, savepoint: bool = False
) -> Result:
    """Work in the caller's transaction. Its counters get a new row, so that nobody waits for its commit.

    If the work fails, the server refuses the whole transaction. With a savepoint, the caller's other writes are kept.
    """
    connection, cursor = check_transaction(transaction, database)
    tx = Transaction(connection, database.namespace, cursor=cursor)

    def is_open() -> bool:
        return connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    with database.translating(), within_savepoint(tx.run, is_open) if savepoint else nullcontext():
        result = work(tx, tx.rows("SELECT {ns}.micros()")[0][0])
        tx.finish()
    return result


def check_transaction(transaction: object, database: Database) -> tuple[Any, Any]:
    """The caller's connection and a cursor, with a transaction begun, on the store's own database."""
    connection = psycopg_connection(transaction)
    if connection.closed:
        raise BadOption("tx= is a connection that is closed")
    if connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE:
        raise not_begun("with connection.transaction(): …")
    if connection.info.transaction_status == TransactionStatus.INERROR:
        raise BadOption("tx= is a transaction that has failed already; roll it back first")
    cursor: Any = AsyncCursor(transaction) if isinstance(transaction, OnLoop) else None
    if isinstance(connection, psycopg.Connection):
        cursor = psycopg.Cursor(connection, row_factory=tuple_row)
    with database.translating():
        identity = cursor.execute(IDENTITY, prepare=False).fetchall()[0]
    if identity != database.identity:  # one transaction needs the same cluster, and the same database in it
        shown = f"the database {connection.info.dbname} at {connection.info.host}"
        raise elsewhere(shown, database.where, "database")
    return connection, cursor


def psycopg_connection(transaction: object) -> psycopg.Connection[Any] | psycopg.AsyncConnection[Any]:
    """The psycopg connection that this is, or that it wraps."""
    if isinstance(transaction, OnLoop):
        found = transaction.connection
    else:
        found = driver_connection(transaction, (psycopg.Connection,))
    if isinstance(found, (psycopg.Connection, psycopg.AsyncConnection)):
        return found
    raise not_taken(transaction, "psycopg (3)", " (postgresql+psycopg://…)", "another driver or database")


class AsyncCursor:
    """A cursor of an async connection, called from another thread than its loop's: what the store uses of psycopg's."""

    def __init__(self, given: OnLoop) -> None:
        self._given = given
        self._cursor = psycopg.AsyncCursor(given.connection, row_factory=tuple_row)

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    def execute(self, statement: Any, values: Any = None, **options: Any) -> AsyncCursor:
        self._given.wait(self._cursor.execute(statement, values, **options))
        return self

    def executemany(self, statement: Any, rows: Any) -> None:
        self._given.wait(self._cursor.executemany(statement, rows))

    def fetchall(self) -> list[Any]:
        return self._given.wait(self._cursor.fetchall())
