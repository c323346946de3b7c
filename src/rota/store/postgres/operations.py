"""What operators see and keep: queues and counters, nodes, logs, locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.clock_repair import TOLERANCE
from rota.model.state import FINAL, State
from rota.store.contract import LogLine, Node, QueueInfo
from rota.store.postgres.codec import text_of
from rota.store.postgres.transaction import TALLIES
from rota.store.shared.counting import TOTAL, Counts
from rota.store.shared.unpacking import node_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.postgres.transaction import Transaction

_SUMS = ", ".join(f"sum({name})::bigint" for name in TALLIES)


class Queues:
    """One namespace's queues, in numbers that are kept and not counted."""

    def pause(self, tx: Transaction, queue: str, *, paused: bool) -> None:
        if paused:
            tx.run("INSERT INTO {ns}.paused_queue VALUES (%s) ON CONFLICT DO NOTHING", (queue,))
        else:
            tx.run("DELETE FROM {ns}.paused_queue WHERE name = %s", (queue,))

    def infos(self, tx: Transaction) -> list[QueueInfo]:
        counts, paused = self.kept(tx), self.paused(tx)
        names = sorted(paused | counts.queues())
        oldest = self._oldest(tx, names) if names else {}
        return [counts.info(name, is_paused=name in paused, oldest_at=oldest.get(name)) for name in names]

    def paused(self, tx: Transaction) -> set[str]:
        return {name for (name,) in tx.rows("SELECT name FROM {ns}.paused_queue")}

    def kept(self, tx: Transaction) -> Counts:
        """The counters, over all who add to them."""
        rows = tx.rows(f"SELECT queue, {_SUMS} FROM {{ns}}.tally GROUP BY queue")
        return Counts(
            {
                (queue, name.replace("total_", TOTAL)): number
                for queue, *numbers in rows
                for name, number in zip(TALLIES, numbers, strict=True)
            }
        )

    def ended(self, tx: Transaction) -> int:
        states = " + ".join(f"coalesce(sum({state.value}), 0)" for state in sorted(FINAL))
        return int(tx.rows(f"SELECT ({states})::bigint FROM {{ns}}.tally")[0][0])

    def recount(self, tx: Transaction) -> dict[str, int]:
        """How far the counters are from a fresh count; both are read at one instant."""
        rows = tx.rows(
            "SELECT queue, 'queued' FROM {ns}.ready UNION ALL SELECT queue, 'scheduled' FROM {ns}.later UNION ALL "
            "SELECT queue, 'held' FROM {ns}.held UNION ALL SELECT queue, 'running' FROM {ns}.running UNION ALL "
            "SELECT queue, state FROM {ns}.finished"
        )
        return self.kept(tx).differences((queue, State(state)) for queue, state in rows)

    def fold(self, tx: Transaction) -> None:
        """Add the rows that callers' transactions left to the common one."""
        tx.run(
            "WITH gone AS (DELETE FROM {ns}.tally WHERE slot > 1000 AND (queue, slot) IN (SELECT queue, slot "
            "FROM {ns}.tally WHERE slot > 1000 LIMIT 1000 FOR UPDATE SKIP LOCKED) RETURNING *) "
            f"INSERT INTO {{ns}}.tally AS t (queue, slot, {', '.join(TALLIES)}) "
            f"SELECT queue, 0, {_SUMS} FROM gone GROUP BY queue ORDER BY queue "
            "ON CONFLICT (queue, slot) DO UPDATE SET " + ", ".join(f"{n} = t.{n} + excluded.{n}" for n in TALLIES)
        )

    def _oldest(self, tx: Transaction, names: Sequence[str]) -> dict[str, int]:
        """Since when the first in line waits: one look per priority that is in use, never at the whole line."""
        rows = tx.rows(
            "SELECT q.name, (WITH RECURSIVE used (rank) AS ("
            "(SELECT r.rank FROM {ns}.ready r WHERE r.queue = q.name ORDER BY r.rank LIMIT 1) UNION ALL "
            "SELECT (SELECT r.rank FROM {ns}.ready r WHERE r.queue = q.name AND r.rank > u.rank "
            "ORDER BY r.rank LIMIT 1) FROM used u WHERE u.rank IS NOT NULL) "
            "SELECT min((SELECT coalesce(r.queued_at, r.run_at) FROM {ns}.ready r "
            "WHERE r.queue = q.name AND r.rank = u.rank ORDER BY r.seq LIMIT 1)) FROM used u) "
            "FROM unnest(%s::text[]) AS q (name)",
            (list(names),),
        )
        return {name: at for name, at in rows if at is not None}


