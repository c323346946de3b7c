"""Calls the schema's functions by prepared statements, through libpq.

The driver's cursor takes 40 microseconds longer, which is a tenth of the time that one enqueue takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus

from rota.store.postgres.codec import array_literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg.pq.abc import PGresult

    from rota.store.postgres.codec import Row


class PreparedCalls:
    """The statements that the connections of one pool have prepared."""

    def __init__(self) -> None:
        self._names: WeakKeyDictionary[psycopg.Connection[Any], dict[str, bytes]] = WeakKeyDictionary()

    def call(self, connection: psycopg.Connection[Any], statement: str, values: Sequence[Any]) -> list[Row]:
        """Run a statement and wait for its rows."""
        names = self._names.setdefault(connection, {})
        name = names.get(statement)
        if name is None:
            name = f"rota_{len(names)}".encode()
            _checked(connection, connection.pgconn.prepare(name, _numbered(statement)), ExecStatus.COMMAND_OK)
            names[statement] = name
        encoding = connection.info.encoding  # a pool of the caller's may use another one
        sent: list[Any] = [_encoded(value, encoding) for value in values]
        formats = [int(type(value) in _BINARY) for value in values]
        result = connection.pgconn.exec_prepared(name, sent, formats, 1)
        loader = Transformer(connection)
        loader.set_pgresult(_checked(connection, result, ExecStatus.TUPLES_OK))
        return loader.load_rows(0, result.ntuples, tuple)


_BINARY = {str, bytes}  # sent as they are, so that the server refuses what it cannot keep; everything else as text


def _encoded(value: Any, encoding: str) -> bytes | None:
    if value is None or type(value) is bytes:
        return value
    return (array_literal(value) if type(value) is list else str(value)).encode(encoding)


def _numbered(statement: str) -> bytes:
    first, *rest = statement.split("%s")
    return "".join([first, *(f"${number}{part}" for number, part in enumerate(rest, 1))]).encode()


def _checked(connection: psycopg.Connection[Any], result: PGresult, expected: ExecStatus) -> PGresult:
    if result.status == expected:
        return result
    if connection.pgconn.status == ConnStatus.BAD:
        raise psycopg.OperationalError(connection.pgconn.get_error_message())
    raise psycopg.errors.error_from_result(result, encoding=connection.info.encoding)
