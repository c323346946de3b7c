"""Sends one message to one channel, by its kind; and a small pool of threads, so that no loop waits for a receiver."""

from __future__ import annotations

import asyncio
import logging
import threading
from inspect import isawaitable
from queue import SimpleQueue
from typing import TYPE_CHECKING, assert_never

from rota.alerts.http_client import HttpClient
from rota.alerts.mail import send_mail
from rota.clock import utc_micros
from rota.errors import AlertNotSent
from rota.model.alerts.message import body_of, signed_headers
from rota.model.micros import SECOND

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rota.alerts.plan import AlertPlan
    from rota.model.alerts.channel import Channel
    from rota.model.alerts.message import Alert

log = logging.getLogger("rota.alerts")

THREADS = 4
STOP_FOR = 2.0  # seconds that a node which stops waits for its messages


class Sender:
    """Sends messages of one app."""

    def __init__(self, plan: AlertPlan, client: HttpClient | None = None) -> None:
        self._plan = plan
        self.client = client or HttpClient(plan.settings.alerting.networks)

    def send(self, channel: Channel, alert: Alert) -> None:
        """Returns when the receiver has taken the message; else AlertNotSent says why it did not."""
        if problems := self._plan.problems(channel):
            raise AlertNotSent("; ".join(problems))
        match channel.kind:
            case "webhook":
                self._post(channel, alert)
            case "email":
                send_mail(self._plan.settings.smtp, channel.to, alert)
            case "python":
                _call(channel, alert)
            case _:
                assert_never(channel.kind)

    def _post(self, channel: Channel, alert: Alert) -> None:
        body = body_of(alert)
        url, secret = self._plan.url(channel.url), self._plan.secret(channel)
        timestamp = utc_micros() // SECOND  # of this host: the receiver compares it with its own clock
        headers = {"Content-Type": "application/json", **signed_headers(alert, secret, timestamp, body)}
        status = self.client.send("POST", url, body, headers)
        if not 200 <= status < 300:
            what = "a redirect, which is not followed" if 300 <= status < 400 else "no success"
            raise AlertNotSent(f"the webhook answered with status {status}: {what}")


def _call(channel: Channel, alert: Alert) -> None:
    if channel.handler is None:
        raise AlertNotSent(f"the channel {channel.name} has no function in this process")
    try:
        answer = channel.handler(alert)
        if isawaitable(answer):
            asyncio.run(_awaited(answer))
    except Exception as err:
        log.exception("the function of the alert channel %s failed", channel.name)
        raise AlertNotSent(f"its function raised {type(err).__name__}: {err}") from err


async def _awaited(answer: Awaitable[object]) -> None:
    await answer


class SendingThreads:
    """Daemon threads, started when they are first needed. A node that ends does not wait long for them: what was
    claimed and not sent is sent by another node."""

    def __init__(self, name: str, threads: int = THREADS) -> None:
        self._name = name
        self._most = threads
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._waiting = 0
        self._idle = threading.Condition(self._lock)

    def call(self, function: Callable[[], None]) -> None:
        with self._lock:
            self._waiting += 1
            if len(self._threads) < min(self._most, self._waiting):
                thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._threads.append(thread)
                thread.start()
        self._calls.put(function)

    @property
    def waiting(self) -> int:
        """Calls that have not ended."""
        return self._waiting

    def wait_until_idle(self, seconds: float = STOP_FOR) -> bool:
        """False if a call has not ended in time."""
        with self._idle:
            return self._idle.wait_for(lambda: self._waiting == 0, seconds)

    def close(self) -> None:
        for _ in self._threads:
            self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            except Exception:
                log.exception("a message could not be sent")
            finally:
                with self._idle:
                    self._waiting -= 1
                    self._idle.notify_all()
