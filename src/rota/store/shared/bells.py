"""Bells within one process: who waits for jobs or schedules, and who is woken by a write."""

from __future__ import annotations

from threading import Event, Lock
from typing import TYPE_CHECKING

from rota.store.contract import Bell

if TYPE_CHECKING:
    from rota.store.contract import Channel


class LocalBell(Bell):
    """A bell that any thread of this process can ring."""

    def __init__(self, bells: LocalBells, channel: Channel) -> None:
        self._bells = bells
        self._event = Event()
        self.channel = channel

    def wait(self, timeout: float) -> bool:
        rang = self._event.wait(timeout)
        self._event.clear()
        return rang

    def ring(self) -> None:
        self._event.set()

    def close(self) -> None:
        self._bells.forget(self)


class LocalBells:
    """All bells of one store in one process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._all: tuple[LocalBell, ...] = ()

    def listen(self, channel: Channel) -> LocalBell:
        bell = LocalBell(self, channel)
        with self._lock:
            self._all = (*self._all, bell)
        return bell

    def forget(self, bell: LocalBell) -> None:
        with self._lock:
            self._all = tuple(other for other in self._all if other is not bell)

    def ring(self, channel: Channel) -> None:
        for bell in self._all:
            if bell.channel == channel:
                bell.ring()
