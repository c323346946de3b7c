"""Copies of the stores that keep tables: parts read by their keys, records written as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from rota.model.audit_record import AuditRecord
from rota.model.entry import Entry
from rota.model.schedules.occurrence import Occurrence
from rota.model.schedules.schedule import Schedule
from rota.store.contract import LockRecord
from rota.store.shared.importing import of_kind
from rota.store.shared.paging import keyed_page
from rota.store.shared.sql_codec import (
    AUDIT_TYPES,
    ENTRY_COLUMNS,
    ENTRY_TYPES,
    OCCURRENCE_COLUMNS,
    OCCURRENCE_TYPES,
    SCHEDULE_TYPES,
    entry_from,
    occurrence_from,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rota.store.contract import Page, Record
    from rota.store.shared.parts import OwnPart
    from rota.store.shared.sql import Row, Select, Tables
    from rota.store.shared.sql_codec import SqlCodec

NEW = "ON CONFLICT DO NOTHING"
_decode_cursor = msgspec.json.Decoder(list[str | int]).decode


class Part(NamedTuple):
    """Records of one kind, as they are read."""

    key: tuple[str, ...]  # the columns of their key
    columns: str  # what else to select
    tables: str
    record_from: Callable[[Row], Record]


PARTS: dict[OwnPart, Part] = {
    "occurrences": Part(("schedule_id", "through_at"), OCCURRENCE_COLUMNS, "{ns}.occurrence", occurrence_from),
    "entries": Part(("kind", "name"), ENTRY_COLUMNS, "{ns}.entry", entry_from),
    "locks": Part(("name",), "name, number", "{ns}.lock", lambda row: LockRecord(name=row[0], number=row[1])),
}


def page_of_part(select: Select, part: Part, cursor: str | None, limit: int) -> Page[Record]:
    """A page of one part. A cursor is the key of the last record."""
    width, key = len(part.key), ", ".join(part.key)
    beyond = f"WHERE ({key}) > ({', '.join('?' * width)})" if cursor else ""
    query = f"SELECT {key}, {part.columns} FROM {part.tables} {beyond} ORDER BY {key} LIMIT ?"
    rows = select(query, (*(_decode_cursor(cursor) if cursor else ()), limit + 1))
    return keyed_page(((row[:width], part.record_from(row[width:])) for row in rows), limit)


def load_rows(tx: Tables, codec: SqlCodec, given: Sequence[Record], unused_lock: Mapping[str, str]) -> int:
    """Write the records whose tables are as in every store; returns how many were new. `unused_lock`: the columns of a
    lock beside its name and number, with the values of one that nobody has held."""
    tables: tuple[tuple[type[Any], str, dict[str, str], Callable[[Any], Row]], ...] = (
        (Schedule, "schedule", SCHEDULE_TYPES, codec.schedule_row),
        (Entry, "entry", ENTRY_TYPES, codec.entry_row),
        (AuditRecord, "audit", AUDIT_TYPES, codec.audit_row),
        (Occurrence, "occurrence", OCCURRENCE_TYPES, codec.occurrence_row),
    )
    new = sum(tx.insert(table, types, map(row_of, of_kind(given, kind)), NEW) for kind, table, types, row_of in tables)
    return new + _load_locks(tx, of_kind(given, LockRecord), unused_lock)


def _load_locks(tx: Tables, locks: Sequence[LockRecord], unused: Mapping[str, str]) -> int:
    statement = (
        f"INSERT INTO {{ns}}.lock AS l (name, number, {', '.join(unused)}) VALUES (?, ?, {', '.join(unused.values())}) "
        "ON CONFLICT (name) DO UPDATE SET number = excluded.number WHERE excluded.number > l.number"
    )
    return sum(tx.run(statement, (lock.name, lock.number)) for lock in locks)
