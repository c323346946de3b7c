"""Notifications between processes on one host: each listener binds a datagram socket beside the database file.

A job in a caller's own transaction appears when that commits, and SQLite notifies nobody. So the file `expected` is
touched when such a job is written. For a minute from then on, listeners look every 5 ms whether the database changed.
"""

from __future__ import annotations

import itertools
import os
import socket
import time
from typing import TYPE_CHECKING

from rota.clock import utc_micros
from rota.model.micros import SECOND
from rota.store.contract import Listener

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rota.store.contract import Channel

UNSETTLED = 50_000  # microseconds: a folder's time stamp is coarse, so two changes in one tick look like one

EXPECTED = "expected"  # the file that is touched when a caller's transaction has written a job
WATCH_FOR = 60.0  # seconds; a transaction that stays open for longer is found by the worker's poll
LOOK = 0.005  # seconds between two looks

_numbers = itertools.count()


class SocketListener(Listener):
    """One listener: a socket whose name says what it listens for."""

    def __init__(self, notifier: Notifier, channel: Channel) -> None:
        self._notifier = notifier
        self._name = f"{channel}-{os.getpid()}-{next(_numbers)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(notifier.address(self._name))
        self._version: int | None = None  # of the database, while a commit is expected
        self._watch_until = time.monotonic() + notifier.expected_for()

    def wait(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while (now := time.monotonic()) < self._watch_until:
            if self._has_changed() or now >= deadline:
                return now < deadline
            if self._receive(min(LOOK, deadline - now)):
                return True
        self._version = None
        return self._receive(max(deadline - time.monotonic(), 0.0))

    def _has_changed(self) -> bool:
        """Whether something was committed since the last look; the first look says so, to be sure."""
        found = self._notifier.data_version()
        if found is None:
            return False
        before, self._version = self._version, found
        return before != found

    def _receive(self, timeout: float) -> bool:
        self._socket.settimeout(max(timeout, 0.000_001))
        try:
            self._socket.recv(1)
        except TimeoutError:
            return False
        except OSError:
            return True  # closed by another thread: the caller looks for itself
        self._drain()
        self._watch_until = max(self._watch_until, time.monotonic() + self._notifier.expected_for())
        return True

    def wake(self) -> None:
        self._notifier.send(self._name)

    def close(self) -> None:
        self._socket.close()
        self._notifier.remove(self._name)

    def _drain(self) -> None:
        """Many notifications are one."""
        self._socket.settimeout(0)
        try:
            while True:
                self._socket.recv(1)
        except OSError:
            return


class Notifier:
    """All listeners of one database file, of every process."""

    def __init__(self, folder: Path, data_version: Callable[[], int | None] = lambda: None) -> None:
        self._folder = folder
        self.data_version = data_version  # a number that changes with every commit of others; None if it is unknown
        self._descriptor = -1
        self._sender: socket.socket | None = None
        self._seen: tuple[int, tuple[str, ...]] = (-1, ())  # the folder's time stamp and the sockets that it had

    def open(self) -> None:
        if self._sender is not None:
            return
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setblocking(False)  # noqa: FBT003 - the stdlib's own signature

    def close(self) -> None:
        if self._sender is not None:
            self._sender.close()
            self._sender = None
            os.close(self._descriptor)

    def listen(self, channel: Channel) -> SocketListener:
        return SocketListener(self, channel)

    def notify(self, channel: Channel) -> None:
        """Wake everyone who listens for this."""
        for name in self._listeners():
            if name.startswith(channel):
                self.send(name)

    def expect(self, channel: Channel) -> None:
        """A transaction of a caller has written something for these listeners, and may commit at any time."""
        self.open()
        (self._folder / EXPECTED).touch()
        self.notify(channel)

    def expected_for(self) -> float:
        """Seconds for which a commit of a caller is still expected; none if 0 or less."""
        try:
            touched = os.stat(self._folder / EXPECTED).st_mtime  # noqa: PTH116 - hot
        except OSError:
            return 0.0
        return WATCH_FOR - max(0.0, utc_micros() / SECOND - touched)

    def address(self, name: str) -> str:
        """A socket's path may have about 100 characters; the folder's descriptor keeps it short."""
        short = f"/proc/self/fd/{self._descriptor}/{name}"
        return short if os.path.exists("/proc/self/fd") else str(self._folder / name)  # noqa: PTH110 - hot

    def send(self, name: str) -> None:
        if self._sender is None:
            return
        try:
            self._sender.sendto(b"!", self.address(name))
        except BlockingIOError:
            return  # its buffer is full: it has been notified already
        except OSError:
            self.remove(name)  # a listener that died without closing

    def remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)

    def _listeners(self) -> tuple[str, ...]:
        """The sockets in the folder, which is listed again until no later change can have the same time stamp."""
        try:
            stamp = os.stat(self._descriptor).st_mtime_ns  # noqa: PTH116 - hot; by its path it would cost twice as much
            if stamp != self._seen[0]:
                is_settled = utc_micros() - stamp // 1000 >= UNSETTLED
                names = tuple(os.listdir(self._folder))  # noqa: PTH208 - hot
                self._seen = (stamp if is_settled else -1, names)
        except OSError:
            return ()
        return self._seen[1]
