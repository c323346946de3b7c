"""Keeps entries (tenants, tokens) under their version, and audit records of who changed what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.shared.sql_records import SqlRecords
from rota.store.sqlite.codec import CODEC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.entry import EntryEdit
    from rota.store.shared.sql import Tables
    from rota.store.sqlite.transaction import Transactions


class Records(SqlRecords):
    """One namespace's entries and audit records."""

    def __init__(self, transactions: Transactions) -> None:
        super().__init__(transactions.select, CODEC)
        self._transactions = transactions

    def edit_entries(self, edits: Sequence[EntryEdit]) -> list[str]:
        with self._transactions.work("entries") as tx:
            return self.apply(tx, edits)

    def add_audit_records(self, records: Sequence[AuditRecord]) -> None:
        with self._transactions.write("audit") as tx:
            self.write(tx, records)

    def prune(self, tx: Tables, until: int, limit: int) -> int:
        """Delete the oldest audit records until then; how many."""
        query = "SELECT at, id FROM {ns}.audit WHERE at <= ? ORDER BY at, id LIMIT ?"
        return tx.run(f"DELETE FROM {{ns}}.audit WHERE (at, id) IN ({query})", (until, limit))
