"""The occurrence ledger: ranges of occurrences whose jobs were deleted or never existed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.schedules.occurrence import Occurrence, of_job
from rota.store.postgres import job_rows
from rota.store.postgres.codec import (
    OCCURRENCE_COLUMNS,
    OCCURRENCE_TYPES,
    occurrence_from,
    occurrence_row,
)
from rota.store.shared.ledger import fold_all
from rota.store.shared.paging import occurrence_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.contract import LedgerSpan, Page, Retention
    from rota.store.postgres.connection import Database
    from rota.store.postgres.transaction import Transaction

_REPLACE = (
    "ON CONFLICT (schedule_id, through_at) DO UPDATE SET after_at = excluded.after_at, count = excluded.count, "
    "outcome = excluded.outcome, reason = excluded.reason"
)
_NEIGHBOURS = (
    "SELECT n.* FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) AS w (id, after_at, through_at) "
    "CROSS JOIN LATERAL ("
    f"SELECT {OCCURRENCE_COLUMNS} FROM {{ns}}.occurrence o WHERE o.schedule_id = w.id AND o.through_at = w.after_at "
    f"UNION ALL (SELECT {OCCURRENCE_COLUMNS} FROM {{ns}}.occurrence o "
    "WHERE o.schedule_id = w.id AND o.through_at > w.through_at ORDER BY o.through_at LIMIT 1)) n"
)

_OF_MANY = "unnest(%s::text[], %s::bigint[], %s::bigint[]) AS w (id, start_at, end_at)"
_RANGES_OF_MANY = (
    f"SELECT n.* FROM {_OF_MANY} CROSS JOIN LATERAL (SELECT {OCCURRENCE_COLUMNS} FROM {{ns}}.occurrence o "
    "WHERE o.schedule_id = w.id AND o.through_at >= w.start_at "
    "AND CASE WHEN o.count = 1 THEN o.through_at ELSE o.after_at + 1 END < w.end_at "
    "ORDER BY o.through_at LIMIT %s) n"
)
_KEPT_OF_MANY = (
    f"SELECT n.seq FROM {_OF_MANY} CROSS JOIN LATERAL (SELECT j.seq FROM {{ns}}.job j "
    "WHERE j.schedule_id = w.id AND j.fire_at >= w.start_at AND j.fire_at < w.end_at "
    "AND j.created_at >= coalesce((SELECT s.created_at FROM {ns}.schedule s WHERE s.id = w.id), 0) "
    "ORDER BY j.fire_at LIMIT %s) n"
)


class Ledger:
    """One namespace's occurrences. A transaction that writes here has locked the schedules first."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._checked = ""  # the schedule that upkeep has checked last

    def list_many_occurrences(self, spans: Sequence[LedgerSpan], limit: int) -> list[Page[Occurrence]]:
        return self._database.read(lambda tx: _pages(tx, spans, limit))

    def record(self, tx: Transaction, entries: Sequence[Occurrence]) -> None:
        """Write entries, each joined to the ranges that it touches: one query and one write for all."""
        if not entries:
            return
        gone, written = fold_all(entries, _neighbours(tx, entries))
        tx.run_many("DELETE FROM {ns}.occurrence WHERE schedule_id = %s AND through_at = %s", sorted(gone))
        tx.insert("occurrence", OCCURRENCE_TYPES, map(occurrence_row, written.values()), _REPLACE)

    def erase(self, tx: Transaction, schedule_id: str, ends: Sequence[int]) -> None:
        """Delete the entries that end at these times."""
        if ends:
            tx.run(
                "DELETE FROM {ns}.occurrence WHERE schedule_id = %s AND through_at = ANY(%s)", (schedule_id, list(ends))
            )

    def forget(self, tx: Transaction, schedule_id: str) -> None:
        tx.run("DELETE FROM {ns}.occurrence WHERE schedule_id = %s", (schedule_id,))

    def prune(self, tx: Transaction, retention: Retention, now: int, limit: int) -> int:
        """Delete what is too old, and what is too much per schedule, of a bounded number of schedules at a time."""
        old = tx.run(
            "DELETE FROM {ns}.occurrence WHERE (schedule_id, through_at) IN "
            "(SELECT schedule_id, through_at FROM {ns}.occurrence WHERE through_at <= %s LIMIT %s)",
            (now - retention.occurrences_for, limit),
        )
        rows = tx.rows(
            "SELECT DISTINCT schedule_id FROM {ns}.occurrence WHERE schedule_id > %s ORDER BY schedule_id LIMIT %s",
            (self._checked, limit),
        )
        self._checked = rows[-1][0] if len(rows) == limit else ""  # the next call goes on, or starts again
        surplus = tx.run(
            "DELETE FROM {ns}.occurrence o USING (SELECT w.id, (SELECT c.through_at FROM {ns}.occurrence c "
            "WHERE c.schedule_id = w.id ORDER BY c.through_at DESC LIMIT 1 OFFSET %s) AS cut "
            "FROM unnest(%s::text[]) AS w (id)) x WHERE o.schedule_id = x.id AND o.through_at <= x.cut",
            (retention.most_occurrences, [name for (name,) in rows]),
        )
        return old + surplus


def _pages(tx: Transaction, spans: Sequence[LedgerSpan], limit: int) -> list[Page[Occurrence]]:
    """Ranges and kept jobs together, oldest first, by three queries for all."""
    names, starts, ends = zip(*spans, strict=True)
    asked = (list(names), list(starts), list(ends), limit + 1)
    seqs = [seq for (seq,) in tx.rows(_KEPT_OF_MANY, asked)]
    entries = [*map(occurrence_from, tx.rows(_RANGES_OF_MANY, asked)), *map(of_job, job_rows.at(tx, seqs))]
    found: dict[str, list[Occurrence]] = {name: [] for name in names}
    for entry in entries:
        found[entry.schedule_id].append(entry)
    return [occurrence_page(found[name], limit) for name in names]


def _neighbours(tx: Transaction, entries: Sequence[Occurrence]) -> list[Occurrence]:
    """Of each entry, the range that ends where it begins, and the first that ends after it."""
    names, starts = [entry.schedule_id for entry in entries], [entry.after_at for entry in entries]
    rows = tx.rows(_NEIGHBOURS, (names, starts, [entry.through_at for entry in entries]))
    return [occurrence_from(row) for row in rows]
