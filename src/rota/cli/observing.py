"""Observing: how a process that serves shows itself: the form of its log lines, and a port to scrape."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rota.config.settings import FORMATS
from rota.inspector.health import live, ready
from rota.observe.port import Answer, Port

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.app import App
    from rota.cli.tether import Tether
    from rota.engine.node import Node
    from rota.inspector.health import Health
    from rota.observe.metrics import Told

LARGEST_PORT = 65_535
JSON = "application/json"

format_option = click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    metavar="FORM",
    help="text, or json: one object per line.  [setting: log.format; default: text]",
)
port_option = click.option(
    "--metrics-port",
    type=click.IntRange(1, LARGEST_PORT),
    metavar="PORT",
    help="Serve /metrics, /live and /ready here; each of several processes has the next port.  [default: none]",
)
host_option = click.option(
    "--metrics-host",
    metavar="HOST",
    default="127.0.0.1",
    help="… at this address; 0.0.0.0 is every one that this host has.  [default: 127.0.0.1]",
)


class Address(NamedTuple):
    """Where metrics are wanted."""

    host: str
    port: int


def observed(command: Callable[..., None]) -> Callable[..., None]:
    """A command that serves, and shows itself."""

    @format_option
    @port_option
    @host_option
    @wraps(command)
    def start(*, metrics_port: int | None, metrics_host: str, **options: Any) -> None:
        at = None if metrics_port is None else Address(metrics_host, metrics_port)
        command(metrics_at=at, **options)

    return start


def own_address(at: Address | None, tether: Tether | None) -> Address | None:
    """The port that was named, or as many further on as this process's place under its parent says."""
    if at is None or tether is None:
        return at
    if at.port + tether.processes - 1 > LARGEST_PORT:
        raise click.UsageError(f"--metrics-port {at.port} leaves no ports for {tether.processes} processes")
    return Address(at.host, at.port + tether.place)


def open_port(app: App, node: Node, at: Address) -> Port:
    """Serve what this process has to show."""
    metrics = app.metrics
    port = Port(
        at.host,
        at.port,
        {
            "/metrics": lambda accept: _shown(metrics.told(accept)),
            "/metrics/own": lambda accept: _shown(metrics.own_told(accept)),
            "/live": lambda _: _told(live(node)),
            "/ready": lambda _: _told(ready(app.open, node)),
        },
    )
    port.start()
    return port


def _shown(told: Told) -> Answer:
    return Answer(200, told.kind, told.text)


def _told(health: Health) -> Answer:
    return Answer(health.status, JSON, health.json)
