"""Metrics: all that Prometheus may read of an app, as one text. Needs the extra `metrics`; imported when asked for."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from rota.observe.census import Census
from rota.observe.families import gauge
from rota.observe.kept_metrics import KeptMetrics
from rota.observe.numbers import FirstIds
from rota.observe.own_metrics import OwnMetrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.core import Metric

    from rota.engine.events import Events
    from rota.engine.node import Node
    from rota.store.contract import Store

CONTENT_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """From its making on, this process counts what it sees; what the store keeps is asked for at every reading."""

    content_type = CONTENT_TYPE

    def __init__(self, store: Callable[[], Store], events: Events, node: Callable[[], Node | None]) -> None:
        first = FirstIds()
        own, kept = OwnMetrics(events, node, first), KeptMetrics(store, Census(first))
        self._own, self._all = CollectorRegistry(), CollectorRegistry()
        for registry in (self._own, self._all):
            ProcessCollector(registry=registry)
            registry.register(own)
            registry.register(self)
        self._all.register(kept)

    def text(self) -> bytes:
        """What this process saw and what the store keeps."""
        return generate_latest(self._all)

    def own_text(self) -> bytes:
        """What this process saw, without a word to the store."""
        return generate_latest(self._own)

    def collect(self) -> Iterator[Metric]:
        yield gauge("rota_build_info", "Which Rota this is; always 1.", ("version",), {(_version(),): 1.0})


def _version() -> str:
    try:
        return version("rota")
    except PackageNotFoundError:
        return "not installed"


class HasMetrics(Protocol):
    """An app."""

    @property
    def metrics(self) -> Metrics: ...


def metrics_text(app: HasMetrics) -> bytes:
    """Everything that Prometheus may read of an app, for whoever serves it; see CONTENT_TYPE."""
    return app.metrics.text()
