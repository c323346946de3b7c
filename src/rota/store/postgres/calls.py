"""Calls of the server's functions, straight through libpq: the driver's cursor takes longer over one than the server.

Texts and bytes go as they are, so that the server itself refuses what it cannot keep; all else goes as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus

from rota.store.postgres.arrays import literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg.pq.abc import PGresult

Row = tuple[Any, ...]
_NOT_AS_PREPARED = {"26000", "42P05", "0A000"}  # it is gone, or there twice, or gives something else by now


class Function:
    """A function of the schema, by its name and the types of what it takes."""

    def __init__(self, name: str, types: Sequence[str]) -> None:
        self.name = f"rota_{name}".encode()
        self.formats = [int(kind in {"text", "bytea"}) for kind in types]
        marks = ", ".join(f"${number}::{kind}" for number, kind in enumerate(types, 1))
        self._text = f"SELECT * FROM {{ns}}.{name}({marks})"

    def text(self, namespace: str) -> bytes:
        return self._text.replace("{ns}", f'"{namespace}"').encode()


class Prepared:
    """Which functions each connection of a store has prepared. Behind a pooler, none ever is."""

    def __init__(self) -> None:
        self.is_allowed = False
        self._known: WeakKeyDictionary[psycopg.Connection[Any], set[Function]] = WeakKeyDictionary()

    def see_to(self, connection: psycopg.Connection[Any], function: Function, namespace: str) -> None:
        """Prepare a function where that was not done yet."""
        known = self._known.setdefault(connection, set())
        if function in known:
            return
        result = connection.pgconn.prepare(function.name, function.text(namespace))
        checked(connection, result, ExecStatus.COMMAND_OK)
        known.add(function)


def call(
    connection: psycopg.Connection[Any],
    namespace: str,
    function: Function,
    values: Sequence[Any],
    prepared: Prepared | None,
) -> list[Row]:
    """Call a function and wait for its rows. `prepared` only outside a transaction, where a call can be repeated."""
    encoding = connection.info.encoding  # a pool of the caller's may have a taste of its own
    sent: list[Any] = [_sent(value, encoding) for value in values]
    if prepared is None or not prepared.is_allowed:
        return _call_whole(connection, namespace, function, sent)
    try:
        prepared.see_to(connection, function, namespace)
        result = connection.pgconn.exec_prepared(function.name, sent, function.formats, 1)
        return _rows(connection, checked(connection, result))
    except psycopg.Error as err:
        if err.sqlstate not in _NOT_AS_PREPARED:
            raise
        prepared.is_allowed = False
        return _call_whole(connection, namespace, function, sent)


def _call_whole(
    connection: psycopg.Connection[Any], namespace: str, function: Function, sent: Sequence[bytes | None]
) -> list[Row]:
    result = connection.pgconn.exec_params(function.text(namespace), sent, None, function.formats, 1)
    return _rows(connection, checked(connection, result))


def checked(
    connection: psycopg.Connection[Any], result: PGresult, expected: ExecStatus = ExecStatus.TUPLES_OK
) -> PGresult:
    """An answer as it was hoped for; any other is raised as the driver would."""
    if result.status == expected:
        return result
    if connection.pgconn.status == ConnStatus.BAD:
        raise psycopg.OperationalError(connection.pgconn.get_error_message())
    raise psycopg.errors.error_from_result(result, encoding=connection.info.encoding)


def _rows(connection: psycopg.Connection[Any], result: PGresult) -> list[Row]:
    loader = Transformer(connection)
    loader.set_pgresult(result)
    return loader.load_rows(0, result.ntuples, tuple)


def _sent(value: Any, encoding: str) -> bytes | None:
    if value is None or type(value) is bytes:
        return value
    if type(value) is list:
        return literal(value).encode(encoding)
    return str(value).encode(encoding)  # a truth is read as such
