"""Moving on PostgreSQL: the seal in a table of its own, parts read by their keys, records taken as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, assert_never

import msgspec

from rota.model.audit_record import AuditRecord
from rota.model.entry import Entry
from rota.model.job import Job
from rota.model.occurrence import Occurrence
from rota.model.schedule import Schedule
from rota.model.state import State
from rota.store.contract import LockRecord, LogLine, Page, QueueRecord, Seal
from rota.store.postgres.codec import (
    FOUND_BY,
    JOB_COLUMNS,
    OCCURRENCE_COLUMNS,
    SCHEDULE_COLUMNS,
    job_of,
    occurrence_of,
    row_of_occurrence,
    row_of_schedule,
    schedule_of,
    text_of,
)
from rota.store.postgres.records import (
    ENTRY_COLUMNS,
    NOTE_COLUMNS,
    audit_record_of,
    entry_of,
    row_of_entry,
    row_of_note,
)
from rota.store.shared.counting import lacking

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.store.contract import Part, Record
    from rota.store.postgres.job_rows import JobRows
    from rota.store.postgres.keys import Keys
    from rota.store.postgres.operations import Queues
    from rota.store.postgres.transaction import Row, Transaction

Kind = TypeVar("Kind")

_decode_cursor = msgspec.json.Decoder(list[str | int]).decode
_LOG_COLUMNS = "j.id, g.number, g.at, g.level, g.text"


def put_seal(tx: Transaction, seal: Seal | None) -> None:
    """Whoever brings work has looked at the seal in its own transaction; the lock waits for all of them."""
    tx.run("LOCK TABLE {ns}.seal IN ACCESS EXCLUSIVE MODE")
    tx.run("DELETE FROM {ns}.seal")
    if seal is not None:
        tx.run("INSERT INTO {ns}.seal VALUES (%s)", (msgspec.json.encode(seal).decode(),))


def get_seal(tx: Transaction) -> Seal | None:
    row = tx.row("SELECT value FROM {ns}.seal")
    return None if row is None else unpacked(row[0])


def unpacked(seal: str) -> Seal:
    return msgspec.json.decode(seal, type=Seal)


class Dumper:
    """All of one namespace, part by part. A cursor is the key of the last record."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues

    def page(self, tx: Transaction, part: Part, cursor: str | None, limit: int) -> Page[Record]:
        if part == "queues":
            return self._queue_page(tx, cursor, limit)
        keys, query = _query(part)
        after = _decode_cursor(cursor) if cursor else []
        beyond = f"WHERE ({', '.join(keys)}) > ({', '.join(['%s'] * len(keys))})" if after else ""
        rows = tx.rows(f"{query} {beyond} ORDER BY {', '.join(keys)} LIMIT %s", (*after, limit + 1))
        shown = rows[:limit]
        width = len(keys)
        more = msgspec.json.encode(shown[-1][:width]).decode() if len(rows) > limit else None
        return Page([_record(part, row[width:]) for row in shown], more)

    def _queue_page(self, tx: Transaction, cursor: str | None, limit: int) -> Page[Record]:
        """Queues are few: all are summed, and those beyond the cursor shown."""
        after = str(_decode_cursor(cursor)[0]) if cursor else ""
        records: list[Record] = [record for record in queue_records(tx, self._queues) if record.name > after]
        shown = records[:limit]
        last = shown[-1] if shown else None
        more = msgspec.json.encode([last.name]).decode() if len(records) > limit and last else None  # type: ignore[union-attr]
        return Page(shown, more)


def queue_records(tx: Transaction, queues: Queues) -> list[QueueRecord]:
    return [QueueRecord(name=info.name, is_paused=info.is_paused, totals=info.totals) for info in queues.infos(tx)]


def _query(part: Part) -> tuple[tuple[str, ...], str]:
    """The columns of a part's key, and a query for them and then for the record's."""
    match part:
        case "jobs":
            return ("seq",), f"SELECT seq, {JOB_COLUMNS} FROM {{ns}}.jobs"
        case "schedules":
            return ("id",), f"SELECT id, {SCHEDULE_COLUMNS} FROM {{ns}}.schedule"
        case "occurrences":
            keys = ("schedule_id", "through_at")
            return keys, f"SELECT {', '.join(keys)}, {OCCURRENCE_COLUMNS} FROM {{ns}}.occurrence"
        case "logs":
            joined = "{ns}.log g JOIN {ns}.job j ON j.seq = g.seq"
            return ("g.seq", "g.number"), f"SELECT g.seq, g.number, {_LOG_COLUMNS} FROM {joined}"
        case "entries":
            return ("kind", "name"), f"SELECT kind, name, {ENTRY_COLUMNS} FROM {{ns}}.entry"
        case "audit_records":
            return ("at", "id"), f"SELECT at, id, {NOTE_COLUMNS} FROM {{ns}}.note"
        case "locks":
            return ("name",), "SELECT name, name, number FROM {ns}.lock"
        case "queues":
            raise ValueError(part)
        case _:
            assert_never(part)


