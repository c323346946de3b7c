"""Keeps entries (tenants, tokens) under their version, and audit records of who changed what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.memory.connection import Database
from rota.store.shared.matching import audit_cursor, audit_matches, audit_position
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.entry import Entry, EntryEdit
    from rota.store.contract import AuditFilter, Page


class Records(Database):
    """Entries and audit records."""

    def edit_entries(self, edits: Sequence[EntryEdit], *, now: int | None = None) -> list[str]:
        del now
        with self._lock:
            self._check_open()
            return [edit.name for edit in edits if not self._edit_entry(edit)]

    def get_entries(self, kind: str, names: Sequence[str]) -> list[Entry]:
        with self._lock:
            return [self._entries[kind, name] for name in names if (kind, name) in self._entries]

    def list_entries(self, kind: str, *, cursor: str | None = None, limit: int = 50) -> Page[Entry]:
        with self._lock:
            mine = sorted(entry.name for entry in self._entries.values() if entry.kind == kind)
            rest = [self._entries[kind, name] for name in mine if cursor is None or name > cursor]
        return page_of(rest, limit, lambda entry: entry.name)

    def add_audit_records(self, records: Sequence[AuditRecord]) -> None:
        with self._lock:
            self._keep_audit(records)

    def list_audit_records(
        self, where: AuditFilter, *, cursor: str | None = None, limit: int = 50
    ) -> Page[AuditRecord]:
        before = audit_position(cursor) if cursor else None
        with self._lock:
            found = [audit for audit in self._audit.values() if audit_matches(audit, where)]
        found.sort(key=lambda audit: (audit.at, audit.id), reverse=True)
        rest = [audit for audit in found if before is None or (audit.at, audit.id) < before]
        return page_of(rest, limit, audit_cursor)

    def _edit_entry(self, edit: EntryEdit) -> bool:
        current = self._entries.get((edit.kind, edit.name))
        if (current.version if current else 0) != edit.expect_version:
            return False
        self._entries.pop((edit.kind, edit.name), None)
        if edit.after is not None:
            self._entries[edit.kind, edit.name] = edit.after
        self._keep_audit([edit.audit] if edit.audit else [])
        return True
