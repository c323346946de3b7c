"""Notifications between processes on one host: each listener binds a datagram socket beside the database file."""

from __future__ import annotations

import itertools
import os
import socket
from typing import TYPE_CHECKING

from rota.clock import utc_micros
from rota.store.contract import Listener

if TYPE_CHECKING:
    from pathlib import Path

    from rota.store.contract import Channel

UNSETTLED = 50_000  # microseconds: a folder's time stamp is coarse, so two changes in one tick look like one

_numbers = itertools.count()


class SocketListener(Listener):
    """One listener: a socket whose name says what it listens for."""

    def __init__(self, notifier: Notifier, channel: Channel) -> None:
        self._notifier = notifier
        self._name = f"{channel}-{os.getpid()}-{next(_numbers)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(notifier.address(self._name))

    def wait(self, timeout: float) -> bool:
        self._socket.settimeout(max(timeout, 0.000_001))
        try:
            self._socket.recv(1)
        except TimeoutError:
            return False
        except OSError:
            return True  # closed by another thread: the caller looks for itself
        self._drain()
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

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor = -1
        self._sender: socket.socket | None = None
        self._seen: tuple[int, tuple[str, ...]] = (-1, ())

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
        """The sockets in the folder, which is listed again only when it has changed."""
        try:
            stamp = os.stat(self._folder).st_mtime_ns  # noqa: PTH116 - hot
            if stamp != self._seen[0] or utc_micros() - stamp // 1000 < UNSETTLED:
                self._seen = (stamp, tuple(os.listdir(self._folder)))  # noqa: PTH208 - hot
        except OSError:
            return ()
        return self._seen[1]
