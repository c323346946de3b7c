"""Sets up the log format and the metrics port of a process that serves."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rota.config.settings import FORMATS
from rota.inspector.health import OK, Health, live, ready
from rota.observe.port import Answer, Port

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.app import App
    from rota.cli.parent_connection import ParentConnection
    from rota.documents.service import QueueGroup
    from rota.engine.node import Node
    from rota.observe.metrics import Exposition

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
    help="The address of --metrics-port; 0.0.0.0 is every address of this host.  [default: 127.0.0.1]",
)


class Address(NamedTuple):
    """The address of the metrics port."""

    host: str
    port: int


def observed(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for logs and metrics to a command that serves."""

    @format_option
    @port_option
    @host_option
    @wraps(command)
    def start(*, metrics_port: int | None, metrics_host: str, **options: Any) -> None:
        at = None if metrics_port is None else Address(metrics_host, metrics_port)
        command(metrics_at=at, **options)

    return start


def own_address(at: Address | None, parent: ParentConnection | None) -> Address | None:
    """The given port, plus the number of this process under its parent."""
    if at is None or parent is None:
        return at
    if at.port + parent.processes - 1 > LARGEST_PORT:
        raise click.UsageError(f"--metrics-port {at.port} leaves no ports for {parent.processes} processes")
    return Address(at.host, at.port + parent.place)


def open_port(app: App, node: Node, at: Address) -> Port:
    """Serve the metrics and the health of this process."""
    metrics = app.metrics
    port = Port(
        at.host,
        at.port,
        {
            "/metrics": lambda accept: _shown(metrics.exposition(accept)),
            "/metrics/own": lambda accept: _shown(metrics.own_exposition(accept)),
            "/live": lambda _: _told(live(node)),
            "/ready": lambda _: _told(ready(app.open, node)),
        },
    )
    port.start()
    return port


def open_own_port(app: App, group: QueueGroup, at: Address) -> Port:
    """Serve what a process without a node has to show: it counts documents, and has no store to ask."""
    metrics = app.metrics

    def shown(accept: str) -> Answer:
        return _shown(metrics.own_exposition(accept))

    def health(_: str) -> Answer:
        return _told(Health({"loops": OK if group.is_healthy else "stuck"}))

    port = Port(at.host, at.port, {"/metrics": shown, "/metrics/own": shown, "/live": health, "/ready": health})
    port.start()
    return port


def _shown(found: Exposition) -> Answer:
    return Answer(200, found.kind, found.text)


def _told(health: Health) -> Answer:
    return Answer(health.status, JSON, health.json)
