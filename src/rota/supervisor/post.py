"""Keeps one worker process running: starts the next one when it ends, and waits longer if none stays up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.supervisor.worker_process import WorkerProcess

QUICK = 10.0  # seconds: a worker that is gone by then was never of much use
PATIENCE = 2  # quick ends in a row after which the next worker still starts at once
LONGEST_PAUSE = 30.0  # seconds


class Post:
    """Who works here, who is about to take over, and when the next may start."""

    def __init__(self, place: int = 0) -> None:
        self.place = place  # its number among the workers, from 0; each worker that fills it gets it
        self.worker: WorkerProcess | None = None
        self.successor: WorkerProcess | None = None  # started to take over; not up yet
        self.start_at = 0.0
        self._quick_ends = 0

    def vacate(self) -> str:
        """Its worker has gone or must go: a successor takes over, or another is started. Answers what follows."""
        worker, self.worker, self.successor = self.worker, self.successor, None
        if worker is not None and time.monotonic() < worker.born_at + QUICK:
            self._quick_ends += 1
        else:
            self._quick_ends = 0
        return self._put_off()

    def fail(self) -> str:
        """No worker could be started at all."""
        self._quick_ends += 1
        return self._put_off()

    def _put_off(self) -> str:
        beyond = self._quick_ends - PATIENCE
        if beyond <= 0:
            self.start_at = 0.0
            return "another takes its place"
        pause = min(LONGEST_PAUSE, 2.0 ** (beyond - 1))
        self.start_at = time.monotonic() + pause
        return f"{self._quick_ends} in a row were gone within {QUICK:g} s: the next starts in {pause:g} s"
