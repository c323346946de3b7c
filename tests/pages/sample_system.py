"""More of the shop: tasks with every kind of parameter, tenants, sources, a paused queue and a node that is gone."""

from __future__ import annotations

from datetime import date, datetime  # noqa: TC003 - hints are read when a form is made
from decimal import Decimal  # noqa: TC003
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

from alerts.stage import raised_alert
from rota import cron, every
from rota.model.alerts.incident import Delivery
from rota.model.micros import SECOND, datetime_of
from rota.store.contract import Node

if TYPE_CHECKING:
    from rota import App


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


def declare_system(app: App) -> None:
    @app.task(name="reports.export", queue="reports", retries=2, timeout="10m")
    def export(
        day: date,
        kind: Literal["csv", "pdf"],
        columns: list[str],
        title: str = "",
        limit: int | None = None,
        share: float = 1.0,
        colour: Colour = Colour.RED,
        at: datetime | None = None,
        price: Decimal | None = None,
        *,
        notify: bool = False,
        api_token: str = "",
        **more: Any,
    ) -> str:
        """Write a report of one day.

        It is put where the accountants look for it."""
        return f"{day} {kind} {columns} {title} {limit} {share} {colour} {at} {price} {notify} {api_token} {more}"

    @app.task(name="usage.bill")
    def bill() -> None: ...

    @app.sources.declare("store", [{"name": "orders", "schedule": "@hourly"}, "customers"])
    @app.task(name="store.sync")
    def sync(source: str, collection: str) -> None:
        print(f"syncing {source}/{collection}")  # noqa: T201 - into its log


def fill_system(app: App) -> None:
    bill = app.__rota_tasks__.get("usage.bill")
    app.tenants.put("acme", tz="Asia/Kolkata", queue="billing", priority=5, description="Acme Ltd", by="ann")
    app.tenants.put("bolt", tz="America/New_York", by="ann")
    app.schedules.put("usage-acme", bill.job(), cron("5 0 * * *"), tenant="acme", by="ann")
    app.schedules.put("usage-bolt", bill.job(), every("30m"), tenant="bolt", by="ann")
    app.tenants.pause("bolt", reason="the invoice is open", by="ann")
    app.queues.pause("reports", reason="the disk is full", by="ann")
    app.sources.run("store", "customers", by="ann")
    gone = app.open().now() - 3_600 * SECOND  # it stays silent however long the test takes
    node = Node(
        id="build-7.4711.gone", host="build-7", pid=4711, roles=("worker", "scheduler"), queues=("default", "payments"),
        tasks=("mail.send", "legacy.import"), concurrency=16, app="shop", version="2.3", started_at=gone,
        beat_at=gone,
    )  # fmt: skip
    app.open().record_heartbeat(node, now=gone)
    fill_alerts(app)


def fill_alerts(app: App) -> None:
    """Rules, channels, and alerts that are open, silenced and over."""
    alerts, now = app.alerts, app.open().now()
    alerts.webhook("ops", "https://hooks.example.org/T0/very-secret", secret="0123456789abcdef")  # noqa: S106 - hidden
    alerts.channel("pager")(repr)
    alerts.add("invoices", when="fails", schedule="invoices-*", channels=["ops"])
    alerts.add("backlog", when="length", queue="mail", more_than=1000)
    alerts.add("nodes", when="node_gone")
    alerts.put("reports-late", when="late", schedule="nightly-*", after="10m", channels=["pager"], by="ann")
    sent = Delivery(channel="ops", message="raised", state="sent", tries=1, at=now)
    down = Delivery(
        channel="ops", message="raised", tries=3, due_at=now + 60 * SECOND, error="the webhook answered with status 503"
    )
    text = "A run of schedule invoices-sync failed: ConnectionError: bank.example:443 did not answer in 30 s"
    raised_alert(app, "invoices", "invoices-sync", when="fails", text=text, deliveries=(sent,))
    gone = "Node build-7-1234 is gone: its last heartbeat was at 2026-11-18T09:00:00Z."
    raised_alert(app, "nodes", "build-7-1234", when="node_gone", text=gone, deliveries=(down,))
    over = "Queue mail is within its limit again; 12 jobs wait."
    long = "In queue mail, 1,203 jobs wait (limit 1,000)."
    end = Delivery(channel="ops", message="recovered", state="sent", tries=1, at=now)
    raised_alert(
        app, "backlog", "mail", when="length", text=long, state="ended", ended_at=now, end_text=over,
        deliveries=(sent, end),
    )  # fmt: skip
    alerts.silence("backlog", until=datetime_of(now + 3600 * SECOND), reason="the importer runs", by="ann")
