"""Chooses the next operation, by a seed and by what the memory store shows. Much of what it knows is stale."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

from rota.model.jobs.job import Job
from rota.model.micros import SECOND
from rota.store.contract import LARGEST_PAGE, Exchanged, JobFilter
from rota.testing.store_suite.builders import HOUR, MINUTE, T0

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Store
    from rota.testing.differential.operation import Operation

    Step = Callable[["Walk"], Operation | None]

QUEUES = ("a", "b", "c")
HOLDERS = ("w1", "w2", "w3", "w4")
SCHEDULES = ("s1", "s2", "s3", "s4")
PAUSES = (0, 0, 1, SECOND, SECOND, 10 * SECOND, 20 * SECOND, MINUTE, MINUTE, 7 * MINUTE)
LONG_PAUSES = (HOUR, 3 * HOUR)  # rare pauses, after which many runs were missed and all leases have expired


class Walk:
    """The state of a walk: the time, jobs and schedules as they were read at some time, and ids that it made."""

    def __init__(self, seed: int, reference: Store, steps: Sequence[Step]) -> None:
        self.seed = seed
        self.random = Random(seed)  # noqa: S311 - a walk that repeats, not a secret
        self.now = T0
        self.jobs: list[Job] = []
        self.schedules: list[Schedule] = []
        self.logged: dict[str, None] = {}  # jobs that were written to, in order
        self.reference = reference
        self._steps = steps
        self._numbers = count(1)

    def next(self) -> Operation:
        """Let time pass, and choose an operation."""
        pauses = LONG_PAUSES if self.random.random() < 0.01 else PAUSES
        self.now += self.random.choice(pauses)
        while True:
            operation = self.random.choice(self._steps)(self)
            if operation is not None:
                return operation

    def look(self, reply: Any) -> None:
        """Add what a reply of the reference and a read of it show: new values beside the stale ones."""
        jobs = reply.claimed if isinstance(reply, Exchanged) else reply
        seen = [job for job in jobs if isinstance(job, Job)] if isinstance(jobs, list) else []
        some = self.all_jobs()
        fresh = self.random.sample(some, min(8, len(some)))
        self.jobs = [*self.jobs[-40:], *seen[-10:], *fresh]
        self.schedules = [*self.schedules[-12:], *self.reference.get_schedules(SCHEDULES)]

    def all_jobs(self) -> list[Job]:
        """The jobs of the reference, up to a page."""
        return self.reference.list_jobs(JobFilter(), limit=LARGEST_PAGE).items

    def new_id(self) -> str:
        return f"{self.seed:08x}{next(self._numbers):020x}"

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def some_job(self) -> Job | None:
        return self.random.choice(self.jobs) if self.jobs else None

    def some_ids(self, most: int) -> list[str]:
        """Ids of known jobs, each once, and sometimes one that does not exist."""
        ids = list(dict.fromkeys(job.id for job in self.random.sample(self.jobs, min(most, len(self.jobs)))))
        return [*ids, "nobody"] if self.chance(0.2) else ids
