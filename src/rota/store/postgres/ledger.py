"""Keeps the occurrence ledger: ranges of occurrences whose jobs were deleted or never existed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.schedules.occurrence import of_job
from rota.store.postgres import job_rows
from rota.store.postgres.codec import CODEC
from rota.store.postgres.transaction import columns_of
from rota.store.shared.batching import grouped
from rota.store.shared.paging import occurrence_page
from rota.store.shared.sql_codec import OCCURRENCE_COLUMNS, occurrence_from
from rota.store.shared.sql_ledger import SqlLedger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.schedules.occurrence import Occurrence
    from rota.store.contract import LedgerSpan, Page
    from rota.store.postgres.connection import Database
    from rota.store.postgres.transaction import Transaction
    from rota.store.shared.sql import Tables

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


class Ledger(SqlLedger):
    """One namespace's occurrences. A transaction that writes here has locked the schedules first."""

    def __init__(self, database: Database) -> None:
        super().__init__(CODEC)
        self._database = database

    def list_many_occurrences(self, spans: Sequence[LedgerSpan], limit: int) -> list[Page[Occurrence]]:
        return self._database.read(lambda tx: _pages(tx, spans, limit))

    def neighbours(self, tx: Tables, entries: Sequence[Occurrence]) -> list[Occurrence]:
        """All by one query."""
        wanted = columns_of((entry.schedule_id, entry.after_at, entry.through_at) for entry in entries)
        return list(map(occurrence_from, tx.rows(_NEIGHBOURS, wanted)))


def _pages(tx: Transaction, spans: Sequence[LedgerSpan], limit: int) -> list[Page[Occurrence]]:
    """Ranges and kept jobs together, oldest first, by three queries for all."""
    asked = (*columns_of(spans), limit + 1)
    seqs = [seq for (seq,) in tx.rows(_KEPT_OF_MANY, asked)]
    entries = [*map(occurrence_from, tx.rows(_RANGES_OF_MANY, asked)), *map(of_job, job_rows.at(tx, seqs))]
    found = grouped(entries, lambda entry: entry.schedule_id)
    return [occurrence_page(found.get(span.schedule_id, ()), limit) for span in spans]
