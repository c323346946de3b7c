"""Bells without threads: a ring is a flag, which the simulation reads before it decides who moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.shared.bells import LocalBell, LocalBells

if TYPE_CHECKING:
    from rota.store.contract import Channel


class SimulatedBell(LocalBell):
    """A bell that nobody can wait for: its listener is moved by the simulation once it has rung."""

    def __init__(self, bells: LocalBells, channel: Channel) -> None:
        super().__init__(bells, channel)
        self.has_rung = False

    def wait(self, timeout: float) -> bool:
        del timeout
        rang, self.has_rung = self.has_rung, False
        return rang

    def ring(self) -> None:
        self.has_rung = True


class SimulatedBells(LocalBells):
    """All bells of a simulated store."""

    def listen(self, channel: Channel) -> SimulatedBell:
        bell = SimulatedBell(self, channel)
        with self._lock:
            self._all = (*self._all, bell)
        return bell
