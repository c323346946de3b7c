"""Defines the values that cross the contract: the arguments of a store's verbs and their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar

from msgspec import Struct

from rota.errors import BadOption
from rota.model.jobs.job import Job, State
from rota.model.jobs.settle import Change
from rota.model.micros import SECOND
from rota.model.schedules.schedule import Schedule
from rota.model.schedules.slots import UNIQUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rota.model.schedules.slots import Skip

Item = TypeVar("Item")

LARGEST_PAGE = 200
LARGEST_BATCH = 1_000
MOST_COUNTED = 10_001  # jobs that match a filter: exact to 10,000, then "more than 10,000"
FEWEST_REPEATED = 2  # attempts from which on a job is in the index of repeated jobs
MOST_PROMOTED = 500  # due jobs of all its queues that one claim makes ready; the next claim goes on

Channel = Literal["jobs", "schedules"]


class Features(Struct, frozen=True, kw_only=True):
    """The differences between stores. The suite reads them, and the docs list them."""

    kind: str
    is_durable: bool  # survives the end of its process
    is_shared: bool  # several processes may use it at once
    enqueues_in_transactions: bool = False
    counters_are_exact: bool = True  # False: after a crash they may be wrong until upkeep has counted again
    has_lease_clock: bool = False  # leases and locks use a clock of their own, which cannot be set
    clock_step: int = 1  # the resolution of its clock, in microseconds


class Page(Struct, Generic[Item], frozen=True):
    """Some items, and the cursor of the next page (None: this was the last)."""

    items: list[Item]
    cursor: str | None = None

    # Both are about this page alone: neither asks the store for more.

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def check_limit(limit: int) -> int:
    """Check the number of items that a caller requests for a page, and return it."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LARGEST_PAGE:
        raise BadOption(f"limit={limit!r} must be a whole number from 1 to {LARGEST_PAGE}; page.cursor asks for more")
    return limit


def check_cursor(cursor: str | None) -> str | None:
    """Check a cursor of a list of jobs or occurrences, and return it."""
    if cursor is not None and not (cursor.isascii() and cursor.isdigit()):
        raise BadOption(f"cursor {cursor!r} is none that a list gave")
    return cursor


class Added(Struct, frozen=True, gc=False):
    """The result for one new job: it was created, or a job with its id, slot or key exists."""

    id: str
    existed: bool = False


class Exchange(Struct, frozen=True, kw_only=True):
    """The request of a worker: the reports that it sends and the number of jobs that it wants."""

    holder: str
    settled: list[Change] = []
    want: int = 0
    queues: tuple[str, ...] = ("default",)
    lease_for: int = 30 * SECOND
    ahead: int = 0  # scheduled jobs that are due within so many microseconds are wanted, too: they are begun on time
    is_idle: bool = False  # it has no other jobs than `settled`: the store may claim the next one for it (exchange)


class Refusal(Struct, frozen=True):
    """A report that the store refused, because the lease was lost or the job was asked to stop."""

    id: str
    why: Literal["lease", "cancel"]  # the lease was lost; or the job was asked to stop meanwhile
    reason: str = ""


class Exchanged(Struct, frozen=True, kw_only=True):
    """The reply of the store."""

    now: int
    refused: list[Refusal] = []
    claimed: list[Job] = []
    next_due_at: int | None = None  # when the next scheduled job of these queues is due; None: none is waiting


class Extended(Struct, frozen=True, kw_only=True):
    """The result of a renewal of leases."""

    now: int
    lost: list[str] = []
    cancels: dict[str, str] = {}  # jobs of this holder that were asked to stop, and why


class Due(Struct, frozen=True, kw_only=True):
    """The schedules that a scheduler must look at."""

    now: int
    schedules: list[Schedule] = []
    next_due_at: int | None = None  # when the first of the others is due


