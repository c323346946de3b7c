"""Seals the store for a copy, gives out its records part by part, and takes in those of another store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, assert_never

import msgspec

from rota.model.audit_record import AuditRecord
from rota.model.entry import Entry
from rota.model.job import Job
from rota.model.occurrence import Occurrence
from rota.model.schedule import Schedule
from rota.model.state import State
from rota.store.contract import LockRecord, LogLine, Page, QueueRecord
from rota.store.shared.counting import TOTAL, lacking
from rota.store.sqlite.codec import (
    FOUND_BY,
    JOB_COLUMNS,
    OCCURRENCE_COLUMNS,
    SCHEDULE_COLUMNS,
    audit_record_of,
    entry_of,
    job_of,
    log_line_of,
    occurrence_of,
    row_of_audit_record,
    row_of_entry,
    row_of_log_line,
    row_of_occurrence,
    row_of_schedule,
    schedule_of,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from rota.store.contract import Part, Record, Seal
    from rota.store.sqlite.adding import Adder
    from rota.store.sqlite.listing import Listing
    from rota.store.sqlite.transaction import Seals, Transaction, Transactions

Kind = TypeVar("Kind")

_decode_cursor = msgspec.json.Decoder(list[str | int]).decode


class Moving:
    """Copies one namespace out and in. A cursor is the key of the last record."""

    def __init__(
        self, namespace: str, transactions: Transactions, seals: Seals, listing: Listing, adder: Adder
    ) -> None:
        self._transactions = transactions
        self._seals = seals
        self._listing = listing
        self._adder = adder
        self._ns = namespace

    def seal(self, seal: Seal | None) -> None:
        with self._transactions.write("seal") as tx:
            tx.notify("jobs", "schedules")
            self._seals.put(tx.connection, seal)

    def sealed(self) -> Seal | None:
        with self._transactions.read() as connection:
            return self._seals.get(connection)

    # Out.

    def dump(self, part: Part, cursor: str | None, limit: int) -> Page[Record]:
        keys, query = self._query(part)
        values = ", ".join("?" * len(keys))
        after = _decode_cursor(cursor) if cursor else []
        beyond = f"WHERE ({', '.join(keys)}) > ({values})" if after else ""
        ordered = f"SELECT * FROM ({query}) {beyond} ORDER BY {', '.join(keys)} LIMIT ?"
        with self._transactions.read() as connection:
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
                return log_line_of(row)
            case "queues":
                return self._queue(connection, row[0])
            case "entries":
                return entry_of(row)
            case "audit_records":
                return audit_record_of(row)
            case "locks":
                return LockRecord(name=row[0], number=row[1])
            case _:
                assert_never(part)

    def _queue(self, connection: sqlite3.Connection, name: str) -> QueueRecord:
        query = f"SELECT 1 FROM {self._ns}_queue WHERE name = ? AND is_paused"
        is_paused = connection.execute(query, (name,)).fetchone() is not None
        kept = connection.execute(f"SELECT name, n FROM {self._ns}_count WHERE queue = ? AND n <> 0", (name,))
        totals = {total.removeprefix(TOTAL): number for total, number in kept if total.startswith(TOTAL)}
        return QueueRecord(name=name, is_paused=is_paused, totals=totals)

    # In.

    def load(self, records: Sequence[Record]) -> int:
        """Take records as they are; what is there already is left alone. How many were new."""
        with self._transactions.write("load") as tx:
            return (
                self._load_jobs(tx, _of(records, Job))
                + self._load_rows(
                    tx, f"schedule ({SCHEDULE_COLUMNS}, {FOUND_BY})", map(row_of_schedule, _of(records, Schedule))
                )
                + self._load_rows(tx, "occurrence", map(row_of_occurrence, _of(records, Occurrence)))
                + self._load_rows(tx, "entry", map(row_of_entry, _of(records, Entry)))
                + self._load_rows(tx, "audit", map(row_of_audit_record, _of(records, AuditRecord)))
                + self._load_rows(tx, "log", map(row_of_log_line, _of(records, LogLine)))
                + sum(self._load_queue(tx, record) for record in _of(records, QueueRecord))
                + self._load_locks(tx, _of(records, LockRecord))
            )

    def _load_jobs(self, tx: Transaction, jobs: Sequence[Job]) -> int:
        """A running one's lease has expired: its worker is on the store that was left."""
        known = {job.id for job in self._listing.get(tx.connection, [job.id for job in jobs])}
        fresh = {job.id: job for job in jobs if job.id not in known}
        expired = [
            msgspec.structs.replace(job, lease_until=0) if job.state is State.RUNNING else job for job in fresh.values()
        ]
        self._adder.insert(tx, expired)
        return len(expired)

    def _load_rows(self, tx: Transaction, table: str, rows: Iterable[tuple[Any, ...]]) -> int:
        new = 0
        for row in rows:
            values = ", ".join("?" * len(row))
            new += tx.connection.execute(f"INSERT OR IGNORE INTO {self._ns}_{table} VALUES ({values})", row).rowcount
        return new

    def _load_queue(self, tx: Transaction, queue: QueueRecord) -> bool:
        here = self._queue(tx.connection, queue.name)
        is_news = queue.is_paused and not here.is_paused
        if is_news:
            tx.connection.execute(f"INSERT OR REPLACE INTO {self._ns}_queue VALUES (?, 1)", (queue.name,))
        missing = lacking(queue, here.totals)
        for state, number in missing.items():
            tx.counts.add_total(queue.name, state, number)
        return is_news or bool(missing)

    def _load_locks(self, tx: Transaction, locks: Sequence[LockRecord]) -> int:
        return sum(
            tx.connection.execute(
                f"INSERT INTO {self._ns}_lock VALUES (?, '', 0, '', ?) "
                "ON CONFLICT (name) DO UPDATE SET number = excluded.number WHERE excluded.number > number",
                (lock.name, lock.number),
            ).rowcount
            for lock in locks
        )


def _of(records: Iterable[Record], kind: type[Kind]) -> list[Kind]:
    return [record for record in records if isinstance(record, kind)]
