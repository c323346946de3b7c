"""Finds running jobs whose lease has expired, and releases them to other workers.

It runs in every node, and several may run at once: a rescue is applied only if the lease is still the expired one. If a
worker is known to be dead, its jobs are settled in its name at once, without waiting for their leases.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from rota.engine.service import Service
from rota.failpoints import reach
from rota.model.jobs.job import State
from rota.model.jobs.settle import EXPIRED, rescue
from rota.store.contract import LARGEST_PAGE, Exchange, JobFilter
from rota.store.shared.paging import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.engine.events import Events
    from rota.engine.store_clock import StoreClock
    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change
    from rota.store.contract import Store

BATCH = 100
ROUNDS = 3  # passes over the jobs of a dead worker; what is left then waits for its lease to expire


class Rescuer(Service):
    """Runs twice per lease, so that a dead worker's job waits at most one and a half leases."""

    name = "rescuer"

    def __init__(
        self, store: Store, events: Events, clock: StoreClock, *, lease_for: int, random: Random | None = None
    ) -> None:
        super().__init__(events, clock)
        self._store = store
        self._random = random or Random()  # noqa: S311 - so that nodes do not all ask at once
        self._pause = lease_for / 2e6
        self._lease = lease_for / 1e6

    def turn(self) -> float:
        expired = self._store.expired_jobs(BATCH)
        if not expired:
            return self._pause * self._random.uniform(0.8, 1.0)
        if self._was_clock_set_ahead():
            return self._pause
        now = self.clock.now()
        changes = [rescue(job, now) for job in expired]
        reach("rescue.before")
        refused = {refusal.id for refusal in self._store.rescue_jobs(changes)}
        reach("rescue.after")
        _emit(self.events, now, [change for change in changes if change.id not in refused], EXPIRED)
        return 0.0 if len(expired) == BATCH else self._pause

    def _was_clock_set_ahead(self) -> bool:
        """Whether leases only seem to have expired: live workers renew them within one lease."""
        asked_at = self.clock.monotonic()
        self.clock.sync(self._store.now(), asked_at)
        return self.clock.was_set_ahead_within(self._lease)


def free_jobs_of(dead: str, how: str, store: Store, events: Events, clock: StoreClock) -> int:
    """Release the jobs of a worker that is known to be dead, with how it died; return how many.

    It is written as that worker's own last report: the store accepts it if the lease is still the dead worker's, and
    refuses it if a rescue came first. A job that was cancelled meanwhile is decided again.
    """
    freed = 0
    for _ in range(ROUNDS):
        now = clock.now()
        changes = [rescue(job, now, how) for job in _held_by(dead, store)]
        if not changes:
            break
        for start in range(0, len(changes), BATCH):
            batch = changes[start : start + BATCH]
            refused = {refusal.id for refusal in store.exchange(Exchange(holder=dead, settled=batch)).refused}
            done = [change for change in batch if change.id not in refused]
            _emit(events, now, done, how)
            freed += len(done)
    return freed


def _held_by(holder: str, store: Store) -> Iterator[Job]:
    running = walk(store.list_jobs, JobFilter(states=(State.RUNNING,)), limit=LARGEST_PAGE)
    return (job for job in running if job.holder == holder)


def _emit(events: Events, now: int, changes: list[Change], how: str) -> None:
    for change in changes:
        events.emit(
            "job.rescued",
            now,
            job_id=change.id,
            worker=change.job.holder,
            how=how,
            state=change.state,
            task=change.job.task,
            queue=change.job.queue,
            priority=change.job.priority,
            schedule_id=change.job.schedule_id,
        )
