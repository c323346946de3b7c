"""Bells between hosts: a channel of the server's, listened to in the waiting thread itself."""

from __future__ import annotations

import select
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError

from rota.store.contract import Bell

if TYPE_CHECKING:
    from rota.store.contract import Channel
    from rota.store.redis.link import Link

QUIET = 30.0  # seconds without a word after which the link is asked whether it still is one
PATIENCE = 5.0  # seconds for the answer


class ChannelBell(Bell):
    """One listener: a subscription, and a pair of sockets for whoever rings in this process."""

    def __init__(self, link: Link, channel: Channel) -> None:
        self._link = link
        self._channel = f"{link.prefix}bell:{channel}"
        self._here, self._there = socket.socketpair()
        self._here.setblocking(False)  # noqa: FBT003 - the stdlib's own signature
        self._there.setblocking(False)  # noqa: FBT003 - likewise
        self._subscription: Any = None
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
            if self._subscription is None:
                self._subscribe()
                return True  # what came while nobody listened did not ring
            return self._listen(until)
        except (RedisError, OSError, ValueError):
            was_listening = self._subscription is not None
            self._unsubscribe()
            return was_listening or self._wait_here(until)  # a broken link: look around once, then poll

    def ring(self) -> None:
        with suppress(OSError):  # full: it has been rung already; closed: nobody waits
            self._there.send(b"!")

    def close(self) -> None:
        self._unsubscribe()
        self._here.close()
        self._there.close()

    def _listen(self, until: float) -> bool:
        while True:
            if self._drain():
                return True
            left = until - time.monotonic()
            if left <= 0:
                return False
            link = self._subscription.connection._sock  # noqa: SLF001 - the driver cannot wait for two things
            _wait_for(min(left, self._check_link()), link, self._here)

    def _drain(self) -> bool:
        """Take every ring that has come, from here and from there: many rings are one."""
        rang = False
        with suppress(BlockingIOError):
            while self._here.recv(4096):
                rang = True
        while (message := self._subscription.get_message(timeout=0)) is not None:
            self._heard_at, self._asked_at = time.monotonic(), None
            rang = rang or message["type"] == "message"
        return rang

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
        _wait_for(max(0.0, until - time.monotonic()), self._here)
        rang = False
        with suppress(BlockingIOError):
            while self._here.recv(4096):
                rang = True
        return rang

    def _subscribe(self) -> None:
        """Listen, and be sure of it: from here on nothing that rings is missed."""
        subscription = self._link.client.pubsub()
        try:
            subscription.subscribe(self._channel)
            until = time.monotonic() + PATIENCE
            while (message := subscription.get_message(timeout=PATIENCE)) is None or message["type"] != "subscribe":
                if time.monotonic() > until:
                    raise OSError("no answer to SUBSCRIBE")  # noqa: TRY301 - told by whoever called
        except BaseException:
            subscription.close()
            raise
        self._subscription = subscription
        self._heard_at, self._asked_at = time.monotonic(), None

    def _unsubscribe(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            with suppress(RedisError, OSError):
                subscription.close()


def _wait_for(seconds: float, *links: socket.socket) -> None:
    """Block until one of them can be read, or the time is over; select() would not take the thousandth file."""
    watch = select.poll()
    for link in links:
        watch.register(link, select.POLLIN)
    watch.poll(seconds * 1000)
