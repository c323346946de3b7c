"""Receives the jobs that a single add has claimed for idle workers of this process.

An idle worker that finds nothing to claim is registered as waiting, with the channel of this process. The script that
adds a single job claims it for such a worker and publishes it there, so that it starts without a second call. If the
message is lost, the worker's next exchange returns the job.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from rota.store.redis.codec import UNREADABLE, claimed_job
from rota.store.shared import forks

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.jobs.job import Job

MOST_REMEMBERED = 8  # jobs per worker: a message that a slow channel delivers late must start no job again


class DirectClaims(forks.Forked):
    """The jobs that were claimed for workers of this process. A worker gets no second one before its next exchange."""

    def __init__(self) -> None:
        self._reset()
        forks.register(self)

    def after_fork(self) -> None:
        """In the child: the listeners are the parent's."""
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._when_claimed: dict[str, Callable[[], None]] = {}  # by channel
        self._is_delivering = False  # messages arrive; False after one was lost, until the next arrives
        self._arrived: dict[str, Job] = {}  # by worker, until it takes it
        self._taken: dict[str, deque[str]] = {}  # by worker, the last jobs that it took

    @property
    def channel(self) -> str | None:
        """The channel on which jobs are published; None if no listener is open, or if its messages are lost."""
        return next(iter(list(self._when_claimed)), None) if self._is_delivering else None

    def open(self, channel: str, act: Callable[[], None]) -> None:
        """A listener reads this channel; `act` is called when a job has arrived."""
        self._when_claimed[channel] = act
        self._is_delivering = True

    def close(self, channel: str) -> None:
        self._when_claimed.pop(channel, None)

    def receive(self, message: bytes) -> None:
        """Keep a job until its worker takes it. A notification has none. The exchange fails one that cannot be read."""
        self._is_delivering = True
        if not message:
            return
        try:  # the lengths of the worker's and the job's id, when the lease began and ends, both ids, the record
            *numbers, rest = message.split(b"|", 4)
            of_holder, of_id, began_at, until = map(int, numbers)
            of_both, holder = of_holder + of_id, rest[:of_holder].decode()
            job = claimed_job(rest[of_holder:of_both].decode(), rest[of_both:], holder, began_at, until)
        except UNREADABLE:
            return
        self.keep(holder, job)

    def keep(self, holder: str, job: Job) -> None:
        """Keep a job for its worker and tell the listeners, unless the worker took it already."""
        with self._lock:
            if job.id in self._taken.get(holder, ()):
                return
            self._arrived[holder] = job
        for act in list(self._when_claimed.values()):  # workers of one process may share a store
            act()

    def take(self, holder: str) -> list[Job]:
        """The job that arrived for a worker since it took the last one."""
        if not self._arrived:
            return []
        with self._lock:
            job = self._arrived.pop(holder, None)
            return [] if job is None else [self._mark_taken(holder, job)]

    def take_returned(self, holder: str, job: Job) -> list[Job]:
        """A job that an exchange returned; none if its message has come meanwhile, and the worker took it."""
        with self._lock:
            if job.id in self._taken.get(holder, ()):
                return []
            self._is_delivering = self._arrived.pop(holder, None) is not None
            return [self._mark_taken(holder, job)]

    def restore(self, holder: str, jobs: list[Job]) -> None:
        """An exchange failed after it had taken these jobs: the worker takes them next."""
        for job in jobs:
            with self._lock:
                self._taken[holder].remove(job.id)
            self.keep(holder, job)

    def last_taken(self, holder: str) -> str | None:
        """The id of the last job that a worker took; an exchange need not return it."""
        taken = self._taken.get(holder)
        return taken[-1] if taken else None

    def _mark_taken(self, holder: str, job: Job) -> Job:
        self._taken.setdefault(holder, deque(maxlen=MOST_REMEMBERED)).append(job.id)
        return job
