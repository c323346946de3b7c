"""Defines the clock of a simulation: its time stands still until the simulation moves it."""

from __future__ import annotations

from rota.model.micros import SECOND

START = 1_800_000_000 * SECOND  # a whole minute and a whole hour
BOOTED = 1_000.0  # what a monotonic clock shows at START


class SimulatedClock:
    """The store's clock and every node's monotonic clock in one."""

    def __init__(self, start: int = START) -> None:
        self._start = start
        self._now = start

    def now(self) -> int:
        return self._now

    def monotonic(self) -> float:
        return BOOTED + (self._now - self._start) / SECOND

    def advance(self, micros: int) -> None:
        self._now += max(0, micros)

    def advance_to(self, instant: int) -> None:
        self._now = max(self._now, instant)
