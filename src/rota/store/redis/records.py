"""Entries, and audit records of who changed what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.redis.codec import TIME_WIDTH, audit_key, audit_record_of, binary, entry_of, pack_entry
from rota.store.redis.guarded_write import GuardedWrite
from rota.store.shared.batching import batches
from rota.store.shared.matching import audit_cursor, audit_position
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.entry import Entry, EntryEdit
    from rota.store.contract import AuditFilter, Page
    from rota.store.redis.guarded_write import GuardedWriter

MOST_AT_ONCE = 500  # edits or audit records in one call: a script must not block the server for long


class Records:
    """The verbs of contract.records."""

    def __init__(self, writer: GuardedWriter) -> None:
        self._writer = writer

    def edit_entries(self, edits: Sequence[EntryEdit]) -> list[str]:
        """In their order, each whole and with its audit record, if it still has the version that was decided on."""
        some = list(batches(edits, lambda edit: [(edit.kind, edit.name)], MOST_AT_ONCE)) or [[]]
        return [name for batch in some for name in self._edit(batch)]

    def _edit(self, edits: Sequence[EntryEdit]) -> list[str]:
        def decided() -> tuple[GuardedWrite, list[str]]:
            write = GuardedWrite(self._writer)
            return write, _edited(write, edits)

        return self._writer.decide_one("entries", decided, is_work=True)

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
            write = GuardedWrite(self._writer)
            for record in records[start : start + MOST_AT_ONCE]:
                write.add_audit_record(record)
            self._writer.commit("audit", [write], is_work=False)

    def list_audit_records(self, where: AuditFilter, cursor: str | None, limit: int) -> Page[AuditRecord]:
        """Newest first, from the index of their subject or of all."""
        ends = [audit_key(*audit_position(cursor))] if cursor is not None else []
        ends += [audit_key(where.until)] if where.until is not None else []
        index = "audits" if where.subject is None else f"audits:{where.subject}"
        start = "-" if where.since is None else f"[{audit_key(where.since)}"
        end = f"({min(ends)}" if ends else "+"
        (rows,) = self._writer.read(["ZREVRANGEBYLEX", index, end, start, "LIMIT", 0, limit + 1])
        keys = [key.decode() for key in rows]
        (found,) = self._writer.read(["HMGET", "audit", "", *(key[TIME_WIDTH:] for key in keys)])
        kept = [audit_record_of(key, row) for key, row in zip(keys, found[1:], strict=True) if row is not None]
        return page_of(kept, limit, audit_cursor)


def _edited(write: GuardedWrite, edits: Sequence[EntryEdit]) -> list[str]:
    """Write edits; returns the names of those that are refused."""
    found = write.read(*(["HGET", f"entry:{edit.kind}", edit.name] for edit in edits))
    refused: list[str] = []
    for edit, kept in zip(edits, found, strict=True):
        if edit.expect_version != (0 if kept is None else entry_of(edit.kind, edit.name, kept).version):
            refused.append(edit.name)
            continue
        if edit.after is not None:
            put_entry(write, edit.after)
        else:
            write.add_command("HDEL", f"entry:{edit.kind}", edit.name)
            write.add_command("ZREM", f"entries:{edit.kind}", edit.name)
        write.add_audit_record(edit.audit)
    return refused


def put_entry(write: GuardedWrite, entry: Entry) -> None:
    write.add_command("HSET", f"entry:{entry.kind}", entry.name, binary(pack_entry(entry)))
    write.add_command("ZADD", f"entries:{entry.kind}", 0, entry.name)
    write.add_command("ZADD", "kinds", 0, entry.kind)
