"""Keeps entries (tenants, tokens) and audit records as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.postgres.codec import CODEC
from rota.store.shared.sql_records import SqlRecords

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.entry import EntryEdit
    from rota.store.postgres.connection import Database
    from rota.store.shared.sql import Tables


class Records(SqlRecords):
    """One namespace's entries and audit records."""

    def __init__(self, database: Database) -> None:
        super().__init__(database.select, CODEC)
        self._database = database

    def edit_entries(self, edits: Sequence[EntryEdit]) -> list[str]:
        return self._database.write("entries", lambda tx, _: self.apply(tx, edits), None)

    def add_audit_records(self, records: Iterable[AuditRecord]) -> None:
        self._database.call(lambda tx: self.write(tx, records))

    def prune(self, tx: Tables, until: int, limit: int) -> int:
        return tx.run(
            "DELETE FROM {ns}.audit WHERE id = ANY(ARRAY(SELECT id FROM {ns}.audit WHERE at <= %s "
            "ORDER BY at, id LIMIT %s FOR UPDATE SKIP LOCKED))",
            (until, limit),
        )
