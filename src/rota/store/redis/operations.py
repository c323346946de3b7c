"""Queues and their counters, nodes, logs and locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.clock_repair import TOLERANCE
from rota.store.redis.codec import binary, jobs_of, log_line_of, pack_log_line
from rota.store.shared.counting import Counts
from rota.store.shared.unpacking import node_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.contract import LogLine, Node, QueueInfo
    from rota.store.redis.guarded_writer import GuardedWriter

LOG_STEP = 1_000  # log lines read in one call if a time is asked for


class Operations:
    """The verbs of contract.operations."""

    def __init__(self, writer: GuardedWriter) -> None:
        self._writer = writer
        self._connection = writer.connection

    # Queues.

    def pause_queue(self, queue: str, *, paused: bool) -> None:
        command = ["HSET", "paused", queue, 1] if paused else ["HDEL", "paused", queue]
        self._writer.write(command, channels=["jobs"], is_work=True)

    def list_queues(self) -> list[QueueInfo]:
        rows, paused, queues, raw = self._connection.call("queues").body
        counts = counts_of(rows)
        is_paused = {queue.decode() for queue in paused}
        oldest: dict[str, int] = {}  # since when the first ready job of each queue, of any priority, has been waiting
        for queue, job in zip([queue.decode() for queue in queues], jobs_of(raw), strict=True):
            since = job.queued_at or job.run_at
            oldest[queue] = min(since, oldest.get(queue, since))
        return [
            counts.info(name, is_paused=name in is_paused, oldest_at=oldest.get(name))
            for name in sorted(is_paused | counts.queues())
        ]

    # Nodes.

    def beat(self, node: Node, now: int | None) -> int:
        return self._connection.call("heartbeat", now=now, id=node.id, node=msgspec.json.encode(node).decode()).now

    def list_nodes(self) -> list[Node]:
        rows, beats = self._writer.read(["HGETALL", "node"], ["ZRANGE", "beats", 0, -1, "WITHSCORES"])
        beat_at = dict(zip(beats[::2], beats[1::2], strict=True))
        nodes = [
            node_from(name.decode(), packed, int(float(beat_at.get(name, 0))))
            for name, packed in zip(rows[::2], rows[1::2], strict=True)
        ]
        return sorted(nodes, key=lambda node: node.id)

    def forget_node(self, node_id: str) -> None:
        self._writer.write(["HDEL", "node", node_id], ["ZREM", "beats", node_id])

    # Logs.

    def append_logs(self, lines: Sequence[LogLine]) -> None:
        by_job: dict[str, list[str | msgspec.Raw]] = {}
        for line in lines:
            by_job.setdefault(line.job_id, [line.job_id]).append(binary(pack_log_line(line)))
        if by_job:
            self._connection.call("log", logs=list(by_job.values()))

    def list_logs(self, job_id: str, after: int, start: int | None, end: int | None, limit: int) -> list[LogLine]:
        step = limit if start is None and end is None else max(limit, LOG_STEP)
        shown: list[LogLine] = []
        while len(shown) < limit:
            (rows,) = self._writer.read(["ZRANGEBYSCORE", f"log:{job_id}", f"({after}", "+inf", "LIMIT", 0, step])
            lines = [log_line_of(job_id, row) for row in rows]
            shown += [line for line in lines if (start is None or line.at >= start) and (end is None or line.at < end)]
            if len(rows) < step:
                break
            after = lines[-1].number
        return shown[:limit]

    # Locks.

    def acquire_lock(self, name: str, token: str, ttl: int, now: int | None) -> int | None:
        return self._lock("acquire", name, token, ttl, now) or None

    def extend_lock(self, name: str, token: str, ttl: int, now: int | None) -> bool:
        return self._lock("extend", name, token, ttl, now) > 0

    def release_lock(self, name: str, token: str, now: int | None) -> bool:
        return self._lock("release", name, token, 0, now) > 0

    def _lock(self, act: str, name: str, token: str, ttl: int, now: int | None) -> int:
        is_work = act == "acquire"
        request = {"act": act, "lock": name, "token": token, "ttl": ttl, "tolerance": TOLERANCE}
        return int(self._connection.call("lock", now=now, is_work=is_work, **request).body)


def counts_of(rows: Sequence[bytes]) -> Counts:
    """The counters of all queues."""
    counts: dict[tuple[str, str], int] = {}
    for field, number in zip(rows[::2], rows[1::2], strict=True):
        queue, _, name = field.decode().rpartition("|")
        counts[queue, name] = int(number)
    return Counts(counts)
