"""Keeps queues and their counters, nodes, logs and locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.jobs.series import buckets_of, minutes_within
from rota.model.lock import LockState, decide_lock
from rota.store.shared.changing import Counts
from rota.store.shared.sql_codec import log_line_from
from rota.store.shared.unpacking import node_from
from rota.store.sqlite import clock
from rota.store.sqlite.codec import numbers_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from rota.model.jobs.series import Bucket
    from rota.model.lock import LockAct
    from rota.store.contract import LogLine, Node, QueueInfo
    from rota.store.sqlite.transaction import Transaction, Transactions


class Operations:
    """What one namespace keeps for its operators."""

    def __init__(self, namespace: str, transactions: Transactions) -> None:
        self._transactions = transactions
        self._ns = namespace
        self._jobs = f"{namespace}_job"

    # Queues and counters.

    def pause_queue(self, queue: str, *, paused: bool) -> None:
        with self._transactions.work("pause") as tx:
            tx.notify("jobs")
            tx.connection.execute(f"INSERT OR REPLACE INTO {self._ns}_queue VALUES (?, ?)", (queue, int(paused)))

    def list_queues(self) -> list[QueueInfo]:
        with self._transactions.read() as connection:
            paused = self.paused(connection)
            return self.counters(connection).infos(paused, lambda name: self._oldest_ready(connection, name))

    def read_series(self, start: int, end: int) -> list[Bucket]:
        minutes = minutes_within(start, end)
        query = f"SELECT minute, numbers FROM {self._ns}_series WHERE minute >= ? AND minute < ?"
        with self._transactions.read() as connection:
            rows = connection.execute(query, (minutes.start, minutes.stop)).fetchall()
        return buckets_of((minute, numbers_of(numbers)) for minute, numbers in rows)

    def paused(self, connection: sqlite3.Connection) -> set[str]:
        rows = connection.execute(f"SELECT name FROM {self._ns}_queue WHERE is_paused")
        return {name for (name,) in rows}

    def counters(self, connection: sqlite3.Connection) -> Counts:
        rows = connection.execute(f"SELECT queue, name, n FROM {self._ns}_count")
        return Counts({(queue, name): number for queue, name, number in rows})

    def _oldest_ready(self, connection: sqlite3.Connection, queue: str) -> int | None:
        """Since when the first ready job waits: one look per priority that is in use, never at all jobs."""
        ready = f"FROM {self._jobs} WHERE state = 'queued' AND queue = :queue"
        row = connection.execute(
            f"WITH RECURSIVE used(p) AS (SELECT max(priority) {ready} UNION ALL "
            f"SELECT (SELECT max(priority) {ready} AND priority < p) FROM used WHERE p IS NOT NULL) "
            f"SELECT min((SELECT coalesce(queued_at, run_at) {ready} AND priority = p ORDER BY seq LIMIT 1)) FROM used",
            {"queue": queue},
        ).fetchone()
        return row[0] if row else None

    # Nodes.

    def record_heartbeat(self, node: Node, now: int | None) -> int:
        with self._transactions.write(
            "record_heartbeat", now
        ) as tx:  # its instant: a wait for the lock delays no clock
            data = msgspec.json.encode(msgspec.structs.replace(node, beat_at=tx.now)).decode()
            tx.connection.execute(f"INSERT OR REPLACE INTO {self._ns}_node VALUES (?, ?, ?)", (node.id, tx.now, data))
        return tx.now

    def list_nodes(self) -> list[Node]:
        with self._transactions.read() as connection:
            rows = connection.execute(f"SELECT id, data FROM {self._ns}_node ORDER BY id")
            return [node_from(node_id, data) for node_id, data in rows]

    def forget_node(self, node_id: str) -> None:
        with self._transactions.write("forget") as tx:
            tx.connection.execute(f"DELETE FROM {self._ns}_node WHERE id = ?", (node_id,))

    # Logs.

    def append_logs(self, lines: Sequence[LogLine]) -> None:
        rows = [(line.job_id, line.job_id, line.at, line.level, line.text, line.job_id) for line in lines]
        last = f"SELECT max(number) FROM {self._ns}_log WHERE job_id = ?"
        with self._transactions.write("log") as tx:
            tx.connection.executemany(
                f"INSERT INTO {self._ns}_log (job_id, number, at, level, text) "
                f"SELECT ?, 1 + coalesce(({last}), 0), ?, ?, ? "
                f"WHERE EXISTS (SELECT 1 FROM {self._jobs} WHERE id = ?)",
                rows,
            )

    def list_logs(self, job_id: str, after: int, start: int | None, end: int | None, limit: int) -> list[LogLine]:
        with self._transactions.read() as connection:
            rows = connection.execute(
                f"SELECT job_id, number, at, level, text FROM {self._ns}_log "
                "WHERE job_id = ? AND number > ? AND (? IS NULL OR at >= ?) AND (? IS NULL OR at < ?) "
                "ORDER BY number LIMIT ?",
                (job_id, after, start, start, end, end, limit),
            )
            return [log_line_from(row) for row in rows]

    # Locks, which go by the lease clock: no wall clock can move it.

    def change_lock(self, name: str, act: LockAct, token: str, ttl: int, now: int | None) -> int | None:
        with self._transactions.write("lock", is_work=act == "acquire") as tx:
            at, boot = clock.lease_now(now)
            number, after = decide_lock(self._lock(tx, name, boot), act, token, ttl, at)
            if after is not None:
                row = (name, after.token, after.until, boot, after.number)
                tx.connection.execute(f"INSERT OR REPLACE INTO {self._ns}_lock VALUES (?, ?, ?, ?, ?)", row)
            return number

    def _lock(self, tx: Transaction, name: str, boot: str) -> LockState:
        """A lock of an earlier boot has expired. Its term is not kept: nobody can set the lease clock."""
        query = f"SELECT token, until, boot, number FROM {self._ns}_lock WHERE name = ?"
        row = tx.connection.execute(query, (name,)).fetchone()
        if row is None:
            return LockState()
        token, until, of_boot, number = row
        return LockState(token=token, until=until if of_boot == boot else 0, number=number)
