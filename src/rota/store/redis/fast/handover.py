"""Receives the jobs that a single add has claimed for idle workers of this process.

An idle worker that finds nothing to claim is registered as waiting, with the channel of this process. The script that
adds a single job claims it for such a worker and publishes it there, so that it starts without a second call. If the
message is lost, the worker's next exchange returns the job.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rota.store.redis.codec import UNREADABLE, claimed_job

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.jobs.job import Job


class Handover:
    """The job that was handed to each worker. A worker gets no second one before its next exchange."""

    def __init__(self) -> None:
        self.channel: str | None = None  # None: no listener is open, and nothing is handed over
        self._wakes: dict[str, Callable[[], None]] = {}  # by channel
        self._arrived: dict[str, Job] = {}  # by worker, until it takes it
        self._known: dict[str, str] = {}  # by worker, the last job that came, by a message or by an exchange
        self._lock = threading.Lock()

    def open(self, channel: str, wake: Callable[[], None]) -> None:
        """A listener reads this channel; `wake` ends its caller's wait."""
        self._wakes[channel] = wake
        self.channel = channel

    def close(self, channel: str) -> None:
        self._wakes.pop(channel, None)
        self.channel = next(iter(self._wakes), None)

    def receive(self, message: bytes) -> None:
        """Keep a job until its worker takes it. The exchange returns, and fails, one that cannot be read."""
        try:
            job = _job_of(message)
        except UNREADABLE:
            return
        holder = str(job.holder)
        with self._lock:
            if self._note(holder, job.id):
                self._arrived[holder] = job
        for wake in list(self._wakes.values()):  # workers of one process may share a store
            wake()

    def take(self, holder: str) -> list[Job]:
        """The job that arrived for a worker since it took the last one."""
        job = self._arrived.pop(holder, None)
        return [] if job is None else [job]

    def known(self, holder: str) -> str | None:
        """The last job that was handed to a worker."""
        return self._known.get(holder)

    def is_first(self, holder: str, job_id: str) -> bool:
        """Whether a job that an exchange returns has not come by a message."""
        with self._lock:
            return self._note(holder, job_id)

    def _note(self, holder: str, job_id: str) -> bool:
        is_first = self._known.get(holder) != job_id
        self._known[holder] = job_id
        return is_first


def _job_of(message: bytes) -> Job:
    """A message: the lengths of the worker's and the job's id, when the lease began and ends, both ids, the record."""
    *numbers, rest = message.split(b"|", 4)
    of_holder, of_id, began_at, until = map(int, numbers)
    of_both = of_holder + of_id
    return claimed_job(rest[of_holder:of_both].decode(), rest[of_both:], rest[:of_holder].decode(), began_at, until)
