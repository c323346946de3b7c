"""Entries (tenants, tokens) under their version, and audit records of who changed what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.shared.matching import audit_cursor
from rota.store.shared.paging import page_of
from rota.store.shared.sql import audit_conditions
from rota.store.sqlite.codec import audit_record_of, entry_of, row_of_audit_record, row_of_entry

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.entry import Entry, EntryEdit
    from rota.store.contract import AuditFilter, Page
    from rota.store.sqlite.transaction import Transaction, Transactions


class Records:
    """One namespace's entries and audit records."""

    def __init__(self, namespace: str, transactions: Transactions) -> None:
        self._transactions = transactions
        self._entries = f"{namespace}_entry"
        self._audit = f"{namespace}_audit"

    # Entries.

    def edit_entries(self, edits: Sequence[EntryEdit]) -> list[str]:
        with self._transactions.work("entries") as tx:
            return [edit.name for edit in edits if not self._edit(tx, edit)]

    def _edit(self, tx: Transaction, edit: EntryEdit) -> bool:
        """Apply an edit whole, or not at all if the version has moved on."""
        key = (edit.kind, edit.name)
        query = f"SELECT version FROM {self._entries} WHERE kind = ? AND name = ?"
        row = tx.connection.execute(query, key).fetchone()
        if (row[0] if row else 0) != edit.expect_version:
            return False
        tx.connection.execute(f"DELETE FROM {self._entries} WHERE kind = ? AND name = ?", key)
        if edit.after is not None:
            tx.connection.execute(f"INSERT INTO {self._entries} VALUES (?, ?, ?, ?)", row_of_entry(edit.after))
        self.add(tx.connection, [edit.audit] if edit.audit else [])
        return True

    def get_entries(self, kind: str, names: Sequence[str]) -> list[Entry]:
        query = f"SELECT kind, name, version, data FROM {self._entries} WHERE kind = ? AND name = ?"
        with self._transactions.read() as connection:
            rows = [connection.execute(query, (kind, name)).fetchone() for name in names]
        return [entry_of(row) for row in rows if row is not None]

    def list_entries(self, kind: str, cursor: str | None, limit: int) -> Page[Entry]:
        query = (
            f"SELECT kind, name, version, data FROM {self._entries} WHERE kind = ? AND name > ? ORDER BY name LIMIT ?"
        )
        with self._transactions.read() as connection:
            found = [entry_of(row) for row in connection.execute(query, (kind, cursor or "", limit + 1))]
        return page_of(found, limit, lambda entry: entry.name)

    # Audit records.

    def add_audit_records(self, records: Sequence[AuditRecord]) -> None:
        with self._transactions.write("audit") as tx:
            self.add(tx.connection, records)

    def add(self, connection: sqlite3.Connection, records: Sequence[AuditRecord]) -> None:
        if records:
            insert = f"INSERT OR IGNORE INTO {self._audit} VALUES (?, ?, ?, ?)"
            connection.executemany(insert, [row_of_audit_record(record) for record in records])

    def list_audit_records(self, where: AuditFilter, cursor: str | None, limit: int) -> Page[AuditRecord]:
        clause, values = audit_conditions(where, cursor)
        query = f"SELECT at, id, subject, record FROM {self._audit} WHERE {clause} ORDER BY at DESC, id DESC LIMIT ?"
        with self._transactions.read() as connection:
            found = [audit_record_of(row) for row in connection.execute(query, (*values, limit + 1))]
        return page_of(found, limit, audit_cursor)

    def prune(self, connection: sqlite3.Connection, until: int, limit: int) -> int:
        """Delete the oldest audit records until then; how many."""
        return connection.execute(
            f"DELETE FROM {self._audit} WHERE (at, id) IN "
            f"(SELECT at, id FROM {self._audit} WHERE at <= ? ORDER BY at, id LIMIT ?)",
            (until, limit),
        ).rowcount
