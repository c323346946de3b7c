"""Rescuer: finds running jobs whose worker stopped renewing its lease, and gives them to others.

It runs in every node and is safe to run many times at once: a rescue is applied only where the lease still is the one
that ran out.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from rota.engine.service import Service
from rota.failpoints import reach
from rota.model.settle import rescue

if TYPE_CHECKING:
    from rota.engine.events import Events
    from rota.engine.store_clock import StoreClock
    from rota.store.contract import Store

BATCH = 100


class Rescuer(Service):
    """Looks twice per lease, so that a dead worker's job waits at most one and a half of them."""

    name = "rescuer"

    def __init__(
        self, store: Store, events: Events, clock: StoreClock, *, lease_for: int, random: Random | None = None
    ) -> None:
        super().__init__(events, clock)
        self._store = store
        self._random = random or Random()  # noqa: S311 - so that many nodes do not look at once
        self._pause = lease_for / 2e6

    def turn(self) -> float:
        lapsed = self._store.lapsed_jobs(BATCH)
        if not lapsed:
            return self._pause * self._random.uniform(0.8, 1.0)
        now = self.clock.now()
        changes = [rescue(job, now) for job in lapsed]
        reach("rescue.before")
        refused = {refusal.id for refusal in self._store.rescue_jobs(changes)}
        reach("rescue.after")
        for change in changes:
            if change.id not in refused:
                self.events.emit(
                    "job.rescued",
                    now,
                    job_id=change.id,
                    worker=change.job.holder,
                    state=change.state,
                    task=change.job.task,
                )
        return 0.0 if len(lapsed) == BATCH else self._pause
