"""Keeps queues and their counters, nodes, logs and locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.jobs.job import State
from rota.model.jobs.series import MINUTE, bucket_of
from rota.store.contract import LARGEST_PAGE
from rota.store.memory.connection import Database

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.model.jobs.series import Bucket
    from rota.model.lock import LockAct
    from rota.store.contract import LogLine, Node, QueueInfo


class Operations(Database):
    """What the store keeps for its operators."""

    def pause_queue(self, queue: str, *, paused: bool) -> None:
        with self._lock:
            self._check_open()
            (self._paused.add if paused else self._paused.discard)(queue)
        self._notifier.notify("jobs")

    def list_queues(self, *, now: int | None = None) -> list[QueueInfo]:
        del now
        with self._lock:
            names = sorted(self._paused | self._counts.queues())
            return [
                self._counts.info(name, is_paused=name in self._paused, oldest_at=self._oldest(name)) for name in names
            ]

    def read_series(self, start: int, end: int) -> list[Bucket]:
        with self._lock:
            minutes = sorted(minute for minute in self._series if start <= minute * MINUTE < end)
            return [bucket_of(minute, self._series[minute]) for minute in minutes]

    def record_heartbeat(self, node: Node, *, now: int | None = None) -> int:
        with self._lock:
            at = self._at(now)
            self._nodes[node.id] = msgspec.structs.replace(node, beat_at=at)
            return at

    def list_nodes(self) -> list[Node]:
        with self._lock:
            return sorted(self._nodes.values(), key=lambda node: node.id)

    def forget_node(self, node_id: str) -> None:
        with self._lock:
            self._nodes.pop(node_id, None)

    def append_logs(self, lines: Sequence[LogLine]) -> None:
        with self._lock:
            for line in (line for line in lines if line.job_id in self._jobs):
                self._logs.append(line)

    def list_logs(
        self,
        job_id: str,
        *,
        after: int = 0,
        start: int | None = None,
        end: int | None = None,
        limit: int = LARGEST_PAGE,
    ) -> list[LogLine]:
        with self._lock:
            lines = [line for line in self._logs.of(job_id) if line.number > after]
        lines = [line for line in lines if start is None or line.at >= start]
        return [line for line in lines if end is None or line.at < end][:limit]

    def change_lock(self, name: str, act: LockAct, token: str, ttl: int = 0, *, now: int | None = None) -> int | None:
        with self._lock:
            if act == "acquire":
                self._check_open()
            return self._locks.change(name, act, token, ttl, self._at(now))

    def _oldest(self, queue: str) -> int | None:
        first: dict[int, Job] = {}  # in line, by priority
        for job in self._jobs.values():
            if job.state is State.QUEUED and job.queue == queue:
                first[job.priority] = min(job, first.get(job.priority, job), key=lambda other: other.seq)
        return min((job.queued_at or job.run_at for job in first.values()), default=None)
