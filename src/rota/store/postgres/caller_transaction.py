"""Checks whether a connection of the caller's may carry our writes in its own transaction.

SQLAlchemy's and Django's connections are taken for what they wrap; neither library is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from rota.errors import BadOption
from rota.store.postgres.connection import IDENTITY
from rota.store.postgres.transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.store.postgres.connection import Database, Result

_WRAPPED = ("driver_connection", "dbapi_connection", "connection")  # SQLAlchemy's, then SQLAlchemy's and Django's
_DEEPEST = 6


def write_in(database: Database, transaction: object, work: Callable[[Transaction, int], Result]) -> Result:
    """Work in the caller's transaction. Its counters get a new row, so that nobody waits for its commit."""
    tx = Transaction(check_transaction(transaction, database), database.namespace)
    with database.translating():
        result = work(tx, tx.rows("SELECT {ns}.micros()")[0][0])
        tx.finish()
    return result


def check_transaction(transaction: object, database: Database) -> psycopg.Connection[Any]:
    """The caller's connection, with a transaction begun, on the store's own database."""
    connection = psycopg_connection(transaction)
    if connection.closed:
        raise BadOption("tx= is a connection that is closed")
    if connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE:
        raise BadOption(
            "tx= is a connection in autocommit without a transaction, so that nothing would bind the job to your "
            "writes; begin one: with connection.transaction(): …"
        )
    if connection.info.transaction_status == TransactionStatus.INERROR:
        raise BadOption("tx= is a transaction that has failed already; roll it back first")
    identity = psycopg.Cursor(connection, row_factory=tuple_row).execute(IDENTITY, prepare=False).fetchone()
    if identity != database.identity():  # one transaction needs the same cluster, and the same database in it
        raise BadOption(
            f"tx= is a connection to the database {connection.info.dbname} at {connection.info.host}, but the jobs are "
            f"kept in {database.where}: one transaction needs one database"
        )
    return connection


def psycopg_connection(transaction: object) -> psycopg.Connection[Any]:
    """The psycopg connection that this is, or that it wraps."""
    found: object = transaction
    for _ in range(_DEEPEST):
        if isinstance(found, psycopg.Connection):
            return found
        if isinstance(found, psycopg.AsyncConnection):
            raise BadOption("tx= is an async connection; the store writes synchronously: hand in a psycopg.Connection")
        if isinstance(found, psycopg.Cursor):
            found = found.connection
            continue
        found = _unwrapped(found)
    raise BadOption(
        "tx= takes a psycopg (3) connection here, or SQLAlchemy's Session or Connection or Django's connection over "
        f"one; got {type(transaction).__name__}"
    )


def _unwrapped(found: object) -> object:
    for name in _WRAPPED:
        inner = getattr(found, name, None)
        if name == "connection" and callable(inner) and not isinstance(inner, psycopg.Connection):
            inner = inner()  # a Session's
        if inner is not None and inner is not found:
            return inner
    return None
