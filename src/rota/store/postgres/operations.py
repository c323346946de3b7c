"""Queues and their counters, nodes, logs and locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.clock_repair import TOLERANCE
from rota.model.state import FINAL, State
from rota.store.contract import LogLine, Node, QueueInfo
from rota.store.postgres.codec import text_of
from rota.store.postgres.transaction import COUNTERS, columns_of
from rota.store.shared.counting import TOTAL, Counts
from rota.store.shared.unpacking import node_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.postgres.connection import Database
    from rota.store.postgres.transaction import Transaction

_SUMS = ", ".join(f"sum({name})::bigint AS {name}" for name in COUNTERS)
# Since when the first ready job waits: one query per priority that is in use, never over the whole queue.
_OLDEST = (
    "SELECT q.name, (WITH RECURSIVE used (rank) AS ("
    "(SELECT r.rank FROM {ns}.ready r WHERE r.queue = q.name ORDER BY r.rank LIMIT 1) UNION ALL "
    "SELECT (SELECT r.rank FROM {ns}.ready r WHERE r.queue = q.name AND r.rank > u.rank "
    "ORDER BY r.rank LIMIT 1) FROM used u WHERE u.rank IS NOT NULL) "
    "SELECT min((SELECT coalesce(r.queued_at, r.run_at) FROM {ns}.ready r "
    "WHERE r.queue = q.name AND r.rank = u.rank ORDER BY r.seq LIMIT 1)) FROM used u) "
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
_ACQUIRE = (
    "WITH clock AS (SELECT coalesce(%s::bigint, {ns}.micros()) AS now) "
    "INSERT INTO {ns}.lock AS l (name, token, until, number, ttl) SELECT %s, %s, now + %s, 1, %s FROM clock "
    "ON CONFLICT (name) DO UPDATE SET token = excluded.token, until = excluded.until, number = l.number "
    "+ (l.token <> excluded.token OR l.until <= (SELECT now FROM clock))::int, ttl = excluded.ttl "
    "WHERE l.token = excluded.token OR l.until <= (SELECT now FROM clock) RETURNING number"
)
# As the model's lock_end says, of a lock that another token holds.
_BOUND = (
    "UPDATE {ns}.lock SET until = c.now + ttl FROM (SELECT coalesce(%s::bigint, {ns}.micros()) AS now) c "
    "WHERE name = %s AND until > c.now + ttl + %s"
)
_EXTEND_LOCK = (
    "UPDATE {ns}.lock SET until = c.now + %s, ttl = %s FROM (SELECT coalesce(%s::bigint, {ns}.micros()) AS now) c "
    "WHERE name = %s AND token = %s AND until > c.now"
)
_RELEASE_LOCK = (  # the number stays: the next owner's is higher
    "UPDATE {ns}.lock SET token = '', until = 0 "
    "WHERE name = %s AND token = %s AND until > coalesce(%s::bigint, {ns}.micros())"
)


class Operations:
    """What operators of one namespace see and change."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # Queues and counters.

    def pause_queue(self, queue: str, *, paused: bool) -> None:
        self._database.write("", lambda tx, _: write_pause(tx, queue, paused=paused), 0)

    def list_queues(self) -> list[QueueInfo]:
        return self._database.read(queue_infos)

    def recount(self) -> dict[str, int]:
        """How far the counters are from a fresh count; both are read at one instant."""
        return self._database.read(_differences)

    # Nodes.

    def beat(self, node: Node, now: int | None) -> int:
        """The instant is written beside the node's record, which carries none of its own."""
        statement = (
            "INSERT INTO {ns}.node VALUES (%s, coalesce(%s::bigint, {ns}.micros()), %s) "
            "ON CONFLICT (id) DO UPDATE SET beat_at = excluded.beat_at, data = excluded.data RETURNING beat_at"
        )
        values = (node.id, now, msgspec.json.encode(node).decode())
        ((beat_at,),) = self._database.call(lambda tx: tx.rows(statement, values))
        return int(beat_at)

    def list_nodes(self) -> list[Node]:
        rows = self._database.call(lambda tx: tx.rows("SELECT id, data, beat_at FROM {ns}.node ORDER BY id"))
        return [node_from(node_id, data, beat_at) for node_id, data, beat_at in rows]

    def forget_node(self, node_id: str) -> None:
        self._database.call(lambda tx: tx.run("DELETE FROM {ns}.node WHERE id = %s", (node_id,)))

    # Logs.

    def append_logs(self, lines: Sequence[LogLine]) -> None:
        rows = [(line.job_id, line.at, line.level, text_of(line.text)) for line in lines]
        if rows:
            self._database.call(lambda tx: tx.run(_APPEND_LOGS, columns_of(rows)))

    def list_logs(self, job_id: str, after: int, start: int | None, end: int | None, limit: int) -> list[LogLine]:
        rows = self._database.call(lambda tx: tx.rows(_LOGS, (job_id, after, start, end, end, limit)))
        return [LogLine(job_id=job_id, number=row[0], at=row[1], level=row[2], text=row[3]) for row in rows]

    # Locks, each verb one statement that compares and sets.

    def acquire_lock(self, name: str, token: str, ttl: int, now: int | None) -> int | None:
        def acquire(tx: Transaction, at: int) -> int | None:
            row = tx.row(_ACQUIRE, (at, name, token, ttl, ttl))
            if row is None:
                tx.run(_BOUND, (at, name, TOLERANCE))
            return row[0] if row else None

        return self._database.write("", acquire, now)

    def extend_lock(self, name: str, token: str, ttl: int, now: int | None) -> bool:
        return bool(self._database.call(lambda tx: tx.run(_EXTEND_LOCK, (ttl, ttl, now, name, token))))

    def release_lock(self, name: str, token: str, now: int | None) -> bool:
        return bool(self._database.call(lambda tx: tx.run(_RELEASE_LOCK, (name, token, now))))


