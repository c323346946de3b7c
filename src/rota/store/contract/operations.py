"""What a store keeps for those who operate it: queues, nodes, logs, locks, counters and upkeep."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rota.store.contract.values import LARGEST_PAGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.contract.values import LogLine, Node, Pruned, QueueInfo, Retention


class QueueVerbs(ABC):
    """Queues: paused, resumed, and in numbers."""

    @abstractmethod
    def pause_queue(self, queue: str, *, paused: bool) -> None: ...

    @abstractmethod
    def list_queues(self, *, now: int | None = None) -> list[QueueInfo]: ...


class NodeVerbs(ABC):
    """Nodes: which processes are alive."""

    @abstractmethod
    def beat(self, node: Node, *, now: int | None = None) -> int:
        """Say that a node is alive; answers with the store's clock."""

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
    def acquire_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> int | None:
        """Take a free or lapsed lock: its fencing number. None where another token has it.

        A lock that ends later than its owner's term allows was taken by a clock that stood ahead. It then ends one term
        from now (the model's `lock_end`), except where Features.has_lease_clock.
        """

    @abstractmethod
    def extend_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> bool:
        """Keep a lock that this token still has; False where it was lost."""

    @abstractmethod
    def release_lock(self, name: str, token: str, *, now: int | None = None) -> bool:
        """Give a lock back; False where this token no longer had it."""


class UpkeepVerbs(ABC):
    """Upkeep: what keeps a store small and its counters true."""

    @abstractmethod
    def recount(self) -> dict[str, int]:
        """How far the kept counters are from a fresh count, where they differ (for checks)."""

    @abstractmethod
    def prune(self, retention: Retention, limit: int, *, now: int | None = None) -> Pruned:
        """Remove a bounded batch of what was kept long enough.

        Ended jobs go when their state's time is over; then, where more than `most_finished` would still be kept, the
        oldest of the others, until that many are. A job whose key still holds stays and counts: the next oldest goes
        in its place. Records of occurrences and silent nodes go by their own times and numbers.
        """
