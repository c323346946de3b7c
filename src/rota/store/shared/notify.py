"""Notifications within one process: a write wakes the threads that wait for jobs or schedules."""

from __future__ import annotations

from threading import Event, Lock
from typing import TYPE_CHECKING

from rota.store.contract import Listener

if TYPE_CHECKING:
    from rota.store.contract import Channel


class EventListener(Listener):
    """A listener that any thread of this process can wake."""

    def __init__(self) -> None:
        self._event = Event()

    def wait(self, timeout: float) -> bool:
        was_woken = self._event.wait(timeout)
        self._event.clear()
        return was_woken

    def wake(self) -> None:
        self._event.set()


class LocalListener(EventListener):
    """A listener for the writes of this process, or for those that a thread of it hears of."""

    def __init__(self, notifier: LocalNotifier, channel: Channel) -> None:
        super().__init__()
        self._notifier = notifier
        self.channel = channel

    def close(self) -> None:
        self._notifier.forget(self)


class LocalNotifier:
    """All listeners of one store in one process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._all: tuple[LocalListener, ...] = ()

    def listen(self, channel: Channel) -> LocalListener:
        listener = LocalListener(self, channel)
        with self._lock:
            self._all = (*self._all, listener)
        return listener

    def forget(self, listener: LocalListener) -> None:
        with self._lock:
            self._all = tuple(other for other in self._all if other is not listener)

    def notify(self, channel: Channel) -> None:
        for listener in self._all:
            if listener.channel == channel:
                listener.wake()
