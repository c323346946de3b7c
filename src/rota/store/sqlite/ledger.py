"""The occurrence ledger: ranges of occurrences whose jobs were deleted or never existed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.schedules.occurrence import Occurrence, of_job
from rota.store.shared.ledger import fold_all
from rota.store.shared.paging import occurrence_page
from rota.store.sqlite.codec import JOB_COLUMNS, OCCURRENCE_COLUMNS, jobs_of, occurrence_of, row_of_occurrence

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from rota.store.contract import LedgerSpan, Page, Retention
    from rota.store.sqlite.transaction import Transactions


class Ledger:
    """One namespace's occurrences."""

    def __init__(self, namespace: str, transactions: Transactions) -> None:
        self._transactions = transactions
        self._name = f"{namespace}_occurrence"
        self._jobs = f"{namespace}_job"
        self._schedules = f"{namespace}_schedule"
        self._pruned_through = ""  # the schedule whose entries were pruned last

    def record(self, connection: sqlite3.Connection, entries: Sequence[Occurrence]) -> None:
        """Write entries, each joined to the ranges that it touches."""
        near = [other for entry in entries for other in self._neighbours(connection, entry)]
        gone, written = fold_all(entries, near)
        connection.executemany(f"DELETE FROM {self._name} WHERE schedule_id = ? AND through_at = ?", sorted(gone))
        connection.executemany(
            f"INSERT OR REPLACE INTO {self._name} ({OCCURRENCE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
            map(row_of_occurrence, written.values()),
        )

    def erase(self, connection: sqlite3.Connection, schedule_id: str, ends: Sequence[int]) -> None:
        """Delete the entries that end at these times."""
        connection.executemany(
            f"DELETE FROM {self._name} WHERE schedule_id = ? AND through_at = ?", [(schedule_id, end) for end in ends]
        )

    def forget(self, connection: sqlite3.Connection, schedule_id: str) -> None:
        connection.execute(f"DELETE FROM {self._name} WHERE schedule_id = ?", (schedule_id,))

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
        return occurrence_page([*map(occurrence_of, ranges), *map(of_job, jobs_of(kept))], limit)

    def _since(self, connection: sqlite3.Connection, schedule_id: str) -> int:
        """When the schedule was created: jobs of an earlier namesake are none of its records."""
        query = f"SELECT created_at FROM {self._schedules} WHERE id = ?"
        row = connection.execute(query, (schedule_id,)).fetchone()
        return row[0] if row else 0

    def prune(self, connection: sqlite3.Connection, retention: Retention, now: int, limit: int) -> int:
        """Delete what is too old, and what is too much per schedule; a bounded number of schedules per call."""
        old = connection.execute(
            f"DELETE FROM {self._name} WHERE (schedule_id, through_at) IN "
            f"(SELECT schedule_id, through_at FROM {self._name} WHERE through_at <= ? ORDER BY through_at LIMIT ?)",
            (now - retention.occurrences_for, limit),
        ).rowcount
        return old + sum(
            self._thin(connection, name, retention.most_occurrences) for name in self._next(connection, limit)
        )

    def _next(self, connection: sqlite3.Connection, limit: int) -> list[str]:
        """The next schedules: upkeep visits all of them, some in each call."""
        rows = connection.execute(
            f"SELECT DISTINCT schedule_id FROM {self._name} WHERE schedule_id > ? ORDER BY schedule_id LIMIT ?",
            (self._pruned_through, limit),
        ).fetchall()
        self._pruned_through = rows[-1][0] if len(rows) == limit else ""
        return [name for (name,) in rows]

    def _thin(self, connection: sqlite3.Connection, schedule_id: str, most: int) -> int:
        cut = connection.execute(
            f"SELECT through_at FROM {self._name} WHERE schedule_id = ? ORDER BY through_at DESC LIMIT 1 OFFSET ?",
            (schedule_id, most),
        ).fetchone()
        if cut is None:
            return 0
        return connection.execute(
            f"DELETE FROM {self._name} WHERE schedule_id = ? AND through_at <= ?", (schedule_id, cut[0])
        ).rowcount

    def _neighbours(self, connection: sqlite3.Connection, entry: Occurrence) -> list[Occurrence]:
        """The range that ends where this entry begins, and the first that ends after it."""
        rows = connection.execute(
            f"SELECT {OCCURRENCE_COLUMNS} FROM {self._name} WHERE schedule_id = :id AND through_at = :before UNION ALL "
            f"SELECT * FROM (SELECT {OCCURRENCE_COLUMNS} FROM {self._name} "
            "WHERE schedule_id = :id AND through_at > :through ORDER BY through_at LIMIT 1)",
            {"id": entry.schedule_id, "before": entry.after_at, "through": entry.through_at},
        )
        return [occurrence_of(row) for row in rows]
