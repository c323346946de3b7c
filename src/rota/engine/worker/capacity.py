"""Counts the runs that a worker holds, and decides how many more jobs it may claim.

A worker claims a job for each free slot. If jobs are short, it also prefetches as many as end in the next 50 ms. A job
whose next death fails it for good runs alone, and nothing is claimed beside it.
"""

from __future__ import annotations

import logging
import threading
import time
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from rota.engine.executors.run import Run
from rota.model.jobs.retry import MAX_DEATHS
from rota.model.why.time_words import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.engine.events import Events
    from rota.engine.executors import Executor
    from rota.engine.store_clock import StoreClock
    from rota.model.jobs.job import Job

log = logging.getLogger("rota.worker")

MAX_BATCH = 300  # reports sent, and jobs requested, per call; with fewer, waking threads is much of the cost
PREFETCH_FOR = 0.05  # seconds of work that are claimed ahead of free slots
START_WITHIN = 1.0  # seconds within which every claimed job should start
MOST_HELD = 900
WINDOW = 0.1  # seconds over which the rate is measured
FEW_DEATHS = MAX_DEATHS - 1  # the next death fails the job for good


class HeldRuns(dict[str, Run]):
    """The runs of jobs that a worker has claimed and not yet settled, by job id."""

    def __init__(self, events: Events, clock: StoreClock) -> None:
        super().__init__()
        self._events = events
        self._clock = clock

    def hold(self, run: Run) -> None:
        """Add a run. An older run of the same job has lost its lease: the store has just given out a newer one."""
        older = self.get(run.job.id)
        if older is not None:
            self.lose(older)
        self[run.job.id] = run

    def remove(self, run: Run) -> None:
        """Remove this run, but not a newer one of the same job."""
        if self.get(run.job.id) is run:
            del self[run.job.id]

    def lose(self, run: Run) -> None:
        """Remove a run whose lease has expired. Nothing that it still does counts."""
        run.is_over = True
        self.remove(run)
        self._events.emit("job.lost", self._clock.now(), job_id=run.job.id, task=run.job.task)
        run.lose()

    @property
    def not_started(self) -> list[Run]:
        return [run for run in list(self.values()) if run.started is None and not run.is_over]


class PrefetchLimit:
    """Follows the rate at which runs end, and limits how many jobs a worker may hold."""

    def __init__(self, slots: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._slots = slots
        self._monotonic = monotonic
        self._count = 0
        self._rate = 0.0
        self._since = monotonic()

    def count_ended(self) -> None:
        self._count += 1

    def room(self, held: int, stuck: int) -> int:
        """How many more jobs to claim. Slots that are stuck take none."""
        slots = self._slots - stuck
        if slots <= 0:
            return 0
        prefetched = min(MOST_HELD - slots, int(self._current_rate() * PREFETCH_FOR))
        return slots + max(0, prefetched) - held

    def excess(self, waiting: int) -> int:
        """How many of the waiting runs cannot start soon, because jobs take longer than when they were claimed."""
        return max(0, waiting - max(self._slots, int(self._current_rate() * START_WITHIN)))

    def _current_rate(self) -> float:
        now = self._monotonic()
        passed = now - self._since
        if passed >= WINDOW:
            self._rate = self._count / passed
            self._count, self._since = 0, now
        return max(self._rate, self._count / WINDOW)


class Quarantine:
    """Runs a job alone if its next death fails it for good. There is at most one such suspect per worker.

    Every job that a dying worker held is charged with the death, because it is unknown which of them caused it. A
    suspect waits until the other runs have ended, so that the next death is its own and harms no other job. A job whose
    task runs in a child process (`is_apart`) harms no other, and never waits.
    """

    def __init__(self, runs: HeldRuns, is_apart: Callable[[Job], bool]) -> None:
        self._runs = runs
        self._is_apart = is_apart
        self._suspect: Run | None = None
        self._has_begun = False
        self._lock = threading.Lock()  # jobs are dispatched in up to three threads
        self.is_careful = False  # the last claim contained a suspect: claim one job at a time

    def inspect(self, jobs: list[Job]) -> bool:
        """Whether there are suspects among claimed jobs."""
        has_suspect = any(map(self.is_suspect, jobs))
        if jobs:
            self.is_careful = has_suspect
        return has_suspect

    def is_suspect(self, job: Job) -> bool:
        return job.deaths >= FEW_DEATHS and not self._is_apart(job)

    def limit(self, wanted: int) -> int:
        """How many jobs may be claimed."""
        if self._has_suspect:
            return 0
        return min(wanted, 1) if self.is_careful else wanted

    def accept(self, run: Run) -> bool:
        """Keep a suspect until it is alone; False if there is one already."""
        with self._lock:
            if self._has_suspect:
                return False
            self._suspect, self._has_begun = run, False
        if len(self._runs) > 1:
            log.warning(
                "processes died %d times while job %s (%s) ran; it runs alone now, so this worker claims no more jobs "
                "until the %s that it runs have ended",
                run.job.deaths,
                run.job.id,
                run.job.task,
                counted(len(self._runs) - 1, "other job"),
            )
        return True

    def release(self) -> Run | None:
        """The suspect, once, when it is the only run that is left."""
        with self._lock:
            if not self._has_suspect or self._has_begun or len(self._runs) > 1:
                return None
            if self._suspect is None or self._suspect.is_over:
                return None
            self._has_begun = True
            return self._suspect

    @property
    def _has_suspect(self) -> bool:
        return self._suspect is not None and self._runs.get(self._suspect.job.id) is self._suspect


class Capacity:
    """How many more jobs a worker may claim."""

    def __init__(self, runs: HeldRuns, prefetch: PrefetchLimit, quarantine: Quarantine) -> None:
        self._runs = runs
        self.prefetch = prefetch
        self._quarantine = quarantine
        self.executors: set[Executor] = set()  # that have got runs; the others have no stuck slots
        self.most = MAX_BATCH
        self.is_draining = False
        self.is_sealed = False  # the store refuses new work

    def free(self, in_transit: int = 0) -> int:
        """How many jobs to claim, if so many were requested already and are not dispatched yet."""
        if self.is_draining or self.is_sealed:
            return 0
        held = in_transit + sum(not run.is_over for run in list(self._runs.values()))  # an ended run needs no slot
        stuck = sum(executor.stuck for executor in tuple(self.executors))
        return self._quarantine.limit(max(0, min(self.most, self.prefetch.room(held, stuck))))


class EarlyRuns:
    """Runs whose jobs were claimed up to 25 ms before their time, so that they start on time.

    Any thread may add one; only the worker's loop takes them out.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, Run]] = []
        self._numbers = count()  # of two with the same time, the first to be added starts first

    @property
    def next_at(self) -> int | None:
        """When the first of them may start."""
        return self._waiting[0][0] if self._waiting else None

    def add(self, run: Run) -> None:
        heappush(self._waiting, (run.job.run_at, next(self._numbers), run))

    def take_due(self, now: int) -> list[Run]:
        """The runs whose time has come, without those that have ended meanwhile."""
        runs = []
        while self._waiting and self._waiting[0][0] <= now:
            runs.append(heappop(self._waiting)[2])
        return [run for run in runs if not run.is_over]
