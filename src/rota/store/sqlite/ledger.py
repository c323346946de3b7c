"""Keeps the occurrence ledger: ranges of occurrences whose jobs were deleted or never existed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.schedules.occurrence import of_job
from rota.store.shared.paging import occurrence_page
from rota.store.shared.sql_codec import OCCURRENCE_COLUMNS, occurrence_from
from rota.store.shared.sql_ledger import SqlLedger
from rota.store.sqlite.codec import CODEC, JOB_COLUMNS, jobs_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from rota.model.schedules.occurrence import Occurrence
    from rota.store.contract import LedgerSpan, Page
    from rota.store.shared.sql import Tables
    from rota.store.sqlite.transaction import Transactions


_NEIGHBOURS = (
    f"SELECT {OCCURRENCE_COLUMNS} FROM {{ns}}.occurrence WHERE schedule_id = ? AND through_at = ? UNION ALL "
    f"SELECT * FROM (SELECT {OCCURRENCE_COLUMNS} FROM {{ns}}.occurrence "
    "WHERE schedule_id = ? AND through_at > ? ORDER BY through_at LIMIT 1)"
)


class Ledger(SqlLedger):
    """One namespace's occurrences."""

    def __init__(self, namespace: str, transactions: Transactions) -> None:
        super().__init__(CODEC)
        self._transactions = transactions
        self._name = f"{namespace}_occurrence"
        self._jobs = f"{namespace}_job"
        self._schedules = f"{namespace}_schedule"

    def list_many_occurrences(self, spans: Sequence[LedgerSpan], limit: int) -> list[Page[Occurrence]]:
        with self._transactions.read() as connection:
            return [self._page(connection, span, limit) for span in spans]

    def _page(self, connection: sqlite3.Connection, span: LedgerSpan, limit: int) -> Page[Occurrence]:
        """Ranges and kept jobs together, oldest first."""
        ranges = connection.execute(
            f"SELECT {OCCURRENCE_COLUMNS} FROM {self._name} "
            "WHERE schedule_id = ? AND through_at >= ? AND iif(count = 1, through_at, after_at + 1) < ? "
            "ORDER BY through_at LIMIT ?",
            (*span, limit + 1),
        ).fetchall()
        kept = connection.execute(
            f"SELECT {JOB_COLUMNS} FROM {self._jobs} "
            "WHERE schedule_id = ? AND fire_at >= ? AND fire_at < ? AND created_at >= ? ORDER BY fire_at LIMIT ?",
            (*span, self._since(connection, span.schedule_id), limit + 1),
        ).fetchall()
        return occurrence_page([*map(occurrence_from, ranges), *map(of_job, jobs_of(kept))], limit)

    def _since(self, connection: sqlite3.Connection, schedule_id: str) -> int:
        """When the schedule was created: jobs of an earlier namesake are none of its records."""
        query = f"SELECT created_at FROM {self._schedules} WHERE id = ?"
        row = connection.execute(query, (schedule_id,)).fetchone()
        return row[0] if row else 0

    def neighbours(self, tx: Tables, entries: Sequence[Occurrence]) -> Iterator[Occurrence]:
        """One look for each entry: a file is near."""
        for entry in entries:
            values = (entry.schedule_id, entry.after_at, entry.schedule_id, entry.through_at)
            yield from map(occurrence_from, tx.rows(_NEIGHBOURS, values))