def write_pause(tx: Transaction, queue: str, *, paused: bool) -> None:
    if paused:
        tx.run("INSERT INTO {ns}.paused_queue VALUES (%s) ON CONFLICT DO NOTHING", (queue,))
    else:
        tx.run("DELETE FROM {ns}.paused_queue WHERE name = %s", (queue,))
    tx.notify("jobs")


def queue_infos(tx: Transaction) -> list[QueueInfo]:
    counts = _counts(tx)
    paused = {name for (name,) in tx.rows("SELECT name FROM {ns}.paused_queue")}
    names = sorted(paused | counts.queues())
    oldest: dict[str, int | None] = dict(tx.rows(_OLDEST, (names,)))
    return [counts.info(name, is_paused=name in paused, oldest_at=oldest.get(name)) for name in names]


def ended_jobs(tx: Transaction) -> int:
    """How many ended jobs are kept."""
    states = " + ".join(f"coalesce(sum({state.value}), 0)" for state in sorted(FINAL))
    return int(tx.rows(f"SELECT ({states})::bigint FROM {{ns}}.counter")[0][0])


def merge_counters(tx: Transaction) -> None:
    """Add the rows that callers' transactions left to the common one."""
    tx.rows(
        "WITH gone AS (DELETE FROM {ns}.counter WHERE slot > 1000 AND (queue, slot) IN (SELECT queue, slot "
        "FROM {ns}.counter WHERE slot > 1000 LIMIT 1000 FOR UPDATE SKIP LOCKED) RETURNING *) "
        f"SELECT {{ns}}.count(0, s.queue, {', '.join(COUNTERS)})::text "
        f"FROM (SELECT queue, {_SUMS} FROM gone GROUP BY queue ORDER BY queue) s"
    )


def _counts(tx: Transaction) -> Counts:
    """The counters, summed over all slots."""
    rows = tx.rows(f"SELECT queue, {_SUMS} FROM {{ns}}.counter GROUP BY queue")
    return Counts(
        {
            (queue, name.replace("total_", TOTAL)): number
            for queue, *numbers in rows
            for name, number in zip(COUNTERS, numbers, strict=True)
        }
    )


def _differences(tx: Transaction) -> dict[str, int]:
    rows = tx.rows(
        "SELECT queue, 'queued' FROM {ns}.ready UNION ALL SELECT queue, 'scheduled' FROM {ns}.later UNION ALL "
        "SELECT queue, 'held' FROM {ns}.held UNION ALL SELECT queue, 'running' FROM {ns}.running UNION ALL "
        "SELECT queue, state FROM {ns}.finished"
    )
    return _counts(tx).differences((queue, State(state)) for queue, state in rows)
