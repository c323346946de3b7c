"""Entries (tenants, tokens) and audit records as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.model.entry import Entry
from rota.store.postgres.codec import conditions_of, text_of
from rota.store.shared.matching import audit_cursor
from rota.store.shared.paging import page_of
from rota.store.shared.sql import audit_conditions
from rota.store.shared.unpacking import audit_record_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.entry import EntryEdit
    from rota.store.contract import AuditFilter, Page
    from rota.store.postgres.codec import Row
    from rota.store.postgres.connection import Database
    from rota.store.postgres.transaction import Transaction

ENTRY_TYPES = {"kind": "text", "name": "text", "version": "bigint", "data": "text"}
AUDIT_TYPES = {"id": "text", "at": "bigint", "subject": "text", "record": "text"}
ENTRY_COLUMNS, AUDIT_COLUMNS = ", ".join(ENTRY_TYPES), ", ".join(AUDIT_TYPES)


class Records:
    """One namespace's entries and audit records."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def edit_entries(self, edits: Sequence[EntryEdit]) -> list[str]:
        """Apply edits in their order; returns the names of those whose version had moved on."""
        return self._database.write("", lambda tx, _: self._edit_entries(tx, edits), None)

    def get_entries(self, kind: str, names: Sequence[str]) -> list[Entry]:
        if not names:
            return []
        query = f"SELECT {ENTRY_COLUMNS} FROM {{ns}}.entry WHERE kind = %s AND name = ANY(%s)"
        values = (text_of(kind), [text_of(name) for name in names])
        found = {row[1]: entry_from(row) for row in self._database.call(lambda tx: tx.rows(query, values))}
        return [found[name] for name in names if name in found]

    def list_entries(self, kind: str, cursor: str | None, limit: int) -> Page[Entry]:
        query = f"SELECT {ENTRY_COLUMNS} FROM {{ns}}.entry WHERE kind = %s AND name > %s ORDER BY name LIMIT %s"
        values = (text_of(kind), text_of(cursor) or "", limit + 1)
        found = [entry_from(row) for row in self._database.call(lambda tx: tx.rows(query, values))]
        return page_of(found, limit, lambda entry: entry.name)

    def add_audit_records(self, records: Iterable[AuditRecord]) -> None:
        self._database.call(lambda tx: self.write(tx, records))

    def list_audit_records(self, where: AuditFilter, cursor: str | None, limit: int) -> Page[AuditRecord]:
        query, values = found_by(where, cursor, limit + 1)
        found = [audit_record(row) for row in self._database.call(lambda tx: tx.rows(query, values))]
        return page_of(found, limit, audit_cursor)

    def write(self, tx: Transaction, records: Iterable[AuditRecord]) -> None:
        """Add audit records by one statement, in one order, so that no two transactions block each other."""
        first: dict[str, AuditRecord] = {}
        for record in records:
            first.setdefault(record.id, record)
        tx.insert("audit", AUDIT_TYPES, sorted(map(audit_row, first.values())), "ON CONFLICT DO NOTHING")

    def prune(self, tx: Transaction, until: int, limit: int) -> int:
        return tx.run(
            "DELETE FROM {ns}.audit WHERE id = ANY(ARRAY(SELECT id FROM {ns}.audit WHERE at <= %s "
            "ORDER BY at, id LIMIT %s FOR UPDATE SKIP LOCKED))",
            (until, limit),
        )

    def _edit_entries(self, tx: Transaction, edits: Sequence[EntryEdit]) -> list[str]:
        accepted = [_apply(tx, edit) for edit in edits]
        self.write(tx, [edit.audit for edit, is_in in zip(edits, accepted, strict=True) if is_in and edit.audit])
        return [edit.name for edit, is_in in zip(edits, accepted, strict=True) if not is_in]


def _apply(tx: Transaction, edit: EntryEdit) -> bool:
    """Compare and set by one statement. A second writer waits there for the first, and then is refused."""
    key = (text_of(edit.kind), text_of(edit.name), edit.expect_version)
    if edit.after is None and edit.expect_version == 0:
        return tx.row("SELECT FROM {ns}.entry WHERE kind = %s AND name = %s", key[:2]) is None
    if edit.after is None:
        return bool(tx.run("DELETE FROM {ns}.entry WHERE kind = %s AND name = %s AND version = %s", key))
    if edit.expect_version == 0:
        return bool(tx.insert("entry", ENTRY_TYPES, [entry_row(edit.after)], "ON CONFLICT DO NOTHING"))
    changed = "UPDATE {ns}.entry SET version = %s, data = %s WHERE kind = %s AND name = %s AND version = %s"
    return bool(tx.run(changed, (*entry_row(edit.after)[2:], *key)))


def audit_row(record: AuditRecord) -> Row:
    return text_of(record.id), record.at, text_of(record.subject), msgspec.json.encode(record).decode()


def audit_record(row: Row) -> AuditRecord:
    return audit_record_from(row[3], record_id=row[0], at=row[1], subject=row[2])


def entry_row(entry: Entry) -> Row:
    return text_of(entry.kind), text_of(entry.name), entry.version, text_of(entry.data)


def entry_from(row: Row) -> Entry:
    return Entry(kind=row[0], name=row[1], version=row[2], data=row[3])


def found_by(where: AuditFilter, cursor: str | None, limit: int) -> tuple[str, list[Any]]:
    """The query for the newest audit records that a filter shows."""
    clause, values = conditions_of(audit_conditions(where, cursor))
    return f"SELECT {AUDIT_COLUMNS} FROM {{ns}}.audit WHERE {clause} ORDER BY at DESC, id DESC LIMIT %s", [
        *values,
        limit,
    ]
