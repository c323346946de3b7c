"""Seals the store for a copy, gives out its records part by part, and takes in those of another store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from rota.model.audit_record import AuditRecord
from rota.model.entry import Entry
from rota.model.jobs.job import Job
from rota.model.schedules.occurrence import Occurrence
from rota.model.schedules.schedule import Schedule
from rota.store.contract import LockRecord, LogLine, Page, QueueRecord
from rota.store.shared.changing import TOTAL, load_queue
from rota.store.shared.importing import fresh_jobs, of_kind
from rota.store.sqlite.codec import (
    FOUND_BY,
    JOB_COLUMNS,
    OCCURRENCE_COLUMNS,
    SCHEDULE_COLUMNS,
    entry_of,
    job_of,
    log_line_of,
    occurrence_of,
    row_of_audit_record,
    row_of_entry,
    row_of_log_line,
    row_of_occurrence,
    row_of_schedule,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from rota.store.contract import Record, Seal
    from rota.store.shared.parts import OwnPart
    from rota.store.sqlite.adding import Adder
    from rota.store.sqlite.listing import Listing
    from rota.store.sqlite.transaction import Seals, Transaction, Transactions


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

    def dump(self, part: OwnPart, cursor: str | None, limit: int) -> Page[Record]:
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
            return Page([_record(part, row[width:]) for row in shown], more)

    def _query(self, part: OwnPart) -> tuple[tuple[str, ...], str]:
        """The columns of a part's key, and a query for them and then for the record's."""
        ns = self._ns
        match part:
            case "jobs":
                return ("k",), f"SELECT seq AS k, {JOB_COLUMNS} FROM {ns}_job"
            case "occurrences":
                keys = "schedule_id AS k, through_at AS n"
                return ("k", "n"), f"SELECT {keys}, {OCCURRENCE_COLUMNS} FROM {ns}_occurrence"
            case "logs":
                return ("k", "n"), f"SELECT job_id AS k, number AS n, job_id, number, at, level, text FROM {ns}_log"
            case "entries":
                return ("k", "n"), f"SELECT kind AS k, name AS n, kind, name, version, data FROM {ns}_entry"
            case "locks":
                return ("k",), f"SELECT name AS k, name, number FROM {ns}_lock"
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
                self._load_jobs(tx, of_kind(records, Job))
                + self._load_rows(
                    tx, f"schedule ({SCHEDULE_COLUMNS}, {FOUND_BY})", map(row_of_schedule, of_kind(records, Schedule))
                )
                + self._load_rows(tx, "occurrence", map(row_of_occurrence, of_kind(records, Occurrence)))
                + self._load_rows(tx, "entry", map(row_of_entry, of_kind(records, Entry)))
                + self._load_rows(tx, "audit", map(row_of_audit_record, of_kind(records, AuditRecord)))
                + self._load_rows(tx, "log", map(row_of_log_line, of_kind(records, LogLine)))
                + sum(self._load_queue(tx, record) for record in of_kind(records, QueueRecord))
                + self._load_locks(tx, of_kind(records, LockRecord))
            )

    def _load_jobs(self, tx: Transaction, jobs: Sequence[Job]) -> int:
        known = {job.id for job in self._listing.get(tx.connection, [job.id for job in jobs])}
        fresh = fresh_jobs(jobs, known)
        self._adder.insert(tx, fresh)
        return len(fresh)

    def _load_rows(self, tx: Transaction, table: str, rows: Iterable[tuple[Any, ...]]) -> int:
        new = 0
        for row in rows:
            values = ", ".join("?" * len(row))
            new += tx.connection.execute(f"INSERT OR IGNORE INTO {self._ns}_{table} VALUES ({values})", row).rowcount
        return new

    def _load_queue(self, tx: Transaction, queue: QueueRecord) -> bool:
        here = self._queue(tx.connection, queue.name)
        paused = f"INSERT OR REPLACE INTO {self._ns}_queue VALUES (?, 1)"
        return load_queue(queue, here, tx.counts, lambda: tx.connection.execute(paused, (queue.name,)))

    def _load_locks(self, tx: Transaction, locks: Sequence[LockRecord]) -> int:
        return sum(
            tx.connection.execute(
                f"INSERT INTO {self._ns}_lock VALUES (?, '', 0, '', ?) "
                "ON CONFLICT (name) DO UPDATE SET number = excluded.number WHERE excluded.number > number",
                (lock.name, lock.number),
            ).rowcount
            for lock in locks
        )


def _record(part: OwnPart, row: tuple[Any, ...]) -> Record:
    match part:
        case "jobs":
            return job_of(row)
        case "occurrences":
            return occurrence_of(row)
        case "logs":
            return log_line_of(row)
        case "entries":
            return entry_of(row)
        case "locks":
            return LockRecord(name=row[0], number=row[1])
        case _:
            assert_never(part)
