"""One transaction: statements in the namespace's schema, and what is counted and told when it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import tuple_row

from rota.store.postgres.arrays import literal
from rota.store.postgres.calls import call
from rota.store.postgres.marked import Marked
from rota.store.shared.counting import TOTAL, Counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.store.contract import Channel
    from rota.store.postgres.calls import Function, Prepared

Row = tuple[Any, ...]
TALLIES = (
    *("scheduled", "queued", "held", "running", "succeeded", "failed", "cancelled"),
    *("total_succeeded", "total_failed", "total_cancelled"),
)
_KEEP = (
    f"INSERT INTO {{ns}}.tally AS t (queue, slot, {', '.join(TALLIES)}) "
    f"VALUES (%s, %s, {', '.join(['%s'] * len(TALLIES))}) ON CONFLICT (queue, slot) DO UPDATE SET "
    + ", ".join(f"{name} = t.{name} + excluded.{name}" for name in TALLIES)
)

_texts: dict[tuple[str, str], str] = {}


class Transaction:
    """A connection in use. `{ns}` in a statement stands for the schema."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        namespace: str,
        slot: int | None = None,
        prepared: Prepared | None = None,
        marked: Marked | None = None,
    ) -> None:
        self.connection = connection
        self.counts = Counts()
        self.slot = slot  # where to count; None: a row of its own, which nobody else waits for
        self.marked = marked or Marked()  # for a call that is committed when it answers
        self._namespace = namespace
        self._prepared = prepared  # where this is one call, and no more of a transaction
        self._own_cursor: psycopg.Cursor[Row] | None = None
        self._channels: set[Channel] = set()

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; how many rows it touched."""
        self._cursor.execute(self._text(statement), _sent(values), prepare=False)
        return self._cursor.rowcount

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        self._cursor.execute(self._text(statement), _sent(values), prepare=False, binary=True)
        return self._cursor.fetchall()

    def call(self, function: Function, values: Sequence[Any]) -> list[Row]:
        """Call one of the schema's functions."""
        return call(self.connection, self._namespace, function, values, self._prepared)

    def row(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        found = self.rows(statement, values)
        return found[0] if found else None

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each row, without waiting for each answer."""
        if len(rows) == 1:
            self.run(statement, rows[0])
        elif rows:
            self._cursor.executemany(self._text(statement), rows)

    def copy(self, table: str, columns: str, rows: Iterable[Row]) -> None:
        """Write many rows at once."""
        with self._cursor.copy(self._text(f"COPY {{ns}}.{table} ({columns}) FROM STDIN")) as copy:
            for row in rows:
                copy.write_row(row)

    def notify(self, channel: Channel) -> None:
        """Wake who waits, once, when the transaction commits."""
        self._channels.add(channel)

    def finish(self) -> None:
        """Write the counters, last and in one order, so that nobody waits for them longer than a commit."""
        for channel in sorted(self._channels):
            self.run("SELECT {ns}.notify_listeners(%s)", (channel,))
        rows = tally_rows(self.counts)
        if rows:
            slot = self.slot if self.slot is not None else self._slot_of_its_own()
            self.run_many(_KEEP, [(queue, slot, *numbers) for queue, numbers in rows])

    @property
    def _cursor(self) -> psycopg.Cursor[Row]:
        if self._own_cursor is None:
            self._own_cursor = psycopg.Cursor(self.connection, row_factory=tuple_row)
        return self._own_cursor

    def _slot_of_its_own(self) -> int:
        row = self.row("SELECT nextval('{ns}.tally_slot')")
        return int(row[0]) if row else 0

    def _text(self, statement: str) -> str:
        key = (self._namespace, statement)
        text = _texts.get(key)
        if text is None:
            text = _texts[key] = statement.replace("{ns}", f'"{self._namespace}"')
        return text


def _sent(values: Sequence[Any]) -> list[Any] | None:
    """Values as they are sent; None where there are none, so that a statement may contain a percent sign."""
    return [literal(value) if type(value) is list else value for value in values] or None


def tally_rows(counts: Counts) -> list[tuple[str, tuple[int, ...]]]:
    """The differences as rows of the tally table, by queue."""
    by_queue: dict[str, dict[str, int]] = {}
    for queue, name, number in counts.rows():
        by_queue.setdefault(queue, {})[name.replace(TOTAL, "total_")] = number
    return [(queue, tuple(by_queue[queue].get(name, 0) for name in TALLIES)) for queue in sorted(by_queue)]
