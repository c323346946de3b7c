"""Waits for notifications between hosts: a thread reads a channel of the server."""

from __future__ import annotations

import secrets
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from redis.exceptions import NoPermissionError, RedisError

from rota.store.shared.notify import EventListener

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.jobs.job import Job
    from rota.store.contract import Channel
    from rota.store.redis.connection import Connection
    from rota.store.redis.fast.direct_claims import DirectClaims

QUIET = 30.0  # seconds without a message after which the server is sent a PING
DEADLINE = 5.0  # seconds for an answer
PAUSE = 1.0  # seconds between two attempts to subscribe again


class ChannelListener(EventListener):
    """One subscription, and the thread that reads it. If the connection breaks, the thread subscribes again.

    A listener for jobs also reads a channel of its own, for jobs that were claimed for the workers of this process.
    """

    def __init__(self, connection: Connection, channel: Channel, direct_claims: DirectClaims) -> None:
        super().__init__()
        self._client = connection.client
        self._channels = [f"{connection.prefix}notify:{channel}"]
        self._direct_claims = direct_claims
        self._own = f"{connection.prefix}notify:{channel}:{secrets.token_hex(8)}"
        self._closed = threading.Event()
        if channel == "jobs" and connection.reads_bytes:
            self._channels.append(self._own)
        with connection.translated():
            try:
                self._subscription = self._subscribe()
            except NoPermissionError:  # the server's ACL may allow the channel of the namespace alone
                self._channels = self._channels[:1]
                self._subscription = self._subscribe()
        self.call_when_claimed(self.wake)
        threading.Thread(target=self._run, name="rota-listener", daemon=True).start()

    def take_claimed(self, holder: str) -> list[Job]:
        return self._direct_claims.take(holder)

    def call_when_claimed(self, act: Callable[[], None]) -> None:
        if self._own in self._channels:
            self._direct_claims.open(self._own, act)

    def close(self) -> None:
        self._direct_claims.close(self._own)
        self._closed.set()
        with suppress(Exception):  # the thread may be closing it, too
            self._subscription.unsubscribe()  # ends the read of the thread

    def _run(self) -> None:
        """The driver fails in any way when a connection is closed by another thread: every failure is a broken one."""
        while not self._closed.is_set():
            with suppress(Exception):
                self._read()
            with suppress(Exception):
                self._subscription.close()
            self.wake()  # notifications may have been missed
            self._subscribe_again()

    def _subscribe_again(self) -> None:
        while not self._closed.is_set():
            with suppress(RedisError, OSError, ValueError):
                self._subscription = self._subscribe()
                self.wake()
                return
            self._closed.wait(PAUSE)

    def _read(self) -> None:
        """Until the listener is closed or the connection breaks."""
        while not self._closed.is_set():
            if self._next_message(QUIET) is None:
                self._subscription.ping()
                if self._next_message(DEADLINE) is None:  # any message says that the connection works
                    raise OSError("no answer to PING")

    def _next_message(self, timeout: float) -> dict[str, Any] | None:
        """Wake the caller if it is a notification, or if the driver has subscribed again: some may have been missed."""
        message: dict[str, Any] | None = self._subscription.get_message(timeout=timeout)
        if message is None or message["type"] not in {"message", "subscribe"}:
            return message
        if message["type"] == "message" and self._own in self._channels:
            self._direct_claims.receive(message["data"])
        if not (message["type"] == "message" and message["data"]):
            self.wake()
        return message

    def _subscribe(self) -> Any:
        """Subscribe, and wait for the answers: from here on, no notification is missed."""
        subscription = self._client.pubsub()
        try:
            subscription.subscribe(*self._channels)
            until = time.monotonic() + DEADLINE
            missing = len(self._channels)
            while missing:
                message = subscription.get_message(timeout=DEADLINE)
                missing -= message is not None and message["type"] == "subscribe"
                if time.monotonic() > until:
                    raise OSError("no answer to SUBSCRIBE")  # noqa: TRY301 - the caller translates it
        except BaseException:
            subscription.close()
            raise
        return subscription
