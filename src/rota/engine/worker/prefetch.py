"""PrefetchLimit: how many jobs a worker may hold: its slots, and when jobs are short, what ends in the next 50 ms."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

AHEAD = 0.05  # seconds
SOON = 1.0  # seconds within which whatever is held should begin
MOST_HELD = 900
WINDOW = 0.1  # seconds over which the rate is measured


class PrefetchLimit:
    """Counts endings, and follows their rate."""

    def __init__(self, slots: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._slots = slots
        self._monotonic = monotonic
        self._count = 0
        self._rate = 0.0
        self._since = monotonic()

    def ended(self) -> None:
        self._count += 1

    def room(self, held: int, stuck: int) -> int:
        """How many more jobs to claim. Slots that are stuck take none."""
        slots = self._slots - stuck
        if slots <= 0:
            return 0
        ahead = min(MOST_HELD - slots, int(self._current_rate() * AHEAD))
        return slots + max(0, ahead) - held

    def excess(self, waiting: int) -> int:
        """How many of those that have not begun cannot begin soon: jobs take longer than when they were claimed."""
        return max(0, waiting - max(self._slots, int(self._current_rate() * SOON)))

    def _current_rate(self) -> float:
        now = self._monotonic()
        passed = now - self._since
        if passed >= WINDOW:
            self._rate = self._count / passed
            self._count, self._since = 0, now
        return max(self._rate, self._count / WINDOW)
