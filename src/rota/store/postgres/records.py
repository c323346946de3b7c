"""Entries and notes as rows: what the system says of itself, and who changed what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.model.entry import Entry
from rota.store.contract import AuditFilter, Page
from rota.store.postgres.codec import text_of
from rota.store.shared.matching import audit_cursor, audit_position
from rota.store.shared.unpacking import audit_record_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.entry import EntryEdit
    from rota.store.postgres.transaction import Row, Transaction

ENTRY_COLUMNS = "kind, name, version, data"
NOTE_COLUMNS = "id, at, subject, note"

_encode = msgspec.json.encode


class Notes:
    """One namespace's notes."""

    def add(self, tx: Transaction, notes: Iterable[AuditRecord]) -> None:
        """Keep notes, however many, by one statement; always in one order, so that no two callers meet crosswise."""
        first: dict[str, AuditRecord] = {}
        for note in notes:
            first.setdefault(note.id, note)
        rows = sorted(map(row_of_note, first.values()))
        if rows:
            tx.run(
                f"INSERT INTO {{ns}}.note ({NOTE_COLUMNS}) "
                "SELECT * FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::text[]) ON CONFLICT DO NOTHING",
                [list(column) for column in zip(*rows, strict=True)],
            )

    def page(self, tx: Transaction, where: AuditFilter, cursor: str | None, limit: int) -> Page[AuditRecord]:
        query, values = notes_by(where, cursor, limit + 1)
        found = [audit_record_of(row) for row in tx.rows(query, values)]
        return Page(found[:limit], audit_cursor(found[limit - 1]) if len(found) > limit else None)

    def prune(self, tx: Transaction, until: int, limit: int) -> int:
        return tx.run(
            "DELETE FROM {ns}.note WHERE id = ANY(ARRAY(SELECT id FROM {ns}.note WHERE at <= %s "
            "ORDER BY at, id LIMIT %s FOR UPDATE SKIP LOCKED))",
            (until, limit),
        )


class Entries:
    """One namespace's entries."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def edit(self, tx: Transaction, edits: Sequence[EntryEdit]) -> list[str]:
        """Apply edits in their order; the names of those refused because the version had moved on."""
        taken = [edit for edit in edits if self._take(tx, edit)]
        self._notes.add(tx, [edit.audit for edit in taken if edit.audit])
        return [edit.name for edit in edits if not any(edit is other for other in taken)]

    def get(self, tx: Transaction, kind: str, names: Sequence[str]) -> list[Entry]:
        query = f"SELECT {ENTRY_COLUMNS} FROM {{ns}}.entry WHERE kind = %s AND name = ANY(%s)"
        rows = tx.rows(query, (text_of(kind), [text_of(name) for name in names])) if names else []
        found = {entry.name: entry for entry in map(entry_of, rows)}
        return [found[name] for name in names if name in found]

    def page(self, tx: Transaction, kind: str, cursor: str | None, limit: int) -> Page[Entry]:
        query = f"SELECT {ENTRY_COLUMNS} FROM {{ns}}.entry WHERE kind = %s AND name > %s ORDER BY name LIMIT %s"
        rows = tx.rows(query, (text_of(kind), text_of(cursor) or "", limit + 1))
        found = [entry_of(row) for row in rows]
        return Page(found[:limit], found[limit - 1].name if len(found) > limit else None)

    def _take(self, tx: Transaction, edit: EntryEdit) -> bool:
        """Compare and set, by one statement; who comes second waits there for the first, and then is refused."""
        place = (text_of(edit.kind), text_of(edit.name), edit.expect_version)
        if edit.after is None and edit.expect_version == 0:
            return tx.row("SELECT FROM {ns}.entry WHERE kind = %s AND name = %s", place[:2]) is None
        if edit.after is None:
            return bool(tx.run("DELETE FROM {ns}.entry WHERE kind = %s AND name = %s AND version = %s", place))
        if edit.expect_version == 0:
            made = f"INSERT INTO {{ns}}.entry ({ENTRY_COLUMNS}) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"
            return bool(tx.run(made, row_of_entry(edit.after)))
        changed = "UPDATE {ns}.entry SET version = %s, data = %s WHERE kind = %s AND name = %s AND version = %s"
        return bool(tx.run(changed, (*row_of_entry(edit.after)[2:], *place)))


def row_of_note(note: AuditRecord) -> Row:
    return text_of(note.id), note.at, text_of(note.subject), _encode(note).decode()


def audit_record_of(row: Row) -> AuditRecord:
    return audit_record_from(row[3], record_id=row[0], at=row[1], subject=row[2])


def row_of_entry(entry: Entry) -> Row:
    return text_of(entry.kind), text_of(entry.name), entry.version, text_of(entry.data)


def entry_of(row: Row) -> Entry:
    return Entry(kind=row[0], name=row[1], version=row[2], data=row[3])


def notes_by(where: AuditFilter, cursor: str | None, limit: int) -> tuple[str, list[Any]]:
    """The query for the newest notes that a filter shows."""
    wanted = (("subject = %s", text_of(where.subject)), ("at >= %s", where.since), ("at < %s", where.until))
    chosen = [(condition, value) for condition, value in wanted if value is not None]
    conditions: list[str] = [condition for condition, _ in chosen]
    values: list[Any] = [value for _, value in chosen]
    if cursor is not None:
        conditions.append("(at, id) < (%s, %s)")
        values += audit_position(cursor)
    clause = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    return f"SELECT {NOTE_COLUMNS} FROM {{ns}}.note {clause}ORDER BY at DESC, id DESC LIMIT %s", [*values, limit]