class Fired(Struct, frozen=True, kw_only=True):
    """The result of one firing. Not accepted: another caller fired or edited the schedule first."""

    schedule_id: str
    is_accepted: bool
    jobs: list[str] = []
    skipped: int = 0
    unique: int = 0  # of the skipped, those whose key another job holds

    @classmethod
    def of(cls, schedule_id: str, jobs: list[str], skips: Iterable[Skip]) -> Fired:
        """What an accepted firing became: the jobs that it made, and all that was skipped with it."""
        numbers = [(skip.count, skip.word == UNIQUE) for skip in skips]
        return cls(
            schedule_id=schedule_id,
            is_accepted=True,
            jobs=jobs,
            skipped=sum(number for number, _ in numbers),
            unique=sum(number for number, is_unique in numbers if is_unique),
        )


class JobFilter(Struct, frozen=True, kw_only=True):
    """The jobs that a list shows. A field of None sets no condition."""

    states: tuple[State, ...] = ()
    queue: str | None = None
    task: str | None = None  # a trailing * matches any ending
    schedule_id: str | None = None
    key: str | None = None
    since: int | None = None  # created at or after
    until: int | None = None  # created before
    least_attempts: int | None = None  # FEWEST_REPEATED or more: an index has the jobs with so many
    most_attempts: int | None = None  # only together with `least_attempts`

    def __post_init__(self) -> None:
        if self.least_attempts is None and self.most_attempts is not None:
            raise BadOption("a filter with most_attempts needs least_attempts, too")
        if self.least_attempts is not None and self.least_attempts < FEWEST_REPEATED:
            raise BadOption(f"least_attempts is {self.least_attempts}; no list has fewer than {FEWEST_REPEATED}")


class Failure(Struct, frozen=True, kw_only=True):
    """A job that failed: which, when, and its error."""

    id: str
    task: str
    at: int
    error: str


class ScheduleFilter(Struct, frozen=True, kw_only=True):
    """The schedules that a list shows. A field of None sets no condition. Each field has an index."""

    tenant: str | None = None  # a name, never empty
    origin: str | None = None  # as Origin.name says it: code:shop


class AuditFilter(Struct, frozen=True, kw_only=True):
    """The audit records that a list shows. A field of None sets no condition."""

    subject: str | None = None
    since: int | None = None  # made at or after
    until: int | None = None  # made before


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
    is_draining: bool = False  # it finishes what it runs, and claims nothing more
    app: str = ""
    version: str = ""
    started_at: int = 0
    beat_at: int = 0
    problem: str = ""  # why its record cannot be read, if it cannot


class LedgerSpan(NamedTuple):
    """The expected times of a schedule in start <= t < end."""

    schedule_id: str
    start: int
    end: int


class QueueInfo(Struct, frozen=True, kw_only=True):
    """A queue in numbers."""

    name: str
    is_paused: bool = False
    counts: dict[str, int] = {}  # the jobs that are kept, by state
    totals: dict[str, int] = {}  # jobs that ever ended, by state
    oldest_at: int | None = None  # since when the first ready job, of any priority, has been waiting


class LogLine(Struct, frozen=True, kw_only=True):
    """One line of a job's log."""

    job_id: str
    at: int
    level: str
    text: str
    number: int = 0  # given by the store; rises within a job


class Retention(Struct, frozen=True, kw_only=True):
    """How long ended records are kept (microseconds), and how many at most."""

    succeeded_for: int = 24 * 3600 * SECOND
    failed_for: int = 30 * 24 * 3600 * SECOND
    cancelled_for: int = 24 * 3600 * SECOND
    most_finished: int = 1_000_000
    occurrences_for: int = 400 * 24 * 3600 * SECOND
    most_occurrences: int = 1_000
    nodes_for: int = 3600 * SECOND
    audit_for: int = 400 * 24 * 3600 * SECOND

    def kept_for(self, state: State) -> int:
        return {State.SUCCEEDED: self.succeeded_for, State.FAILED: self.failed_for}.get(state, self.cancelled_for)


class Pruned(Struct, frozen=True, kw_only=True):
    """The numbers of records that a round of upkeep deleted."""

    jobs: int = 0
    occurrences: int = 0
    nodes: int = 0
    audit_records: int = 0

    @property
    def total(self) -> int:
        return self.jobs + self.occurrences + self.nodes + self.audit_records

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(
            jobs=self.jobs + other.jobs,
            occurrences=self.occurrences + other.occurrences,
            nodes=self.nodes + other.nodes,
            audit_records=self.audit_records + other.audit_records,
        )