def _record(part: Part, row: Row) -> Record:
    match part:
        case "jobs":
            return job_of(row)
        case "schedules":
            return schedule_of(row)
        case "occurrences":
            return occurrence_of(row)
        case "logs":
            return LogLine(job_id=row[0], number=row[1], at=row[2], level=row[3], text=row[4])
        case "entries":
            return entry_of(row)
        case "audit_records":
            return audit_record_of(row)
        case "locks":
            return LockRecord(name=row[0], number=row[1])
        case "queues":
            raise ValueError(part)
        case _:
            assert_never(part)


class Loader:
    """Records of another store, taken as they are; what is there already is left alone."""

    def __init__(self, jobs: JobRows, keys: Keys, queues: Queues) -> None:
        self._jobs = jobs
        self._keys = keys
        self._queues = queues

    def load(self, tx: Transaction, records: Sequence[Record]) -> int:
        """How many were new."""
        return (
            self._load_queues(tx, _of(records, QueueRecord))
            + self._load_locks(tx, _of(records, LockRecord))
            + self._load_rows(
                tx, "schedule", f"{SCHEDULE_COLUMNS}, {FOUND_BY}", map(row_of_schedule, _of(records, Schedule))
            )
            + self._load_rows(tx, "entry", ENTRY_COLUMNS, map(row_of_entry, _of(records, Entry)))
            + self._load_rows(tx, "note", NOTE_COLUMNS, map(row_of_note, _of(records, AuditRecord)))
            + self._load_rows(tx, "occurrence", OCCURRENCE_COLUMNS, map(row_of_occurrence, _of(records, Occurrence)))
            + self._load_jobs(tx, _of(records, Job))
            + self._load_logs(tx, _of(records, LogLine))
        )

    def _load_jobs(self, tx: Transaction, jobs: Sequence[Job]) -> int:
        """A running one's lease is void: its worker is on the store that was left."""
        known = {job.id for job in self._jobs.get(tx, [job.id for job in jobs])}
        fresh = {job.id: job for job in jobs if job.id not in known}
        voided = [
            msgspec.structs.replace(job, lease_until=0) if job.state is State.RUNNING else job for job in fresh.values()
        ]
        placed = self._jobs.insert(tx, voided)
        self._keys.put(tx, placed)
        return len(placed)

    def _load_rows(self, tx: Transaction, table: str, columns: str, rows: Iterable[Row]) -> int:
        marks = ", ".join(["%s"] * len(columns.split(", ")))
        statement = f"INSERT INTO {{ns}}.{table} ({columns}) VALUES ({marks}) ON CONFLICT DO NOTHING"
        return sum(tx.run(statement, row) for row in rows)

    def _load_logs(self, tx: Transaction, lines: Sequence[LogLine]) -> int:
        statement = (
            "INSERT INTO {ns}.log (seq, number, at, level, text) SELECT j.seq, %s, %s, %s, %s FROM {ns}.job j "
            "WHERE j.id = %s ON CONFLICT DO NOTHING"
        )
        rows = [(line.number, line.at, line.level, text_of(line.text), line.job_id) for line in lines]
        highest = max((line.number for line in lines), default=0)
        tx.rows(  # new lines come behind
            "SELECT setval('{ns}.log_number', %s) FROM {ns}.log_number WHERE last_value < %s", (highest, highest)
        )
        return sum(tx.run(statement, row) for row in rows)

    def _load_queues(self, tx: Transaction, queues: Sequence[QueueRecord]) -> int:
        if not queues:
            return 0
        here = {record.name: record for record in queue_records(tx, self._queues)}
        new = 0
        for queue in queues:
            found = here.get(queue.name, QueueRecord(name=queue.name))
            is_news = queue.is_paused and not found.is_paused
            if is_news:
                self._queues.pause(tx, queue.name, paused=True)
            missing = lacking(queue, found.totals)
            for state, number in missing.items():
                tx.counts.add_total(queue.name, state, number)
            new += is_news or bool(missing)
        return new

    def _load_locks(self, tx: Transaction, locks: Sequence[LockRecord]) -> int:
        statement = (
            "INSERT INTO {ns}.lock AS l VALUES (%s, '', 0, %s) "
            "ON CONFLICT (name) DO UPDATE SET number = excluded.number WHERE excluded.number > l.number"
        )
        return sum(tx.run(statement, (lock.name, lock.number)) for lock in locks)


def _of(records: Iterable[Record], kind: type[Kind]) -> list[Kind]:
    return [record for record in records if isinstance(record, kind)]
