"""How a store is left for another: it is sealed, gives out all that it holds, and the other takes it in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from rota.model.job import Job
from rota.model.occurrence import Occurrence
from rota.model.schedule import Schedule
from rota.store.contract.values import LogLine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.contract.values import Page

Part = Literal["queues", "locks", "schedules", "occurrences", "jobs", "logs"]


class Seal(Struct, frozen=True, kw_only=True):
    """That a store is being left, and for which other one."""

    target: str  # for people: no secrets
    is_done: bool = False  # all was copied; until then it may be unsealed without loss
    at: int = 0


class QueueRecord(Struct, frozen=True, kw_only=True):
    """What a queue is beside its jobs."""

    name: str
    is_paused: bool = False
    totals: dict[str, int] = {}


class LockRecord(Struct, frozen=True, kw_only=True):
    """A lock's name and its last fencing number, which must go on rising."""

    name: str
    number: int


Record = QueueRecord | LockRecord | Schedule | Occurrence | Job | LogLine


class MovingVerbs:
    """Moving: everything that a store holds, out of one and into another."""

    def seal(self, seal: Seal | None) -> None:
        """Take no more work (None: take it again). On a sealed store add_jobs, edit_schedules, fire, and an exchange
        that wants jobs raise StoreMoved; what runs may still be settled, extended, rescued and logged."""
        raise NotImplementedError

    def sealed(self) -> Seal | None:
        raise NotImplementedError

    def dump(self, part: Part, *, cursor: str | None = None, limit: int = 500) -> Page[Record]:
        """Everything of one part as it is kept, in an order that a load keeps: jobs as they stand in line,
        occurrences only where no job is their record."""
        raise NotImplementedError

    def load(self, records: Sequence[Record]) -> int:
        """Take records as they are, and count them; what is there already is left alone. Says how many were new."""
        raise NotImplementedError
