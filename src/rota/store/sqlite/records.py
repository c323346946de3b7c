"""The tables of entries and audit records: what the system says of itself, and who changed what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.model.entry import Entry
from rota.store.shared.matching import audit_cursor, audit_position
from rota.store.shared.paging import page_of
from rota.store.shared.unpacking import audit_record_from

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.entry import EntryEdit
    from rota.store.contract import AuditFilter, Page

_encode = msgspec.json.encode


class AuditTable:
    """One namespace's audit records."""

    def __init__(self, namespace: str) -> None:
        self._name = f"{namespace}_audit"
        self._insert = f"INSERT OR IGNORE INTO {self._name} VALUES (?, ?, ?, ?)"

    def add(self, connection: sqlite3.Connection, audit_records: Sequence[AuditRecord]) -> int:
        """Keep audit records; how many were new."""
        if not audit_records:
            return 0
        return connection.executemany(self._insert, [row_of_audit(audit) for audit in audit_records]).rowcount

    def page(
        self, connection: sqlite3.Connection, where: AuditFilter, cursor: str | None, limit: int
    ) -> Page[AuditRecord]:
        conditions, values = _conditions(where)
        if cursor is not None:
            conditions.append("(at, id) < (?, ?)")
            values += audit_position(cursor)
        clause = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        query = f"SELECT at, id, subject, record FROM {self._name} {clause} ORDER BY at DESC, id DESC LIMIT ?"
        found = [audit_record_of(row) for row in connection.execute(query, (*values, limit + 1))]
        return page_of(found, limit, audit_cursor)

    def prune(self, connection: sqlite3.Connection, until: int, limit: int) -> int:
        return connection.execute(
            f"DELETE FROM {self._name} WHERE (at, id) IN "
            f"(SELECT at, id FROM {self._name} WHERE at <= ? ORDER BY at LIMIT ?)",
            (until, limit),
        ).rowcount


class EntryTable:
    """One namespace's entries."""

    def __init__(self, namespace: str, audit_records: AuditTable) -> None:
        self._name = f"{namespace}_entry"
        self._audit = audit_records

    def edit(self, connection: sqlite3.Connection, edit: EntryEdit) -> bool:
        """Apply an edit whole, or not at all where the version has moved on."""
        key = (edit.kind, edit.name)
        row = connection.execute(f"SELECT version FROM {self._name} WHERE kind = ? AND name = ?", key).fetchone()
        if (row[0] if row else 0) != edit.expect_version:
            return False
        connection.execute(f"DELETE FROM {self._name} WHERE kind = ? AND name = ?", key)
        if edit.after is not None:
            connection.execute(f"INSERT INTO {self._name} VALUES (?, ?, ?, ?)", row_of_entry(edit.after))
        self._audit.add(connection, [edit.audit] if edit.audit else [])
        return True

    def get(self, connection: sqlite3.Connection, kind: str, names: Sequence[str]) -> list[Entry]:
        query = f"SELECT kind, name, version, data FROM {self._name} WHERE kind = ? AND name = ?"
        rows = (connection.execute(query, (kind, name)).fetchone() for name in names)
        return [entry_of(row) for row in rows if row is not None]

    def page(self, connection: sqlite3.Connection, kind: str, cursor: str | None, limit: int) -> Page[Entry]:
        query = f"SELECT kind, name, version, data FROM {self._name} WHERE kind = ? AND name > ? ORDER BY name LIMIT ?"
        found = [entry_of(row) for row in connection.execute(query, (kind, cursor or "", limit + 1))]
        return page_of(found, limit, lambda entry: entry.name)


def row_of_audit(audit: AuditRecord) -> tuple[Any, ...]:
    return audit.at, audit.id, audit.subject, _encode(audit).decode()


def audit_record_of(row: tuple[Any, ...]) -> AuditRecord:
    return audit_record_from(row[3], at=row[0], record_id=row[1], subject=row[2])


def row_of_entry(entry: Entry) -> tuple[Any, ...]:
    return entry.kind, entry.name, entry.version, entry.data


def entry_of(row: tuple[Any, ...]) -> Entry:
    return Entry(kind=row[0], name=row[1], version=row[2], data=row[3])


def _conditions(where: AuditFilter) -> tuple[list[str], list[Any]]:
    wanted = (("subject = ?", where.subject), ("at >= ?", where.since), ("at < ?", where.until))
    chosen = [(condition, value) for condition, value in wanted if value is not None]
    return [condition for condition, _ in chosen], [value for _, value in chosen]
