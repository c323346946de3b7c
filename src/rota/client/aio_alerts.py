"""Defines app.aio.alerts: the verbs of `app.alerts` for coroutines."""

from __future__ import annotations

from rota.client.alerts import Alerts
from rota.client.awaited import Awaited, Shell


class AsyncAlerts(Shell):
    """app.aio.alerts"""

    rule = Awaited(Alerts.rule)
    rules = Awaited(Alerts.rules)
    list = Awaited(Alerts.list)
    get = Awaited(Alerts.get)
    put = Awaited(Alerts.put)
    remove = Awaited(Alerts.remove)
    silence = Awaited(Alerts.silence)
    unsilence = Awaited(Alerts.unsilence)
    test = Awaited(Alerts.test)