class Nodes:
    """One namespace's nodes."""

    def beat(self, tx: Transaction, node: Node, now: int | None) -> int:
        """The instant is written beside the node's record, which carries none of its own."""
        data = msgspec.json.encode(node).decode()
        row = tx.row(
            "INSERT INTO {ns}.node VALUES (%s, coalesce(%s::bigint, {ns}.micros()), %s) "
            "ON CONFLICT (id) DO UPDATE SET beat_at = excluded.beat_at, data = excluded.data RETURNING beat_at",
            (node.id, now, data),
        )
        return int(row[0]) if row else 0

    def all(self, tx: Transaction) -> list[Node]:
        rows = tx.rows("SELECT id, data, beat_at FROM {ns}.node ORDER BY id")
        return [node_from(node_id, data, beat_at) for node_id, data, beat_at in rows]

    def forget(self, tx: Transaction, node_id: str) -> None:
        tx.run("DELETE FROM {ns}.node WHERE id = %s", (node_id,))

    def prune(self, tx: Transaction, before: int) -> int:
        return tx.run("DELETE FROM {ns}.node WHERE beat_at <= %s", (before,))


class Logs:
    """One namespace's log lines. A job that is going away takes all of them along: its row is locked meanwhile."""

    def append(self, tx: Transaction, lines: Sequence[LogLine]) -> None:
        tx.run(
            "INSERT INTO {ns}.log (seq, number, at, level, text) "
            "SELECT l.seq, nextval('{ns}.log_number'), l.at, l.level, l.text FROM ("
            "SELECT j.seq, w.at, w.level, w.text FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::text[]) "
            "WITH ORDINALITY AS w (id, at, level, text, nth) JOIN {ns}.job j ON j.id = w.id "
            "ORDER BY w.nth FOR KEY SHARE OF j) l",
            (
                [line.job_id for line in lines],
                [line.at for line in lines],
                [line.level for line in lines],
                [text_of(line.text) for line in lines],
            ),
        )

    def of(
        self, tx: Transaction, job_id: str, after: int, start: int | None, end: int | None, limit: int
    ) -> list[LogLine]:
        rows = tx.rows(
            "SELECT g.number, g.at, g.level, g.text FROM {ns}.log g JOIN {ns}.job j ON j.seq = g.seq WHERE j.id = %s "
            "AND g.number > %s AND g.at >= coalesce(%s::bigint, g.at) AND (%s::bigint IS NULL OR g.at < %s::bigint) "
            "ORDER BY g.number LIMIT %s",
            (job_id, after, start, end, end, limit),
        )
        return [LogLine(job_id=job_id, number=row[0], at=row[1], level=row[2], text=row[3]) for row in rows]


class Locks:
    """One namespace's locks, each verb one statement that compares and sets."""

    def acquire(self, tx: Transaction, name: str, token: str, ttl: int, now: int | None) -> int | None:
        row = tx.row(
            "WITH clock AS (SELECT coalesce(%s::bigint, {ns}.micros()) AS now) "
            "INSERT INTO {ns}.lock AS l (name, token, until, number, ttl) SELECT %s, %s, now + %s, 1, %s FROM clock "
            "ON CONFLICT (name) DO UPDATE SET token = excluded.token, until = excluded.until, number = l.number "
            "+ (l.token <> excluded.token OR l.until <= (SELECT now FROM clock))::int, ttl = excluded.ttl "
            "WHERE l.token = excluded.token OR l.until <= (SELECT now FROM clock) RETURNING number",
            (now, name, token, ttl, ttl),
        )
        if row is None:
            self._bound(tx, name, now)
        return int(row[0]) if row else None

    def _bound(self, tx: Transaction, name: str, now: int | None) -> None:
        """As the model's lock_end says, of a lock that another has."""
        tx.run(
            "UPDATE {ns}.lock SET until = c.now + ttl FROM (SELECT coalesce(%s::bigint, {ns}.micros()) AS now) c "
            "WHERE name = %s AND until > c.now + ttl + %s",
            (now, name, TOLERANCE),
        )

    def extend(self, tx: Transaction, name: str, token: str, ttl: int, now: int | None) -> bool:
        return bool(
            tx.run(
                "UPDATE {ns}.lock SET until = c.now + %s, ttl = %s "
                "FROM (SELECT coalesce(%s::bigint, {ns}.micros()) AS now) c "
                "WHERE name = %s AND token = %s AND until > c.now",
                (ttl, ttl, now, name, token),
            )
        )

    def release(self, tx: Transaction, name: str, token: str, now: int | None) -> bool:
        """The number stays: the next owner's is higher."""
        return bool(
            tx.run(
                "UPDATE {ns}.lock SET token = '', until = 0 "
                "WHERE name = %s AND token = %s AND until > coalesce(%s::bigint, {ns}.micros())",
                (name, token, now),
            )
        )
