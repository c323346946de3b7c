"""RunQueue: runs that wait for a slot, and the slots that wait for a run; one is woken at a time, and wakes the next.

A queue that wakes a thread for every run makes a crowd of threads fight over the interpreter's lock. Here a slot that
is on its way is enough: whoever is awake takes all that is short, and where a run blocks, the woken slot finds what is
left and wakes the next before it begins.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.engine.executors.run import Run


class RunQueue:
    """First in, first out. `grow` is asked to add a slot where all are busy; it answers whether it did."""

    def __init__(self, grow: Callable[[], bool]) -> None:
        self._grow = grow
        self._runs: deque[Run] = deque()
        self._sleepers: list[threading.Lock] = []  # the last one to lie down is woken first: it is still warm
        self._is_waking = False  # a slot is on its way, and has not looked yet
        self._is_closed = False
        self._lock = threading.Lock()

    def put(self, *runs: Run) -> None:
        with self._lock:
            self._runs.extend(runs)
            self._wake_one()

    def join(self) -> None:
        """A new slot is there: the one that was asked for."""
        with self._lock:
            self._is_waking = False
            if len(self._runs) > 1:
                self._wake_one()

    def take(self, timeout: float = -1) -> Run | None:
        """The next run; None when the time is up, or the line is closed and empty."""
        try:
            return self._runs.popleft()  # whoever is awake need not wake others: put() did, or one is on its way
        except IndexError:
            return self._sleep(timeout)

    def close(self) -> None:
        """Whoever waits is let go; what was put before is still taken."""
        with self._lock:
            self._is_closed = True
            for sleeper in self._sleepers:
                sleeper.release()
            self._sleepers.clear()

    def _wake_one(self) -> None:
        if self._is_waking or not self._runs:
            return
        if self._sleepers:
            self._is_waking = True
            self._sleepers.pop().release()
        else:
            self._is_waking = self._grow()

    def _sleep(self, timeout: float) -> Run | None:
        """Wait for a run: whoever was woken takes one, and wakes the next where more are left."""
        bed = threading.Lock()
        while True:
            with self._lock:
                if self._runs:
                    run = self._runs.popleft()
                    self._wake_one()
                    return run
                if self._is_closed:
                    return None
                bed.acquire(blocking=False)
                self._sleepers.append(bed)
            if not self._is_woken(bed, timeout):
                return None

    def _is_woken(self, bed: threading.Lock, timeout: float) -> bool:
        is_woken = bed.acquire(timeout=timeout)
        with self._lock:
            if not is_woken and bed in self._sleepers:
                self._sleepers.remove(bed)
                return False
            self._is_waking = False
            return True
