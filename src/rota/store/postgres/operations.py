"""Keeps queues and their counters, nodes, logs and locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.jobs.job import State
from rota.model.jobs.series import buckets_of, minutes_within
from rota.model.lock import LockState, decide_lock
from rota.store.contract import LogLine, Node, QueueInfo
from rota.store.postgres.codec import text_of
from rota.store.postgres.transaction import COUNTERS, columns_of
from rota.store.shared.changing import TOTAL, Counts
from rota.store.shared.unpacking import node_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.series import Bucket
    from rota.model.lock import LockAct
    from rota.store.postgres.connection import Database
    from rota.store.postgres.transaction import Transaction

_SUMS = ", ".join(f"sum({name})::bigint AS {name}" for name in COUNTERS)
# Since when the first ready job waits: one query per priority that is in use, never over the whole queue. The order
# names the rank, which `ready_order` alone has: in the order of positions, the jobs of all queues would be read.
_OLDEST = (
    "SELECT q.name, (WITH RECURSIVE used (rank) AS ("
    "(SELECT r.rank FROM {ns}.ready r WHERE r.queue = q.name ORDER BY r.rank LIMIT 1) UNION ALL "
    "SELECT (SELECT r.rank FROM {ns}.ready r WHERE r.queue = q.name AND r.rank > u.rank "
    "ORDER BY r.rank LIMIT 1) FROM used u WHERE u.rank IS NOT NULL) "
    "SELECT min((SELECT coalesce(r.queued_at, r.run_at) FROM {ns}.ready r "
    "WHERE r.queue = q.name AND r.rank >= u.rank ORDER BY r.rank, r.seq LIMIT 1)) FROM used u) "
    "FROM unnest(%s::text[]) AS q (name)"
)
# A job that is being deleted takes all its log lines with it: its row is locked meanwhile.
_APPEND_LOGS = (
    "INSERT INTO {ns}.log (seq, number, at, level, text) "
    "SELECT l.seq, nextval('{ns}.log_number'), l.at, l.level, l.text FROM ("
    "SELECT j.seq, w.at, w.level, w.text FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::text[]) "
    "WITH ORDINALITY AS w (id, at, level, text, nth) JOIN {ns}.job j ON j.id = w.id "
    "ORDER BY w.nth FOR KEY SHARE OF j) l"
)
_LOGS = (
    "SELECT g.number, g.at, g.level, g.text FROM {ns}.log g JOIN {ns}.job j ON j.seq = g.seq WHERE j.id = %s "
    "AND g.number > %s AND g.at >= coalesce(%s::bigint, g.at) AND (%s::bigint IS NULL OR g.at < %s::bigint) "
    "ORDER BY g.number LIMIT %s"
)
_ADD_LOCK = "INSERT INTO {ns}.lock (token, until, number, ttl, name) VALUES (%s, %s, %s, %s, %s)"
_WRITE_LOCK = "UPDATE {ns}.lock SET token = %s, until = %s, number = %s, ttl = %s WHERE name = %s"


class Operations:
    """What operators of one namespace see and change."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # Queues and counters.

    def pause_queue(self, queue: str, *, paused: bool) -> None:
        self._database.write("pause", lambda tx, _: write_pause(tx, queue, paused=paused), 0)

    def list_queues(self) -> list[QueueInfo]:
        return self._database.read(queue_infos)

    def read_series(self, start: int, end: int) -> list[Bucket]:
        minutes = minutes_within(start, end)
        query = "SELECT minute, numbers FROM {ns}.series WHERE minute >= %s AND minute < %s"
        return buckets_of(self._database.select(query, (minutes.start, minutes.stop)))

    # Nodes.

    def record_heartbeat(self, node: Node, now: int | None) -> int:
        """The instant is written beside the node's record, which carries none of its own."""
        statement = (
            "INSERT INTO {ns}.node VALUES (%s, coalesce(%s::bigint, {ns}.micros()), %s) "
            "ON CONFLICT (id) DO UPDATE SET beat_at = excluded.beat_at, data = excluded.data RETURNING beat_at"
        )
        ((beat_at,),) = self._database.select(statement, (node.id, now, msgspec.json.encode(node).decode()))
        return int(beat_at)

    def list_nodes(self) -> list[Node]:
        rows = self._database.select("SELECT id, data, beat_at FROM {ns}.node ORDER BY id")
        return [node_from(*row) for row in rows]

    def forget_node(self, node_id: str) -> None:
        self._database.call(lambda tx: tx.run("DELETE FROM {ns}.node WHERE id = %s", (node_id,)))

    # Logs.

    def append_logs(self, lines: Sequence[LogLine]) -> None:
        rows = [(line.job_id, line.at, line.level, text_of(line.text)) for line in lines]
        if rows:
            self._database.call(lambda tx: tx.run(_APPEND_LOGS, columns_of(rows)))

    def list_logs(self, job_id: str, after: int, start: int | None, end: int | None, limit: int) -> list[LogLine]:
        rows = self._database.select(_LOGS, (job_id, after, start, end, end, limit))
        return [LogLine(job_id=job_id, number=row[0], at=row[1], level=row[2], text=row[3]) for row in rows]

    # Locks, each verb one statement that compares and sets.

    def change_lock(self, name: str, act: LockAct, token: str, ttl: int, now: int | None) -> int | None:
        def change(tx: Transaction, at: int) -> int | None:
            row = tx.row("SELECT token, until, number, ttl FROM {ns}.lock WHERE name = %s FOR UPDATE", (name,))
            found = LockState() if row is None else LockState(token=row[0], until=row[1], number=row[2], ttl=row[3])
            number, after = decide_lock(found, act, token, ttl, at)
            if after is not None:
                values = (after.token, after.until, after.number, after.ttl, name)
                tx.run(_ADD_LOCK if row is None else _WRITE_LOCK, values)
            return number

        return self._database.write("lock", change, now, is_allowed_when_sealed=act != "acquire")


