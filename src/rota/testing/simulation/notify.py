"""Sends notifications without threads: each sets a flag, which the simulation reads before it chooses a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.shared.notify import LocalListener, LocalNotifier

if TYPE_CHECKING:
    from rota.store.contract import Channel


class SimulatedListener(LocalListener):
    """A listener that does not wait: the simulation turns its service after it was woken."""

    def __init__(self, notifier: LocalNotifier, channel: Channel) -> None:
        super().__init__(notifier, channel)
        self.was_woken = False

    def wait(self, timeout: float) -> bool:
        del timeout
        was_woken, self.was_woken = self.was_woken, False
        return was_woken

    def wake(self) -> None:
        self.was_woken = True


class SimulatedNotifier(LocalNotifier):
    """All listeners of a simulated store."""

    def listen(self, channel: Channel) -> SimulatedListener:
        listener = SimulatedListener(self, channel)
        with self._lock:
            self._all = (*self._all, listener)
        return listener
