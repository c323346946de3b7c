"""Seals the store for a copy, exports its records part by part, and imports those of another store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.job import Job
from rota.store.contract import LogLine, QueueRecord
from rota.store.shared.changing import TOTAL, load_queue
from rota.store.shared.importing import fresh_jobs, of_kind
from rota.store.shared.sql_codec import LOG_COLUMNS, LOG_TYPES, log_line_from
from rota.store.shared.sql_moving import NEW, PARTS, Part, load_rows, page_of_part
from rota.store.sqlite.codec import CODEC, JOB_COLUMNS, job_of, row_of_log_line

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from rota.store.contract import Page, Record, Seal
    from rota.store.shared.parts import OwnPart
    from rota.store.sqlite.adding import Adder
    from rota.store.sqlite.listing import Listing
    from rota.store.sqlite.transaction import Seals, Transaction, Transactions


_PARTS: dict[OwnPart, Part] = {
    **PARTS,
    "jobs": Part(("seq",), JOB_COLUMNS, "{ns}.job", job_of),
    "logs": Part(("job_id", "number"), LOG_COLUMNS, "{ns}.log", log_line_from),
}
_UNUSED_LOCK = {"token": "''", "until": "0", "boot": "''"}


class Moving:
    """Copies one namespace out and in."""

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
        return page_of_part(self._transactions.select, _PARTS[part], cursor, limit)

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
                + load_rows(tx, CODEC, records, _UNUSED_LOCK)
                + tx.insert("log", LOG_TYPES, map(row_of_log_line, of_kind(records, LogLine)), NEW)
                + sum(self._load_queue(tx, record) for record in of_kind(records, QueueRecord))
            )

    def _load_jobs(self, tx: Transaction, jobs: Sequence[Job]) -> int:
        known = {job.id for job in self._listing.get(tx.connection, [job.id for job in jobs])}
        fresh = fresh_jobs(jobs, known)
        self._adder.insert(tx, fresh)
        return len(fresh)

    def _load_queue(self, tx: Transaction, queue: QueueRecord) -> bool:
        here = self._queue(tx.connection, queue.name)
        paused = f"INSERT OR REPLACE INTO {self._ns}_queue VALUES (?, 1)"
        return load_queue(queue, here, tx.counts, lambda: tx.connection.execute(paused, (queue.name,)))