def write_pause(tx: Transaction, queue: str, *, paused: bool) -> None:
    if paused:
        tx.run("INSERT INTO {ns}.paused_queue VALUES (%s) ON CONFLICT DO NOTHING", (queue,))
    else:
        tx.run("DELETE FROM {ns}.paused_queue WHERE name = %s", (queue,))
    tx.notify("jobs")


def queue_infos(tx: Transaction) -> list[QueueInfo]:
    counts = counters(tx)
    paused = {name for (name,) in tx.rows("SELECT name FROM {ns}.paused_queue")}
    oldest: dict[str, int | None] = dict(tx.rows(_OLDEST, (sorted(paused | counts.queues()),)))
    return counts.infos(paused, oldest.get)


def merge_counters(tx: Transaction) -> None:
    """Add the rows that callers' transactions left to the common one."""
    tx.rows(
        "WITH gone AS (DELETE FROM {ns}.counter WHERE slot > 1000 AND (queue, slot) IN (SELECT queue, slot "
        "FROM {ns}.counter WHERE slot > 1000 LIMIT 1000 FOR UPDATE SKIP LOCKED) RETURNING *) "
        f"SELECT {{ns}}.count(0, s.queue, {', '.join(COUNTERS)})::text "
        f"FROM (SELECT queue, {_SUMS} FROM gone GROUP BY queue ORDER BY queue) s"
    )


def counters(tx: Transaction) -> Counts:
    """The counters, summed over all slots."""
    rows = tx.rows(f"SELECT queue, {_SUMS} FROM {{ns}}.counter GROUP BY queue")
    return Counts(
        {
            (queue, name.replace("total_", TOTAL)): number
            for queue, *numbers in rows
            for name, number in zip(COUNTERS, numbers, strict=True)
        }
    )


def count_differences(tx: Transaction) -> dict[str, int]:
    rows = tx.rows(
        "SELECT queue, 'queued' FROM {ns}.ready UNION ALL SELECT queue, 'scheduled' FROM {ns}.later UNION ALL "
        "SELECT queue, 'held' FROM {ns}.held UNION ALL SELECT queue, 'running' FROM {ns}.running UNION ALL "
        "SELECT queue, state FROM {ns}.finished"
    )
    return counters(tx).differences((queue, State(state)) for queue, state in rows)


# What happened minute by minute: one row for each minute and counter slot.

MOST_MERGED = 1_000  # rows in one round of upkeep
MERGE_SERIES = (  # minutes that are over become one row each, for which no worker waits
    "WITH gone AS (DELETE FROM {ns}.series WHERE (minute, slot) IN (SELECT minute, slot FROM {ns}.series "
    f"WHERE minute < %s AND slot <> 0 LIMIT {MOST_MERGED} FOR UPDATE SKIP LOCKED) RETURNING minute, numbers) "
    "SELECT {ns}.add_runs(0, g.minute, g.numbers) FROM (SELECT * FROM gone ORDER BY minute) g"
)
