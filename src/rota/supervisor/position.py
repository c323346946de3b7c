"""Keeps one worker process running: starts the next one when it ends, and waits longer if none stays up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.supervisor.worker_process import WorkerProcess

QUICK_END = 10.0  # seconds; a worker that ends sooner has ended quickly
FREE_RESTARTS = 2  # quick ends in a row after which the next worker starts at once
LONGEST_PAUSE = 30.0  # seconds


class Position:
    """One of the workers that must run: its process, its successor, and when the next may start."""

    def __init__(self, place: int = 0) -> None:
        self.place = place  # its number among the workers, from 0; each of its worker processes gets it
        self.worker: WorkerProcess | None = None
        self.successor: WorkerProcess | None = None  # started to take over; not up yet
        self.start_at = 0.0
        self._quick_ends = 0

    def clear(self) -> str:
        """Its worker has ended or must end: the successor takes over, or another starts. Returns that as a text."""
        worker, self.worker, self.successor = self.worker, self.successor, None
        if worker is not None and time.monotonic() < worker.born_at + QUICK_END:
            self._quick_ends += 1
        else:
            self._quick_ends = 0
        return self._schedule()

    def fail(self) -> str:
        """No process could be started."""
        self._quick_ends += 1
        return self._schedule()

    def _schedule(self) -> str:
        beyond = self._quick_ends - FREE_RESTARTS
        if beyond <= 0:
            self.start_at = 0.0
            return "another one replaces it"
        pause = min(LONGEST_PAUSE, 2.0 ** (beyond - 1))
        self.start_at = time.monotonic() + pause
        return f"{self._quick_ends} in a row ended within {QUICK_END:g} s: the next starts in {pause:g} s"
