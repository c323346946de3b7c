"""Defines the store as a whole: its life, its clock, its listeners, and all the verbs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rota.store.contract.jobs import JobVerbs
from rota.store.contract.moving import MovingVerbs
from rota.store.contract.operations import LockVerbs, LogVerbs, NodeVerbs, QueueVerbs, SeriesVerbs, UpkeepVerbs
from rota.store.contract.records import AuditVerbs, EntryVerbs
from rota.store.contract.schedules import ScheduleVerbs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rota.model.jobs.job import Job
    from rota.store.contract.values import Channel


class Listener(ABC):
    """Waits for the notification that new work may exist. It may come for nothing; a caller also polls."""

    @abstractmethod
    def wait(self, timeout: float) -> bool:
        """Block until a notification comes or the time is over; True if one came."""

    @abstractmethod
    def wake(self) -> None:
        """End the wait, from any thread of this process."""

    def take_claimed(self, holder: str) -> list[Job]:  # noqa: ARG002 - most stores claim for no idle worker
        """The job that the store has claimed for this idle worker since its last exchange (see `exchange`)."""
        return []

    def call_when_claimed(self, act: Callable[[], None]) -> None:  # noqa: B027 - most stores claim for no idle worker
        """Call `act` when such a job arrives, in the thread that received it, instead of ending the wait."""

    @abstractmethod
    def close(self) -> None: ...


class Store(
    JobVerbs,
    ScheduleVerbs,
    EntryVerbs,
    AuditVerbs,
    QueueVerbs,
    SeriesVerbs,
    NodeVerbs,
    LogVerbs,
    LockVerbs,
    UpkeepVerbs,
    MovingVerbs,
    ABC,
):
    """Keeps jobs, schedules, occurrences and logs."""

    path: Path | None = None  # of the file that the store is; None: it is on a server, or in this process
    namespace: str = ""  # which of several systems in one place this is; empty if a store has no namespaces

    @abstractmethod
    def open(self) -> None:
        """Connect, and create or migrate the schema if necessary."""

    def open_within(self, transaction: object) -> bool:  # noqa: ARG002 - for stores that share the caller's locks
        """Get ready for writes in a caller's transaction; whether the store is open then."""
        self.open()
        return True

    @abstractmethod
    def pending_migrations(self) -> list[str]:
        """What open() would run to bring an unopened store up to date, as scripts; asking changes nothing."""

    def namespaces(self) -> list[str]:
        """The namespaces that hold a Rota system where this store is, sorted; it need not be open, and asking changes
        nothing. A store that has no namespaces has none to list."""
        return []

    def is_missing(self) -> bool:
        """Whether there is no file at `path` yet, so that open() would make an empty store; asking changes nothing."""
        return False

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def describe(self) -> str:
        """The place of the store in words, without secrets."""

    def warnings(self) -> list[str]:
        """Settings of the opened store's server that may lose jobs, in words; each says what to do."""
        return []

    @abstractmethod
    def now(self) -> int:
        """The store's clock."""

    @abstractmethod
    def listen(self, channel: Channel) -> Listener: ...
