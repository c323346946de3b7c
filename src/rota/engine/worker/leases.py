"""Renews the leases of a worker's jobs, cancels the runs that should stop, and ends those that are over their timeout.

It has a thread of its own, so that no task can keep it from renewing. It renews exactly the leases that this worker
holds: a claim whose reply was lost is on no list, and its lease expires. The same call returns the cancelled jobs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rota.engine.executors.run import too_late
from rota.engine.service import Service
from rota.errors import StoreUnavailable
from rota.failpoints import reach
from rota.model.micros import SECOND

if TYPE_CHECKING:
    from rota.engine.events import Events
    from rota.engine.executors.run import Run
    from rota.engine.store_clock import StoreClock
    from rota.engine.worker.capacity import HeldRuns
    from rota.store.contract import Store

log = logging.getLogger("rota.worker")

LOOK = 1.0  # seconds between two calls for renewals and cancellations
TIMEOUT_LOOK = 0.1  # seconds between two checks of timeouts, if a running job has one


class LeaseKeeper(Service):
    """Renews at a third of the lease, so that two missed renewals cost nothing."""

    name = "lease keeper"

    def __init__(
        self, store: Store, runs: HeldRuns, events: Events, clock: StoreClock, *, holder: str, lease_for: int
    ) -> None:
        super().__init__(events, clock)
        self._store = store
        self._runs = runs
        self._holder = holder
        self._lease_for = lease_for
        self._lease = lease_for / SECOND
        self._looked_at = float("-inf")

    def turn(self) -> float:
        runs = list(self._runs.values())
        now = self.clock.monotonic()
        timed = [run for run in runs if run.timeout is not None]
        for run in timed:
            self._end_if_late(run, now)
        pause = TIMEOUT_LOOK if timed else min(LOOK, self._lease / 3)
        is_time = bool(runs) and now >= self._looked_at + min(LOOK, self._lease / 3)
        if not is_time and not self.is_away:  # after a failure, only an answer shows that the store is back
            return pause
        self._looked_at = now
        try:
            self._renew(runs, now)
        except StoreUnavailable:
            self._give_up(runs, self.clock.monotonic())
            raise
        return pause

    def _renew(self, runs: list[Run], now: float) -> None:
        due = [run for run in runs if now >= run.renewed_at + self._lease / 3]
        leases = [(run.job.id, run.job.lease_no) for run in due]
        reach("extend.before")
        reply = self._store.extend_leases(self._holder, leases, self._lease_for)
        self.clock.sync(reply.now, now)
        lost = set(reply.lost)
        for run in due:
            if run.job.id in lost:
                self._lose(run)
            else:
                run.renewed_at, run.lease_end = now, now + self._lease
        for run in runs:
            reason = reply.cancels.get(run.job.id)
            if reason is not None and run.stop_reason is None:
                run.stop(reason)

    def _give_up(self, runs: list[Run], now: float) -> None:
        """The store was unavailable for a whole lease: another worker may have these jobs now."""
        for run in runs:
            if now >= run.lease_end:
                self._lose(run)

    def _lose(self, run: Run) -> None:
        if run.is_over:
            return  # it has ended; its late report will be refused, which emits an event then
        log.warning(
            "job %s (%s) lost its lease: another worker may run it now. A call that holds the interpreter for long "
            "keeps leases from being renewed; run such a task in a process",
            run.job.id,
            run.job.task,
        )
        self._runs.lose(run)

    def _end_if_late(self, run: Run, now: float) -> None:
        if run.deadline is None or now < run.deadline or run.is_over or run.is_watched:
            return
        if run.finish(too_late(run)):
            run.stop("timed out")
