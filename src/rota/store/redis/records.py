"""What the store keeps about the system itself: entries, and notes of who changed what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.store.contract import Page
from rota.store.redis.draft import Draft
from rota.store.redis.packing import WIDTH, audit_record_of, entry_of, note_mark, pack_entry, pack_note
from rota.store.redis.wire import binary
from rota.store.shared.matching import audit_cursor, audit_position

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.entry import Entry, EntryEdit
    from rota.store.contract import AuditFilter
    from rota.store.redis.desk import Desk

MOST_AT_ONCE = 500  # edits or notes in one call: a script must not hold up the others for long


class Records:
    """The verbs of contract.records."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    # Entries.

    def edit(self, edits: Sequence[EntryEdit]) -> list[str]:
        refused: list[bytes] = []
        for start in range(0, max(len(edits), 1), MOST_AT_ONCE):
            some = [_told(edit) for edit in edits[start : start + MOST_AT_ONCE]]
            refused += self._desk.link.call("entries", is_work=True, edits=some).body
        return [name.decode() for name in refused]

    def get(self, kind: str, names: Sequence[str]) -> list[Entry]:
        if not names:
            return []
        (found,) = self._desk.ask(["HMGET", f"entry:{kind}", *names])
        return [entry_of(kind, name, kept) for name, kept in zip(names, found, strict=True) if kept is not None]

    def page(self, kind: str, cursor: str | None, limit: int) -> Page[Entry]:
        found = self.entries_of(kind, cursor, limit + 1)
        return Page(found[:limit], found[limit - 1].name if len(found) > limit else None)

    def kinds(self) -> list[str]:
        (found,) = self._desk.ask(["ZRANGE", "kinds", 0, -1])
        return [kind.decode() for kind in found]

    def entries_of(self, kind: str, after: str | None, limit: int) -> list[Entry]:
        """The first entries of a kind behind a name."""
        names, found = self._desk.link.call("entry_page", kind=kind, after=after, limit=limit).body
        pairs = zip(names, found, strict=True)
        return [entry_of(kind, name.decode(), kept) for name, kept in pairs if kept is not None]

    # Notes.

    def add_audit_records(self, notes: Sequence[AuditRecord]) -> None:
        for start in range(0, len(notes), MOST_AT_ONCE):
            draft = Draft(self._desk, 0)
            for note in notes[start : start + MOST_AT_ONCE]:
                draft.keep_note(note)
            self._desk.link.call("commit", items=[draft.item()], is_work=False)

    def notes(self, where: AuditFilter, cursor: str | None, limit: int) -> Page[AuditRecord]:
        """Newest first, from the index of their subject or of all."""
        marks = [note_mark(*audit_position(cursor))] if cursor is not None else []
        marks += [note_mark(where.until)] if where.until is not None else []
        found = self._notes(
            index="notes" if where.subject is None else f"notes:{where.subject}",
            most=f"({min(marks)}" if marks else "+",
            least="-" if where.since is None else f"[{note_mark(where.since)}",
            limit=limit + 1,
        )
        return Page(found[:limit], audit_cursor(found[limit - 1]) if len(found) > limit else None)

    def oldest_notes(self, after: str | None, limit: int) -> list[AuditRecord]:
        """Notes as they were made, behind a mark."""
        least = "-" if after is None else f"({after}"
        return self._notes(index="notes", least=least, most="+", limit=limit, is_rising=True)

    def _notes(self, **ask: Any) -> list[AuditRecord]:
        marks, found = self._desk.link.call("note_page", width=WIDTH, **ask).body
        return [audit_record_of(mark, kept) for mark, kept in zip(marks, found, strict=True) if kept is not None]


def _told(edit: EntryEdit) -> tuple[Any, ...]:
    after = binary(pack_entry(edit.after)) if edit.after is not None else False
    note = pack_note(edit.audit) if edit.audit is not None else False
    return edit.kind, edit.name, edit.expect_version, after, note
