"""Defines what a store keeps for its operators: queues, nodes, logs, locks, counters and upkeep."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rota.store.contract.values import LARGEST_PAGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.series import Bucket
    from rota.model.lock import LockAct
    from rota.store.contract.values import LogLine, Node, Pruned, QueueInfo, Retention


class QueueVerbs(ABC):
    """Queues: paused, resumed, and in numbers."""

    @abstractmethod
    def pause_queue(self, queue: str, *, paused: bool) -> None: ...

    @abstractmethod
    def list_queues(self, *, now: int | None = None) -> list[QueueInfo]: ...


class SeriesVerbs(ABC):
    """Series: what happened minute by minute, for charts."""

    @abstractmethod
    def read_series(self, start: int, end: int) -> list[Bucket]:
        """The minutes that begin in start <= t < end and in which runs were settled, oldest first.

        Whatever settles a run (exchange, settle_in, rescue_jobs) adds the model's `count_runs` of it to the minute of
        the store's clock, in the same write as its counters. `prune` removes the minutes outside `first_kept` and
        `last_kept`. A copy to another store leaves them behind.
        """


class NodeVerbs(ABC):
    """Nodes: which processes are alive."""

    @abstractmethod
    def record_heartbeat(self, node: Node, *, now: int | None = None) -> int:
        """Record that a node is alive. Returns the time by the store's clock."""

    @abstractmethod
    def list_nodes(self) -> list[Node]: ...

    @abstractmethod
    def forget_node(self, node_id: str) -> None: ...


class LogVerbs(ABC):
    """Logs: what jobs wrote."""

    @abstractmethod
    def append_logs(self, lines: Sequence[LogLine]) -> None: ...

    @abstractmethod
    def list_logs(
        self,
        job_id: str,
        *,
        after: int = 0,
        start: int | None = None,
        end: int | None = None,
        limit: int = LARGEST_PAGE,
    ) -> list[LogLine]:
        """A job's lines with a number above `after`, written in start <= t < end, in order."""


class LockVerbs(ABC):
    """Locks: a name, whose token has it, until when. The number rises with every new owner."""

    @abstractmethod
    def change_lock(self, name: str, act: LockAct, token: str, ttl: int = 0, *, now: int | None = None) -> int | None:
        """Acquire, extend or release a lock, as the model's `decide_lock` says. Its fencing number; None where another
        token has it, or this one no longer. A lock may end too late because a clock stood ahead; an attempt to acquire
        it then bounds it, except where Features.has_lease_clock.
        """


class UpkeepVerbs(ABC):
    """Upkeep: what keeps a store small and its counters true."""

    @abstractmethod
    def recount(self) -> dict[str, int]:
        """The differences between the stored counters and a fresh count, for checks."""

    @abstractmethod
    def prune(self, retention: Retention, limit: int, *, now: int | None = None) -> Pruned:
        """Delete a bounded batch of records whose retention is over.

        Ended jobs go when their state's time is over; then, if more than `most_finished` would still be kept, the
        oldest of the others, until that many are. A job whose key still holds stays and counts: the next oldest goes
        in its place. Records of occurrences and silent nodes go by their own times and numbers.
        """
