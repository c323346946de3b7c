"""Sends one message to one channel, by its kind."""

from __future__ import annotations

import asyncio
import logging
from inspect import isawaitable
from typing import TYPE_CHECKING, assert_never

from rota.alerts.http_client import HttpClient
from rota.alerts.mail import send_mail
from rota.clock import utc_micros
from rota.errors import AlertNotSent
from rota.model.alerts.findings import shortened
from rota.model.alerts.message import body_of, signed_headers
from rota.model.micros import SECOND

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from rota.alerts.plan import AlertPlan
    from rota.model.alerts.channel import Channel
    from rota.model.alerts.message import Alert

log = logging.getLogger("rota.alerts")


class Sender:
    """Sends messages of one app."""

    def __init__(self, plan: AlertPlan, client: HttpClient | None = None) -> None:
        self._plan = plan
        self.client = client or HttpClient(plan.settings.alerting.networks)

    def send(self, channel: Channel, alert: Alert) -> None:
        """Returns when the receiver has accepted the message; else AlertNotSent has the reason."""
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
    except BaseException as err:  # SystemExit, too: it would end a thread that other messages need
        log.exception("the function of the alert channel %s failed", channel.name)
        raise AlertNotSent(f"its function raised {type(err).__name__}: {shortened(str(err))}") from err


async def _awaited(answer: Awaitable[object]) -> None:
    await answer
