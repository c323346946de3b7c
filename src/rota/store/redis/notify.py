"""Notifications between hosts: a channel of the server's, to which the waiting thread itself listens."""

from __future__ import annotations

import select
import socket
import ssl
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import hiredis
from redis.exceptions import RedisError

from rota.store.contract import Listener

if TYPE_CHECKING:
    from rota.store.contract import Channel
    from rota.store.redis.link import Link

QUIET = 30.0  # seconds without a word after which the link is asked whether it still is one
PATIENCE = 5.0  # seconds for the answer
CHUNK = 65_536

_NOTHING_YET = object()


class ChannelListener(Listener):
    """One listener: a subscription, and a pair of sockets for wake() in this process."""

    def __init__(self, link: Link, channel: Channel) -> None:
        self._link = link
        self._channel = f"{link.prefix}notify:{channel}"
        self._here, self._there = socket.socketpair()
        self._here.setblocking(False)  # noqa: FBT003 - the stdlib's own signature
        self._there.setblocking(False)  # noqa: FBT003 - likewise
        self._subscription: Any = None
        self._ear: _Ear | None = None  # there is one as long as there is a subscription
        self._heard_at = 0.0
        self._asked_at: float | None = None  # when the link was asked for a sign of life
        try:
            with link.told():
                self._subscribe()
        except BaseException:
            self.close()
            raise

    def wait(self, timeout: float) -> bool:
        until = time.monotonic() + timeout
        try:
            if self._ear is None:
                self._subscribe()
                return True  # what came while nobody listened was not heard
            return self._listen(self._ear, until)
        except (RedisError, OSError, ValueError):
            was_listening = self._ear is not None
            self._unsubscribe()
            return was_listening or self._wait_here(until)  # a broken link: look around once, then poll

    def wake(self) -> None:
        with suppress(OSError):  # full: it has been woken already; closed: nobody waits
            self._there.send(b"!")

    def close(self) -> None:
        self._unsubscribe()
        self._here.close()
        self._there.close()

    def _listen(self, ear: _Ear, until: float) -> bool:
        while True:
            left = min(max(0.0, until - time.monotonic()), self._check_link())
            ready = _readable(left, ear.socket, self._here)
            was_woken = self._here.fileno() in ready and self._take_wakes()
            was_notified = ear.socket.fileno() in ready and self._hear(ear)
            if was_woken or was_notified:
                return True
            if time.monotonic() >= until:
                return False

    def _take_wakes(self) -> bool:
        """Take every wake-up that has come from this process: many are one."""
        came = False
        with suppress(BlockingIOError):
            while len(self._here.recv(4096)) == 4096:
                came = True
            came = True
        return came

    def _hear(self, ear: _Ear) -> bool:
        said = ear.hear()
        if said:
            self._heard_at, self._asked_at = time.monotonic(), None
        return any(isinstance(word, list) and word[0] == b"message" for word in said)

    def _check_link(self) -> float:
        """A link that says nothing may be dead: ask it. How many seconds may pass until the next look."""
        now = time.monotonic()
        if self._asked_at is not None and now - self._asked_at > PATIENCE:
            raise OSError("the link is deaf")
        if self._asked_at is None and now - self._heard_at > QUIET:
            self._subscription.ping()
            self._asked_at = now
        return PATIENCE if self._asked_at is not None else QUIET

    def _wait_here(self, until: float) -> bool:
        ready = _readable(max(0.0, until - time.monotonic()), self._here)
        return bool(ready) and self._take_wakes()

    def _subscribe(self) -> None:
        """Listen, and be sure of it: from here on no notification is missed."""
        subscription = self._link.client.pubsub()
        try:
            subscription.subscribe(self._channel)
            until = time.monotonic() + PATIENCE
            while (message := subscription.get_message(timeout=PATIENCE)) is None or message["type"] != "subscribe":
                if time.monotonic() > until:
                    raise OSError("no answer to SUBSCRIBE")  # noqa: TRY301 - told by whoever called
            while subscription.get_message(timeout=0) is not None:
                pass  # nobody waits yet
        except BaseException:
            subscription.close()
            raise
        self._subscription, self._ear = subscription, _Ear(subscription.connection)
        self._heard_at, self._asked_at = time.monotonic(), None

    def _unsubscribe(self) -> None:
        subscription, self._subscription, self._ear = self._subscription, None, None
        if subscription is not None:
            with suppress(RedisError, OSError):
                subscription.close()


class _Ear:
    """Reads what a subscription says as it comes: the driver's own way takes longer than all else between two hosts."""

    def __init__(self, connection: Any) -> None:
        self.socket = connection._sock  # noqa: SLF001 - the driver cannot wait for two things
        self.socket.setblocking(False)  # noqa: FBT003 - likewise
        self._reader = hiredis.Reader(notEnoughData=_NOTHING_YET)

    def hear(self) -> list[Any]:
        """All that was said."""
        with suppress(BlockingIOError, ssl.SSLWantReadError):
            while True:
                chunk = self.socket.recv(CHUNK)
                if not chunk:
                    raise OSError("the server has gone")
                self._reader.feed(chunk)
                if len(chunk) < CHUNK and not isinstance(self.socket, ssl.SSLSocket):
                    break
        said = []
        while (word := self._reader.gets(False)) is not _NOTHING_YET:  # noqa: FBT003 - its only signature: as bytes
            said.append(word)
        return said


def _readable(seconds: float, *links: socket.socket) -> set[int]:
    """Which can be read, as soon as one can, or none in time; select() would not take the thousandth file."""
    watch = select.poll()
    for link in links:
        watch.register(link, select.POLLIN)
    return {number for number, _ in watch.poll(seconds * 1000)}
