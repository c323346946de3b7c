"""Queues and their counters, nodes, logs and locks."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from rota.model.jobs.series import NAMES, buckets_of, minutes_within
from rota.model.lock import decide_lock
from rota.store.redis.codec import binary, jobs_of, lock_of, log_line_of, pack_lock, pack_log_line, pairs_of
from rota.store.redis.guarded_write import GuardedWrite
from rota.store.shared.batching import grouped
from rota.store.shared.changing import Counts
from rota.store.shared.unpacking import node_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.series import Bucket
    from rota.model.lock import LockAct
    from rota.store.contract import LogLine, Node, QueueInfo
    from rota.store.redis.guarded_write import GuardedWriter

LOG_STEP = 1_000  # log lines read in one call if a time is asked for


class Operations:
    """The verbs of contract.operations."""

    def __init__(self, writer: GuardedWriter) -> None:
        self._writer = writer
        self._connection = writer.connection

    # Queues.

    def pause_queue(self, queue: str, *, paused: bool) -> None:
        command = ["HSET", "paused", queue, 1] if paused else ["HDEL", "paused", queue]
        self._writer.write(command, ["NOTIFY", "jobs"], is_work=True)

    def list_queues(self) -> list[QueueInfo]:
        rows, paused, queues, raw = self._connection.call("queues").body
        oldest: dict[str, int] = {}  # since when the first ready job of each queue, of any priority, has been waiting
        for queue, job in zip([queue.decode() for queue in queues], jobs_of(raw), strict=True):
            since = job.queued_at or job.run_at
            oldest[queue] = min(since, oldest.get(queue, since))
        return counts_of(rows).infos({queue.decode() for queue in paused}, oldest.get)

    def read_series(self, start: int, end: int) -> list[Bucket]:
        within = minutes_within(start, end)
        (minutes,) = self._writer.read(["ZRANGEBYSCORE", "series", within.start, f"({within.stop}"])
        rows = self._writer.read(*(["HMGET", f"series:{int(minute)}", *NAMES] for minute in minutes))
        return buckets_of(
            (int(minute), [int(number or 0) for number in row]) for minute, row in zip(minutes, rows, strict=True)
        )

    # Nodes.

    def record_heartbeat(self, node: Node, now: int | None) -> int:
        return self._connection.call("heartbeat", now=now, id=node.id, node=msgspec.json.encode(node).decode()).now

    def list_nodes(self) -> list[Node]:
        rows, beats = self._writer.read(["HGETALL", "node"], ["ZRANGE", "beats", 0, -1, "WITHSCORES"])
        beat_at = dict(pairs_of(beats))
        nodes = [node_from(name.decode(), row, int(float(beat_at.get(name, 0)))) for name, row in pairs_of(rows)]
        return sorted(nodes, key=lambda node: node.id)

    def forget_node(self, node_id: str) -> None:
        self._writer.write(["HDEL", "node", node_id], ["ZREM", "beats", node_id])

    # Logs.

    def append_logs(self, lines: Sequence[LogLine]) -> None:
        by_job = grouped(lines, attrgetter("job_id")).items()
        if by_job:
            self._writer.write(
                *(["LOG", job_id, [binary(pack_log_line(line)) for line in some]] for job_id, some in by_job)
            )

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

    def change_lock(self, name: str, act: LockAct, token: str, ttl: int, now: int | None) -> int | None:
        is_work = act == "acquire"
        read = ["HGET", "lock", name]

        def decided() -> tuple[GuardedWrite | None, int | None]:
            write = GuardedWrite(self._writer, self._writer.snapshot((), read, now=now, is_work=is_work))
            number, after = decide_lock(lock_of(*write.read(read)), act, token, ttl, write.now)
            if after is None:
                return None, number
            write.add_command("HSET", "lock", name, binary(pack_lock(after)))
            return write, number

        return self._writer.decide_one("lock", decided, is_work=is_work)


def counts_of(rows: Sequence[bytes]) -> Counts:
    """The counters of all queues."""
    counts: dict[tuple[str, str], int] = {}
    for field, number in pairs_of(rows):
        queue, _, name = field.decode().rpartition("|")
        counts[queue, name] = int(number)
    return Counts(counts)
