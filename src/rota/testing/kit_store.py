"""Defines the store of a kit: a memory store on a manual clock that remembers every job it ever had."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rota.model.jobs.job import Job, State
from rota.store.contract import LARGEST_BATCH, MOST_COUNTED
from rota.testing.uncommitted_store import UncommittedStore

if TYPE_CHECKING:
    from _collections_abc import dict_values
    from collections.abc import Callable, Iterator, Sequence

    from rota.model.jobs.job import NewJob
    from rota.model.schedules.occurrence import Occurrence
    from rota.store.contract import Added, Failure, JobFilter, LedgerSpan, Page, Part, Pruned, Record, Retention
    from rota.testing.clock import ManualClock

WAITING = frozenset({State.QUEUED, State.SCHEDULED})


class KitStore(UncommittedStore):
    """It keeps jobs that are removed when they have succeeded, so that a test can read them."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock
        self._known = self._jobs = _Known()
        self.after_adding: Callable[[], None] | None = None  # runs new jobs in inline mode

    def now(self) -> int:
        return self._clock.micros()

    def describe(self) -> str:
        return "memory (a test's)"

    @property
    def seen(self) -> list[Job]:
        """Every job that was ever added, oldest first, in its last state."""
        return list(self._known.seen.values())

    @property
    def ended(self) -> list[Job]:
        """The jobs in the order in which they ended."""
        return self._known.ended

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(self._known.queues)

    def has_due(self, by: int) -> bool:
        """Whether a job may run now, without those that schedules made for later times."""
        now = self.now()
        return any(
            job.state in WAITING and job.run_at <= now and (job.fire_at is None or job.fire_at <= by)
            for job in self._known.values()
        )

    def list_jobs(self, where: JobFilter, *, cursor: str | None = None, limit: int = 50) -> Page[Job]:
        with self._lock, self._known.whole():
            return super().list_jobs(where, cursor=cursor, limit=limit)

    def count_jobs(self, where: JobFilter, *, limit: int = MOST_COUNTED) -> int:
        with self._lock, self._known.whole():
            return super().count_jobs(where, limit=limit)

    def list_failures(self, since: int, *, limit: int = LARGEST_BATCH) -> list[Failure]:
        with self._lock, self._known.whole():
            return super().list_failures(since, limit=limit)

    def list_many_occurrences(self, spans: Sequence[LedgerSpan], *, limit: int = 50) -> list[Page[Occurrence]]:
        with self._lock, self._known.whole():
            return super().list_many_occurrences(spans, limit=limit)

    def prune(self, retention: Retention, limit: int, *, now: int | None = None) -> Pruned:
        with self._lock, self._known.whole():
            return super().prune(retention, limit, now=now)

    def recount(self) -> dict[str, int]:
        with self._lock, self._known.whole():
            return super().recount()

    def dump(self, part: Part, *, cursor: str | None = None, limit: int = 500) -> Page[Record]:
        with self._lock, self._known.whole():
            return super().dump(part, cursor=cursor, limit=limit)

    def add_jobs(self, jobs: Sequence[NewJob], *, now: int | None = None) -> list[Added]:
        added = super().add_jobs(jobs, now=now)
        if self.after_adding is not None:
            self.after_adding()
        return added


class _Known(dict[str, Job]):
    """The jobs of a store. `seen` keeps those that were removed, and values() leaves out those that have ended.

    The memory store reads all its jobs at every step. Years of ended ones would make each step slow.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, Job] = {}
        self.ended: list[Job] = []
        self.queues: dict[str, None] = {}
        self._live: dict[str, Job] = {}
        self._is_whole = False

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Within the block values() has all jobs: lists need them."""
        before, self._is_whole = self._is_whole, True
        try:
            yield
        finally:
            self._is_whole = before

    def values(self) -> dict_values[str, Job]:
        return super().values() if self._is_whole else self._live.values()

    def __setitem__(self, job_id: str, job: Job) -> None:
        before = self.seen.get(job_id)
        if job.is_live:
            self._live[job_id] = job
        else:
            self._live.pop(job_id, None)
            if before is None or before.is_live:
                self.ended.append(job)
        self.seen[job_id] = job
        self.queues[job.queue] = None
        super().__setitem__(job_id, job)

    def __delitem__(self, job_id: str) -> None:
        if self._live.pop(job_id, None) is not None:
            del self.seen[job_id]  # created before it was due, and deleted: it does not count as a job
        super().__delitem__(job_id)
