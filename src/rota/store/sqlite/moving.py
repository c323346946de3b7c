"""Moving on SQLite: the seal beside the schema's version, parts read by their keys, records taken as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, assert_never

import msgspec

from rota.model.audit_record import AuditRecord
from rota.model.entry import Entry
from rota.model.job import Job
from rota.model.occurrence import Occurrence
from rota.model.schedule import Schedule
from rota.model.state import State
from rota.store.contract import LockRecord, LogLine, Page, QueueRecord, Seal
from rota.store.shared.counting import TOTAL, lacking
from rota.store.sqlite.records import audit_record_of, entry_of, row_of_audit, row_of_entry
from rota.store.sqlite.rows import (
    JOB_COLUMNS,
    OCCURRENCE_COLUMNS,
    SCHEDULE_COLUMNS,
    job_of,
    occurrence_of,
    row_of_occurrence,
    row_of_schedule,
    schedule_of,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from rota.store.contract import Part, Record
    from rota.store.shared.counting import Counts
    from rota.store.sqlite.jobs import JobTable

Kind = TypeVar("Kind")

_decode_cursor = msgspec.json.Decoder(list[str | int]).decode


class Seals:
    """The seal of one namespace, which every write that brings or wants work looks at in its own transaction."""

    def __init__(self, namespace: str) -> None:
        self._meta = f"{namespace}_meta"
        self._select = f"SELECT value FROM {self._meta} WHERE name = 'seal'"

    def put(self, connection: sqlite3.Connection, seal: Seal | None) -> None:
        connection.execute(f"DELETE FROM {self._meta} WHERE name = 'seal'")
        if seal is not None:
            packed = msgspec.json.encode(seal).decode()
            connection.execute(f"INSERT INTO {self._meta} VALUES ('seal', ?)", (packed,))

    def get(self, connection: sqlite3.Connection) -> Seal | None:
        row = connection.execute(self._select).fetchone()
        return None if row is None else msgspec.json.decode(row[0], type=Seal)


class Dumper:
    """All of one namespace, part by part. A cursor is the key of the last record."""

    def __init__(self, namespace: str) -> None:
        self._ns = namespace

    def page(self, connection: sqlite3.Connection, part: Part, cursor: str | None, limit: int) -> Page[Record]:
        keys, query = self._query(part)
        marks = ", ".join("?" * len(keys))
        after = _decode_cursor(cursor) if cursor else []
        beyond = f"WHERE ({', '.join(keys)}) > ({marks})" if after else ""
        ordered = f"SELECT * FROM ({query}) {beyond} ORDER BY {', '.join(keys)} LIMIT ?"
        rows = connection.execute(ordered, (*after, limit + 1)).fetchall()
        shown = rows[:limit]
        width = len(keys)
        more = msgspec.json.encode(shown[-1][:width]).decode() if len(rows) > limit else None
        return Page([self._record(connection, part, row[width:]) for row in shown], more)

    def _query(self, part: Part) -> tuple[tuple[str, ...], str]:
        """The columns of a part's key, and a query for them and then for the record's."""
        ns = self._ns
        match part:
            case "jobs":
                return ("k",), f"SELECT seq AS k, {JOB_COLUMNS} FROM {ns}_job"
            case "schedules":
                return ("k",), f"SELECT id AS k, {SCHEDULE_COLUMNS} FROM {ns}_schedule"
            case "occurrences":
                keys = "schedule_id AS k, through_at AS n"
                return ("k", "n"), f"SELECT {keys}, {OCCURRENCE_COLUMNS} FROM {ns}_occurrence"
            case "logs":
                return ("k", "n"), f"SELECT job_id AS k, number AS n, job_id, number, at, level, text FROM {ns}_log"
            case "queues":
                names = f"SELECT queue FROM {ns}_count UNION SELECT name FROM {ns}_queue WHERE is_paused"
                return ("k",), f"SELECT queue AS k, queue FROM ({names})"
            case "entries":
                return ("k", "n"), f"SELECT kind AS k, name AS n, kind, name, version, data FROM {ns}_entry"
            case "audit_records":
                return ("k", "n"), f"SELECT at AS k, id AS n, at, id, subject, record FROM {ns}_audit"
            case "locks":
                return ("k",), f"SELECT name AS k, name, number FROM {ns}_lock"
            case _:
                assert_never(part)

    def _record(self, connection: sqlite3.Connection, part: Part, row: tuple[Any, ...]) -> Record:
        match part:
            case "jobs":
                return job_of(row)
            case "schedules":
                return schedule_of(row)
            case "occurrences":
                return occurrence_of(row)
            case "logs":
                return LogLine(job_id=row[0], number=row[1], at=row[2], level=row[3], text=row[4])
            case "queues":
                return self.queue(connection, row[0])
            case "entries":
                return entry_of(row)
            case "audit_records":
                return audit_record_of(row)
            case "locks":
                return LockRecord(name=row[0], number=row[1])
            case _:
                assert_never(part)

    def queue(self, connection: sqlite3.Connection, name: str) -> QueueRecord:
        query = f"SELECT 1 FROM {self._ns}_queue WHERE name = ? AND is_paused"
        is_paused = connection.execute(query, (name,)).fetchone() is not None
        kept = connection.execute(f"SELECT name, n FROM {self._ns}_count WHERE queue = ? AND n <> 0", (name,))
        totals = {total.removeprefix(TOTAL): number for total, number in kept if total.startswith(TOTAL)}
        return QueueRecord(name=name, is_paused=is_paused, totals=totals)


class Loader:
    """Records of another store, taken as they are; what is there already is left alone."""

    def __init__(self, namespace: str, jobs: JobTable) -> None:
        self._ns = namespace
        self._jobs = jobs
        self._dumper = Dumper(namespace)

    def load(self, connection: sqlite3.Connection, records: Sequence[Record], counts: Counts) -> int:
        """How many were new."""
        return (
            self._load_jobs(connection, _of(records, Job), counts)
            + self._load_rows(connection, "schedule", map(row_of_schedule, _of(records, Schedule)))
            + self._load_rows(connection, "occurrence", map(row_of_occurrence, _of(records, Occurrence)))
            + self._load_rows(connection, "entry", map(row_of_entry, _of(records, Entry)))
            + self._load_rows(connection, "audit", map(row_of_audit, _of(records, AuditRecord)))
            + self._load_rows(connection, "log", map(_row_of_line, _of(records, LogLine)))
            + sum(self._load_queue(connection, record, counts) for record in _of(records, QueueRecord))
            + self._load_locks(connection, _of(records, LockRecord))
        )

    def _load_jobs(self, connection: sqlite3.Connection, jobs: Sequence[Job], counts: Counts) -> int:
        """A running one's lease is void: its worker is on the store that was left."""
        known = {job.id for job in self._jobs.get(connection, [job.id for job in jobs])}
        fresh = {job.id: job for job in jobs if job.id not in known}
        voided = [
            msgspec.structs.replace(job, lease_until=0) if job.state is State.RUNNING else job for job in fresh.values()
        ]
        self._jobs.insert(connection, voided, counts)
        return len(voided)

    def _load_rows(self, connection: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> int:
        new = 0
        for row in rows:
            marks = ", ".join("?" * len(row))
            new += connection.execute(f"INSERT OR IGNORE INTO {self._ns}_{table} VALUES ({marks})", row).rowcount
        return new

    def _load_queue(self, connection: sqlite3.Connection, queue: QueueRecord, counts: Counts) -> bool:
        here = self._dumper.queue(connection, queue.name)
        is_news = queue.is_paused and not here.is_paused
        if is_news:
            connection.execute(f"INSERT OR REPLACE INTO {self._ns}_queue VALUES (?, 1)", (queue.name,))
        missing = lacking(queue, here.totals)
        for state, number in missing.items():
            counts.add_total(queue.name, state, number)
        return is_news or bool(missing)

    def _load_locks(self, connection: sqlite3.Connection, locks: Sequence[LockRecord]) -> int:
        return sum(
            connection.execute(
                f"INSERT INTO {self._ns}_lock VALUES (?, '', 0, '', ?) "
                "ON CONFLICT (name) DO UPDATE SET number = excluded.number WHERE excluded.number > number",
                (lock.name, lock.number),
            ).rowcount
            for lock in locks
        )


def _of(records: Iterable[Record], kind: type[Kind]) -> list[Kind]:
    return [record for record in records if isinstance(record, kind)]


def _row_of_line(line: LogLine) -> tuple[Any, ...]:
    return line.job_id, line.number, line.at, line.level, line.text
