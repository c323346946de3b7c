"""Entries (tenants, tokens) under their version, and audit records, in the stores that keep tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from rota.store.shared.matching import audit_cursor
from rota.store.shared.paging import page_of
from rota.store.shared.sql import audit_conditions
from rota.store.shared.sql_codec import (
    AUDIT_COLUMNS,
    AUDIT_TYPES,
    ENTRY_COLUMNS,
    ENTRY_TYPES,
    audit_record,
    entry_from,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.entry import Entry, EntryEdit
    from rota.store.contract import AuditFilter, Page
    from rota.store.shared.sql import Select, Tables
    from rota.store.shared.sql_codec import SqlCodec


class SqlRecords(ABC):
    """One namespace's entries and audit records."""

    def __init__(self, select: Select, codec: SqlCodec) -> None:
        self._select = select
        self._codec = codec

    def get_entries(self, kind: str, names: Sequence[str]) -> list[Entry]:
        if not names:
            return []
        query = f"SELECT {ENTRY_COLUMNS} FROM {{ns}}.entry WHERE kind = ? AND name = ANY(?)"
        rows = self._select(query, (self._codec.text(kind), list(map(self._codec.text, names))))
        found = {entry.name: entry for entry in map(entry_from, rows)}
        return [found[name] for name in names if name in found]

    def list_entries(self, kind: str, cursor: str | None, limit: int) -> Page[Entry]:
        query = f"SELECT {ENTRY_COLUMNS} FROM {{ns}}.entry WHERE kind = ? AND name > ? ORDER BY name LIMIT ?"
        rows = self._select(query, (self._codec.text(kind), self._codec.text(cursor or ""), limit + 1))
        return page_of(list(map(entry_from, rows)), limit, lambda entry: entry.name)

    def list_audit_records(self, where: AuditFilter, cursor: str | None, limit: int) -> Page[AuditRecord]:
        found = list(map(audit_record, self._select(*self.found_by(where, cursor, limit + 1))))
        return page_of(found, limit, audit_cursor)

    def found_by(self, where: AuditFilter, cursor: str | None, limit: int) -> tuple[str, list[Any]]:
        """The query for the audit records that a filter shows, the newest first."""
        clause, values = audit_conditions(where, cursor)
        query = f"SELECT {AUDIT_COLUMNS} FROM {{ns}}.audit WHERE {clause} ORDER BY at DESC, id DESC LIMIT ?"
        return query, [*(self._codec.text(one) if isinstance(one, str) else one for one in values), limit]

    # In a transaction.

    def apply(self, tx: Tables, edits: Sequence[EntryEdit]) -> list[str]:
        """Apply edits in their order; returns the names of those whose version had moved on."""
        accepted = [self._apply(tx, edit) for edit in edits]
        self.write(tx, [edit.audit for edit, is_in in zip(edits, accepted, strict=True) if is_in and edit.audit])
        return [edit.name for edit, is_in in zip(edits, accepted, strict=True) if not is_in]

    def _apply(self, tx: Tables, edit: EntryEdit) -> bool:
        """Compare and set by one statement. A second writer waits there for the first, and then is refused."""
        key = (self._codec.text(edit.kind), self._codec.text(edit.name), edit.expect_version)
        if edit.after is None and edit.expect_version == 0:
            return not tx.rows("SELECT 1 FROM {ns}.entry WHERE kind = ? AND name = ?", key[:2])
        if edit.after is None:
            return bool(tx.run("DELETE FROM {ns}.entry WHERE kind = ? AND name = ? AND version = ?", key))
        row = self._codec.entry_row(edit.after)
        if edit.expect_version == 0:
            return bool(tx.insert("entry", ENTRY_TYPES, [row], "ON CONFLICT DO NOTHING"))
        changed = "UPDATE {ns}.entry SET version = ?, data = ? WHERE kind = ? AND name = ? AND version = ?"
        return bool(tx.run(changed, (*row[2:], *key)))

    def write(self, tx: Tables, records: Iterable[AuditRecord]) -> None:
        """Add audit records in one order, so that no two transactions block each other."""
        first: dict[str, AuditRecord] = {}
        for record in records:
            first.setdefault(record.id, record)
        rows = sorted(map(self._codec.audit_row, first.values()))
        tx.insert("audit", AUDIT_TYPES, rows, "ON CONFLICT DO NOTHING")

    @abstractmethod
    def prune(self, tx: Tables, until: int, limit: int) -> int:
        """Delete the oldest audit records until then, as the store locks them; returns how many."""
