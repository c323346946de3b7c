"""The contract of a store: some two dozen verbs that speak of jobs and schedules, never of rows or keys.

A store records; it holds no rule of its own. Lists go in and lists come out, so that one round trip serves a hundred
jobs. Every write states what it expects and reports what it lost. Verbs take `now`: None means the store's own clock,
which alone decides what is due and which lease has run out; tests inject theirs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from msgspec import Struct

from rota.errors import Refused
from rota.model.job import Job, NewJob
from rota.model.micros import SECOND
from rota.model.schedule import Schedule
from rota.model.settle import Change
from rota.model.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.edit import Edit
    from rota.model.firing import Firing
    from rota.model.occurrence import Occurrence

Item = TypeVar("Item")

LARGEST_PAGE = 200
LARGEST_BATCH = 1_000
MOST_PROMOTED = 500  # scheduled jobs that one claim makes ready; the next claim goes on

Channel = Literal["jobs", "schedules"]


class Features(Struct, frozen=True, kw_only=True):
    """What differs between stores; the suite reads it and the docs print it."""

    kind: str
    is_durable: bool  # survives the end of its process
    is_shared: bool  # several processes may use it at once
    enqueues_in_transactions: bool = False


class Page(Struct, Generic[Item], frozen=True):
    """Some items, and where the next page begins (None: this was the last)."""

    items: list[Item]
    cursor: str | None = None


class Added(Struct, frozen=True):
    """What became of one new job: made, or found to be there already under its key."""

    id: str
    existed: bool = False


class Exchange(Struct, frozen=True, kw_only=True):
    """What a worker brings and what it wants, in one call."""

    holder: str
    settled: list[Change] = []
    want: int = 0
    queues: tuple[str, ...] = ("default",)
    lease_for: int = 30 * SECOND


class Refusal(Struct, frozen=True):
    """A write that the store did not take, because the world had moved on."""

    id: str
    why: Literal["lease", "cancel"]  # the lease was lost; or the job was asked to stop meanwhile
    reason: str = ""


class Exchanged(Struct, frozen=True, kw_only=True):
    """What the store gives back."""

    now: int
    refused: list[Refusal] = []
    claimed: list[Job] = []
    next_due_at: int | None = None  # when the next scheduled job of these queues is due; None: none is waiting


class Extended(Struct, frozen=True, kw_only=True):
    """What became of the leases that a worker wants to keep."""

    now: int
    lost: list[str] = []
    cancels: dict[str, str] = {}  # jobs of this holder that were asked to stop, and why


class Due(Struct, frozen=True, kw_only=True):
    """The schedules that a scheduler must look at."""

    now: int
    schedules: list[Schedule] = []
    next_due_at: int | None = None  # when the first of the others is due


class Fired(Struct, frozen=True, kw_only=True):
    """What one firing became. Not accepted: somebody else fired or edited the schedule first."""

    schedule_id: str
    is_accepted: bool
    jobs: list[str] = []
    skipped: int = 0


class JobFilter(Struct, frozen=True, kw_only=True):
    """Which jobs a list shows; what is None does not matter."""

    states: tuple[State, ...] = ()
    queue: str | None = None
    task: str | None = None  # a trailing * matches any ending
    schedule_id: str | None = None
    key: str | None = None
    since: int | None = None  # created at or after
    until: int | None = None  # created before


class Node(Struct, frozen=True, kw_only=True):
    """A process that runs a worker, a scheduler, or both."""

    id: str
    host: str
    pid: int
    roles: tuple[str, ...]
    queues: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    concurrency: int = 0
    running: int = 0
    app: str = ""
    version: str = ""
    started_at: int = 0
    beat_at: int = 0


class QueueInfo(Struct, frozen=True, kw_only=True):
    """A line of jobs, in numbers."""

    name: str
    is_paused: bool = False
    counts: dict[str, int] = {}  # the jobs that are kept, by state
    totals: dict[str, int] = {}  # jobs that ever ended, by state
    oldest_at: int | None = None  # since when the first in line, of any priority, has been waiting


class LogLine(Struct, frozen=True, kw_only=True):
    """One line that a job wrote."""

    job_id: str
    at: int
    level: str
    text: str
    number: int = 0  # given by the store; rises within a job


class Retention(Struct, frozen=True, kw_only=True):
    """How long what has ended is kept (microseconds), and how much of it at most."""

    succeeded_for: int = 24 * 3600 * SECOND
    failed_for: int = 30 * 24 * 3600 * SECOND
    cancelled_for: int = 24 * 3600 * SECOND
    most_finished: int = 1_000_000
    occurrences_for: int = 400 * 24 * 3600 * SECOND
    most_occurrences: int = 1_000
    nodes_for: int = 3600 * SECOND

    def kept_for(self, state: State) -> int:
        return {State.SUCCEEDED: self.succeeded_for, State.FAILED: self.failed_for}.get(state, self.cancelled_for)


class Pruned(Struct, frozen=True):
    """How much an upkeep round removed."""

    jobs: int = 0
    occurrences: int = 0
    nodes: int = 0

    @property
    def total(self) -> int:
        return self.jobs + self.occurrences + self.nodes


class Bell(ABC):
    """A signal that something may be waiting. It may ring for nothing; polling is the net under it."""

    @abstractmethod
    def wait(self, timeout: float) -> bool:
        """Block until it rings or the time is over; True if it rang."""

    @abstractmethod
    def ring(self) -> None:
        """Wake the one who waits, from any thread of this process."""

    @abstractmethod
    def close(self) -> None: ...


class Store(ABC):
    """Where jobs, schedules, occurrences and logs live."""

    features: Features

    # Its life.

    @abstractmethod
    def open(self) -> None:
        """Connect, and make or migrate what is needed."""

    @abstractmethod
    def pending_migrations(self) -> list[str]:
        """What open() would run to bring an unopened store up to date, as scripts; asking changes nothing."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def describe(self) -> str:
        """Where it is, for people: no secrets."""

    @abstractmethod
    def now(self) -> int:
        """The store's clock."""

    @abstractmethod
    def listen(self, channel: Channel) -> Bell: ...

    # Jobs.

    @abstractmethod
    def add_jobs(self, jobs: Sequence[NewJob], *, now: int | None = None) -> list[Added]:
        """Accept jobs, all or none. Where a key is taken, the live job's id comes back instead."""

    @abstractmethod
    def exchange(self, ask: Exchange, *, now: int | None = None) -> Exchanged:
        """Settle some jobs and claim some, in one step. Claiming first makes due jobs of these queues ready."""

    @abstractmethod
    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, *, now: int | None = None
    ) -> Extended:
        """Renew exactly these (job, lease_no); also says which of the holder's jobs were asked to stop."""

    @abstractmethod
    def lapsed_jobs(self, limit: int, *, now: int | None = None) -> list[Job]:
        """Running jobs whose lease has run out."""

    @abstractmethod
    def rescue_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        """Apply what was decided about lapsed jobs, where their lease still is the lapsed one."""

    @abstractmethod
    def change_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        """Apply decisions made by hand, where the jobs still are what was decided on."""

    @abstractmethod
    def request_cancels(self, ids: Sequence[str], reason: str, *, now: int | None = None) -> list[str]:
        """Ask running jobs to stop; says which of them are running."""

    @abstractmethod
    def note_progress(self, holder: str, notes: Sequence[tuple[str, int, str]]) -> None:
        """Keep how far running jobs are: (job, lease_no, text); what the holder no longer owns is left alone."""

    @abstractmethod
    def delete_jobs(self, ids: Sequence[str], *, now: int | None = None) -> list[str]:
        """Remove jobs that have ended; their occurrences stay. Says which were removed."""

    @abstractmethod
    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        """Those of the jobs that exist, in the order asked for."""

    @abstractmethod
    def list_jobs(self, where: JobFilter, *, cursor: str | None = None, limit: int = 50) -> Page[Job]:
        """Jobs, newest first."""

    # Inside the caller's own transaction, where Features.enqueues_in_transactions says so.

    def add_jobs_in(self, transaction: object, jobs: Sequence[NewJob]) -> list[Added]:
        """Accept jobs if and when the caller's transaction commits."""
        raise self._no_transactions(transaction, jobs)

    def settle_in(self, transaction: object, holder: str, change: Change) -> bool:
        """End a job with the caller's transaction; False where the lease was lost."""
        raise self._no_transactions(transaction, holder, change)

    def _no_transactions(self, *_: object) -> Refused:
        return Refused(f"the {self.features.kind} store has no transactions that a caller could share; use SQLite")

    # Schedules and occurrences.

    @abstractmethod
    def edit_schedules(self, edits: Sequence[Edit], *, now: int | None = None) -> list[str]:
        """Apply edits, each whole or not at all; says which were refused because the version had moved on."""

    @abstractmethod
    def get_schedules(self, ids: Sequence[str]) -> list[Schedule]: ...

    @abstractmethod
    def list_schedules(self, *, cursor: str | None = None, limit: int = 50) -> Page[Schedule]:
        """Schedules by id."""

    @abstractmethod
    def due_schedules(self, limit: int, *, now: int | None = None) -> Due: ...

    @abstractmethod
    def fire(self, firings: Sequence[Firing], *, now: int | None = None) -> list[Fired]:
        """Make the jobs and advance the schedules, each in one step guarded by its version."""

    @abstractmethod
    def list_occurrences(
        self, schedule_id: str, start: int, end: int, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Occurrence]:
        """What became of the expected times in start <= t < end, oldest first."""

    # Queues, nodes, logs, upkeep.

    @abstractmethod
    def pause_queue(self, queue: str, *, paused: bool) -> None: ...

    @abstractmethod
    def list_queues(self, *, now: int | None = None) -> list[QueueInfo]: ...

    @abstractmethod
    def beat(self, node: Node, *, now: int | None = None) -> int:
        """Say that a node is alive; answers with the store's clock."""

    @abstractmethod
    def list_nodes(self) -> list[Node]: ...

    @abstractmethod
    def forget_node(self, node_id: str) -> None: ...

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

    # Locks: a name, whose token has it, until when. The number rises with every new owner.

    @abstractmethod
    def acquire_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> int | None:
        """Take a free or lapsed lock: its fencing number. None where another token has it."""

    @abstractmethod
    def extend_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> bool:
        """Keep a lock that this token still has; False where it was lost."""

    @abstractmethod
    def release_lock(self, name: str, token: str, *, now: int | None = None) -> bool:
        """Give a lock back; False where this token no longer had it."""

    @abstractmethod
    def recount(self) -> dict[str, int]:
        """How far the kept counters are from a fresh count, where they differ (for checks)."""

    @abstractmethod
    def prune(self, retention: Retention, limit: int, *, now: int | None = None) -> Pruned:
        """Remove a bounded batch of what was kept long enough."""
