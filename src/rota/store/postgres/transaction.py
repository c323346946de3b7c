"""Runs statements on one connection, in the namespace's schema; writes counters and notifications before a commit."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import tuple_row

from rota.store.postgres.codec import array_literal
from rota.store.shared.changing import TOTAL, Counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rota.store.contract import Channel
    from rota.store.postgres.codec import Row
    from rota.store.postgres.fast.calls import PreparedCalls

COUNTERS = (
    *("queued", "scheduled", "held", "running", "succeeded", "failed", "cancelled"),
    *("total_succeeded", "total_failed", "total_cancelled"),
)
_texts: dict[tuple[str, str], str] = {}


def function_call(name: str, number: int) -> str:
    """A statement that calls one of the schema's functions with so many values; the function says of which types."""
    return f"SELECT * FROM {{ns}}.{name}({', '.join(['%s'] * number)})"


def insert_statement(table: str, types: Mapping[str, str], tail: str = "") -> str:
    """A statement that inserts rows, given by columns."""
    arrays = ", ".join(f"%s::{kind}[]" for kind in types.values())
    return f"INSERT INTO {{ns}}.{table} ({', '.join(types)}) SELECT * FROM unnest({arrays}) {tail}"


def columns_of(rows: Iterable[Row]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


class Transaction:
    """A connection in use. `{ns}` in a statement stands for the schema, `%s` or `?` for a value."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        namespace: str,
        *,
        counter_slot: int | None = None,
        calls: PreparedCalls | None = None,
        cursor: Any = None,  # of an async connection; None: one of this connection
    ) -> None:
        self.connection = connection
        self.namespace = namespace
        self.counts = Counts()
        self.counter_slot = counter_slot  # None: a new row, for which nobody else waits
        self._calls = calls  # for a call that is a transaction by itself
        self._channels: set[Channel] = set()
        if cursor is not None:
            self._cursor = cursor

    @cached_property
    def _cursor(self) -> psycopg.Cursor[Row]:
        """Made when it is first needed: a prepared call, such as that of an enqueue, needs none."""
        return psycopg.Cursor(self.connection, row_factory=tuple_row)

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; returns how many rows it affected."""
        self._cursor.execute(self._text(statement), _encoded(values), prepare=False)
        return self._cursor.rowcount

    def rows(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Row]:
        self._cursor.execute(self._text(statement), _encoded(values), prepare=False, binary=True)
        return self._cursor.fetchall()

    def row(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        return next(iter(self.rows(statement, values)), None)

    def call(self, statement: str, values: Sequence[Any]) -> list[Row]:
        """Call one of the schema's functions."""
        if self._calls is not None:
            return self._calls.call(self.connection, self._text(statement), values)
        return self.rows(statement, values)

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        """Run a statement for each row, without waiting for each result; returns how many rows they affected."""
        if len(rows) <= 1:
            return sum(self.run(statement, row) for row in rows)
        self._cursor.executemany(self._text(statement), rows)
        return self._cursor.rowcount

    def insert(self, table: str, types: Mapping[str, str], rows: Iterable[Row], tail: str = "") -> int:
        """Insert rows, whose columns have these types, by one statement; returns how many were inserted."""
        columns = columns_of(rows)
        return self.run(insert_statement(table, types, tail), columns) if columns else 0

    def notify(self, channel: Channel) -> None:
        """Wake listeners once, when the transaction commits."""
        self._channels.add(channel)

    def finish(self) -> None:
        """Write the counters last and in one order, so that others wait for them no longer than a commit takes."""
        for channel in sorted(self._channels):
            self.run("SELECT {ns}.notify_listeners(%s)", (channel,))
        rows = _counter_rows(self.counts)
        if rows:
            slot = self.counter_slot
            if slot is None:
                ((slot,),) = self.rows("SELECT nextval('{ns}.counter_slot')")
            for queue, numbers in rows:
                self.rows("SELECT {ns}.count(%s, %s, VARIADIC %s::bigint[])::text", (slot, queue, numbers))
            if self.counts.runs:
                values = (slot, self.counts.minute, self.counts.runs)
                self.rows("SELECT {ns}.add_runs(%s, %s, %s::bigint[])", values)

    def _text(self, statement: str) -> str:
        key = (self.namespace, statement)
        text = _texts.get(key)
        if text is None:
            text = _texts[key] = statement.replace("{ns}", f'"{self.namespace}"').replace("?", "%s")
        return text


def _encoded(values: Sequence[Any] | Mapping[str, Any]) -> list[Any] | Mapping[str, Any] | None:
    """Values as they are sent; None if there are none, so that a statement may contain a percent sign."""
    if isinstance(values, dict):
        return values
    return [array_literal(value) if type(value) is list else value for value in values] or None


def _counter_rows(counts: Counts) -> list[tuple[str, list[int]]]:
    """The differences in the order of COUNTERS, by queue."""
    by_queue: dict[str, dict[str, int]] = {}
    for queue, name, number in counts.rows():
        by_queue.setdefault(queue, {})[name.replace(TOTAL, "total_")] = number
    return [(queue, [by_queue[queue].get(name, 0) for name in COUNTERS]) for queue in sorted(by_queue)]
