"""A stage for alerts: a store with a clock that a test moves, several nodes' watches that turn by hand, and what was
sent."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from amounts import PATIENCE
from rota import App
from rota.alerts.watch import AlertWatch
from rota.app import internals
from rota.engine.store_clock import StoreClock
from rota.errors import AlertNotSent
from rota.model.alerts.incident import KIND, Incident, pack
from rota.model.entry import EntryEdit
from rota.model.micros import SECOND
from rota.store.contract import Node

if TYPE_CHECKING:
    from rota.alerts.plan import AlertPlan
    from rota.model.alerts.channel import Channel
    from rota.model.alerts.message import Alert
    from rota.store.contract import Store


class Receiver:
    """Takes messages, or refuses them."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Alert]] = []
        self.is_down = False

    def send(self, channel: Channel, alert: Alert) -> None:
        if self.is_down:
            raise AlertNotSent("the receiver is down")
        self.sent.append((channel.name, alert))

    @property
    def events(self) -> list[tuple[str, str, str]]:
        return [(channel, alert.event.removeprefix("alert."), alert.subject) for channel, alert in self.sent]


class MovedStore:
    """A store whose clock a test sets forward."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.ahead = 0

    def now(self) -> int:
        return self.store.now() + self.ahead

    def __getattr__(self, verb: str) -> Any:
        return getattr(self.store, verb)


class AlertStage:
    """An app on a store, and as many nodes of it as a test wants."""

    def __init__(self, store: Store) -> None:
        self.app = App(store, name="shop")
        self.app.open()
        self.store: Any = MovedStore(self.app.open())
        self.receiver = Receiver()
        self.watches: list[AlertWatch] = []

        @self.app.alerts.channel("pager")
        def page(alert: Alert) -> None:
            raise AssertionError(alert)  # the receiver stands in for every channel

    @property
    def plan(self) -> AlertPlan:
        return self.app.alerts.plan

    def node(self, name: str) -> AlertWatch:
        clock = StoreClock(self.store.now, self.monotonic)
        events = internals(self.app).events
        watch = AlertWatch(self.store, events, clock, self.plan, self.receiver, app="shop", node=name)
        self.watches.append(watch)
        return watch

    def monotonic(self) -> float:
        return time.monotonic() + self.store.ahead / SECOND

    def skip(self, seconds: float) -> None:
        self.store.ahead += int(seconds * SECOND)

    def turn(self, *watches: AlertWatch) -> None:
        """Let these nodes check, and wait until all messages were sent or refused."""
        for watch in watches or self.watches:
            watch.turn()
        for watch in self.watches:
            assert watch.threads.wait_until_idle(PATIENCE)

    def beat(self, **said: Any) -> None:
        """A worker that takes the queue `default` is alive."""
        node = Node(**{"id": "w", "host": "h", "pid": 1, "roles": ("worker",), "queues": ("default",), **said})
        self.store.record_heartbeat(node, now=self.store.now())

    def open_alerts(self) -> list[str]:
        return [one.subject for one in self.app.alerts.list(state="open").items]


def raised_alert(app: App, rule: str, subject: str, **said: Any) -> Incident:
    """An alert as a node has recorded it."""
    now = app.open().now()
    usual = {"when": "oldest", "state": "open", "since": now, "checked_at": now, "raised_at": now, "text": "It waits."}
    incident = Incident(app=app.name, rule=rule, subject=subject, **{**usual, **said})
    edit = EntryEdit(kind=KIND, name=incident.id, expect_version=0, data=pack(incident))
    app.open().edit_entries([edit])
    return incident
