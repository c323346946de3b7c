"""Entries, and audit records of who changed what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.store.redis.codec import (
    TIME_WIDTH,
    audit_key,
    audit_record_of,
    binary,
    entry_of,
    pack_audit_record,
    pack_entry,
)
from rota.store.redis.guarded_write import GuardedWrite
from rota.store.shared.matching import audit_cursor, audit_position
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.entry import Entry, EntryEdit
    from rota.store.contract import AuditFilter, Page
    from rota.store.redis.guarded_writer import GuardedWriter
    from rota.store.redis.indexes import Command

MOST_AT_ONCE = 500  # edits or audit records in one call: a script must not block the server for long


class Records:
    """The verbs of contract.records."""

    def __init__(self, writer: GuardedWriter) -> None:
        self._writer = writer

    def edit_entries(self, edits: Sequence[EntryEdit]) -> list[str]:
        refused: list[bytes] = []
        for start in range(0, max(len(edits), 1), MOST_AT_ONCE):
            some = [_request(edit) for edit in edits[start : start + MOST_AT_ONCE]]
            refused += self._writer.connection.call("entries", is_work=True, edits=some).body
        return [name.decode() for name in refused]

    def get_entries(self, kind: str, names: Sequence[str]) -> list[Entry]:
        if not names:
            return []
        (found,) = self._writer.read(["HMGET", f"entry:{kind}", *names])
        return [entry_of(kind, name, kept) for name, kept in zip(names, found, strict=True) if kept is not None]

    def list_entries(self, kind: str, cursor: str | None, limit: int) -> Page[Entry]:
        found = self.entries_after(kind, cursor, limit + 1)
        return page_of(found, limit, lambda entry: entry.name)

    def kinds(self) -> list[str]:
        (found,) = self._writer.read(["ZRANGE", "kinds", 0, -1])
        return [kind.decode() for kind in found]

    def entries_after(self, kind: str, after: str | None, limit: int) -> list[Entry]:
        """The first entries of a kind after a name."""
        start = "-" if after is None else f"({after}"
        (names,) = self._writer.read(["ZRANGEBYLEX", f"entries:{kind}", start, "+", "LIMIT", 0, limit])
        return self.get_entries(kind, [name.decode() for name in names])

    def add_audit_records(self, records: Sequence[AuditRecord]) -> None:
        for start in range(0, len(records), MOST_AT_ONCE):
            write = GuardedWrite(self._writer, 0)
            for record in records[start : start + MOST_AT_ONCE]:
                write.add_audit_record(record)
            self._writer.connection.call("commit", items=[write.item()], is_work=False)

    def list_audit_records(self, where: AuditFilter, cursor: str | None, limit: int) -> Page[AuditRecord]:
        """Newest first, from the index of their subject or of all."""
        ends = [audit_key(*audit_position(cursor))] if cursor is not None else []
        ends += [audit_key(where.until)] if where.until is not None else []
        index = "audits" if where.subject is None else f"audits:{where.subject}"
        start = "-" if where.since is None else f"[{audit_key(where.since)}"
        found = self._read_audit_records(
            ["ZREVRANGEBYLEX", index, f"({min(ends)}" if ends else "+", start, "LIMIT", 0, limit + 1]
        )
        return page_of(found, limit, audit_cursor)

    def oldest_audit_records(self, after: str | None, limit: int) -> list[AuditRecord]:
        """Audit records in order of time, after a sort key."""
        return self._read_audit_records(
            ["ZRANGEBYLEX", "audits", "-" if after is None else f"({after}", "+", "LIMIT", 0, limit]
        )

    def _read_audit_records(self, command: Command) -> list[AuditRecord]:
        keys = [key.decode() for key in self._writer.read(command)[0]]
        if not keys:
            return []
        (found,) = self._writer.read(["HMGET", "audit", *(key[TIME_WIDTH:] for key in keys)])
        return [audit_record_of(key, kept) for key, kept in zip(keys, found, strict=True) if kept is not None]


def _request(edit: EntryEdit) -> tuple[Any, ...]:
    after = binary(pack_entry(edit.after)) if edit.after is not None else False
    record = pack_audit_record(edit.audit) if edit.audit is not None else False
    return edit.kind, edit.name, edit.expect_version, after, record
