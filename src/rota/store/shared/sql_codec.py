"""Values and rows of the stores that keep tables: all but jobs, whose tables differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.entry import Entry
from rota.model.schedules.occurrence import Occurrence
from rota.model.schedules.schedule import Ahead, LastRun, Origin, Pause, Schedule, pack_spec, unpack_spec
from rota.store.contract import LogLine
from rota.store.shared.unpacking import audit_record_from, unreadable_schedule

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.audit_record import AuditRecord
    from rota.store.shared.sql import Row

# The columns, with their types.
_STORED = {
    **dict.fromkeys(("id", "spec", "origin", "pause", "last", "problem", "tenant_pause", "ahead"), "text"),
    **dict.fromkeys(("version", "created_at", "updated_at", "next_at", "fired_through", "run_count"), "bigint"),
    "generation": "int",
    "is_enabled": "boolean",
}
SCHEDULE_TYPES = {**_STORED, "due_at": "bigint", "tenant": "text", "origin_name": "text"}  # with those of indexes
OCCURRENCE_TYPES = {
    "schedule_id": "text",
    "through_at": "bigint",
    "after_at": "bigint",
    "count": "bigint",
    "outcome": "text",
    "reason": "text",
}
ENTRY_TYPES = {"kind": "text", "name": "text", "version": "bigint", "data": "text"}
LOG_TYPES = {"job_id": "text", "number": "bigint", "at": "bigint", "level": "text", "text": "text"}
AUDIT_TYPES = {"id": "text", "at": "bigint", "subject": "text", "record": "text"}

SCHEDULE_COLUMNS, OCCURRENCE_COLUMNS = ", ".join(_STORED), ", ".join(OCCURRENCE_TYPES)
ENTRY_COLUMNS, AUDIT_COLUMNS = ", ".join(ENTRY_TYPES), ", ".join(AUDIT_TYPES)
LOG_COLUMNS = ", ".join(LOG_TYPES)

_encode = msgspec.json.encode
_decode_last = msgspec.json.Decoder(LastRun).decode
_decode_pause = msgspec.json.Decoder(Pause).decode
_DECODERS = (
    ("origin", msgspec.json.Decoder(Origin).decode),
    ("last", _decode_last),
    ("pause", _decode_pause),
    ("tenant_pause", _decode_pause),
    ("ahead", msgspec.json.Decoder(Ahead).decode),
)


def schedule_from(row: Row) -> Schedule:
    """A schedule from SCHEDULE_COLUMNS. One that cannot be read is shown with the reason; it is never due."""
    stored = dict(zip(_STORED, row, strict=True))
    try:
        stored["spec"] = unpack_spec(stored["spec"])
        stored["is_enabled"] = bool(stored["is_enabled"])
        for name, decode in _DECODERS:
            if stored[name] is not None:
                stored[name] = decode(stored[name])
        return Schedule(**stored)
    except (msgspec.MsgspecError, TypeError, ValueError) as err:
        plain = {name: stored[name] for name in ("version", "created_at", "updated_at", "fired_through")}
        return unreadable_schedule(str(stored["id"]), err, **plain)


def packed(value: Pause | Ahead | None) -> str | None:
    return None if value is None else _encode(value).decode()


def last_from(stored: str) -> LastRun:
    """What is known of a schedule's last run; nothing, if it was made unreadable by hand."""
    try:
        return _decode_last(stored)
    except msgspec.MsgspecError:
        return LastRun()


def occurrence_from(row: Row) -> Occurrence:
    return Occurrence(**dict(zip(OCCURRENCE_TYPES, row, strict=True)))


def entry_from(row: Row) -> Entry:
    return Entry(**dict(zip(ENTRY_TYPES, row, strict=True)))


def audit_record(row: Row) -> AuditRecord:
    return audit_record_from(row[3], record_id=row[0], at=row[1], subject=row[2])


def log_line_from(row: Row) -> LogLine:
    """A line from the columns of LOG_TYPES."""
    return LogLine(job_id=row[0], number=row[1], at=row[2], level=row[3], text=row[4])


def _unchanged(text: str | None) -> str | None:
    return text


class SqlCodec:
    """What a store writes into its tables."""

    def __init__(self, text: Callable[[str | None], str | None] = _unchanged, *, no_tenant: str | None) -> None:
        self.text = text  # a text as the store can keep it
        self.no_tenant = no_tenant  # stands for none in the index of tenants

    def schedule_row(self, schedule: Schedule) -> Row:
        """The columns of SCHEDULE_TYPES."""
        stored = {
            **msgspec.structs.asdict(schedule),
            "spec": pack_spec(schedule.spec).decode(),
            "origin": _encode(schedule.origin).decode(),
            "pause": packed(schedule.pause),
            "last": self.packed_last(schedule.last),
            "problem": self.text(schedule.problem),
            "tenant_pause": packed(schedule.tenant_pause),
            "ahead": packed(schedule.ahead),
            "due_at": schedule.due_at,
            "tenant": self.text(schedule.spec.tenant) or self.no_tenant,
            "origin_name": self.text(schedule.origin.name),
        }
        return tuple(stored[name] for name in SCHEDULE_TYPES)

    def packed_last(self, last: LastRun) -> str:
        if last.error and self.text(last.error) != last.error:
            last = msgspec.structs.replace(last, error=self.text(last.error))
        return _encode(last).decode()

    def occurrence_row(self, entry: Occurrence) -> Row:
        """The columns of OCCURRENCE_TYPES."""
        return entry.schedule_id, entry.through_at, entry.after_at, entry.count, entry.outcome, self.text(entry.reason)

    def entry_row(self, entry: Entry) -> Row:
        """The columns of ENTRY_TYPES."""
        return self.text(entry.kind), self.text(entry.name), entry.version, self.text(entry.data)

    def audit_row(self, record: AuditRecord) -> Row:
        """The columns of AUDIT_TYPES."""
        return self.text(record.id), record.at, self.text(record.subject), _encode(record).decode()
