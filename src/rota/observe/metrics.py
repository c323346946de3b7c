"""Writes the metrics of an app in Prometheus' text format. Needs the extra `metrics`; imported on first use."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder

from rota.observe.census import Census
from rota.observe.families import gauge
from rota.observe.numbers import FirstIds
from rota.observe.own_metrics import OwnMetrics
from rota.observe.store_metrics import StoreMetrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.core import Metric

    from rota.engine.events import Events
    from rota.engine.node import Node
    from rota.store.contract import Store


class Exposition(NamedTuple):
    """All numbers, in the requested form."""

    text: bytes
    kind: str  # of content


class Metrics:
    """Counts the events of this process from its creation on, and reads the store's numbers at every scrape."""

    content_type = choose_encoder("")[1]  # of the answer to a client that requests no other form

    def __init__(self, store: Callable[[], Store], events: Events, node: Callable[[], Node | None]) -> None:
        first = FirstIds()
        own, kept = OwnMetrics(events, node, first), StoreMetrics(store, Census(first))
        self._own, self._all = CollectorRegistry(), CollectorRegistry()
        self._all.register(kept)  # first: it finds the schedules whose counters begin at zero
        for registry in (self._own, self._all):
            ProcessCollector(registry=registry)
            registry.register(own)
            registry.register(self)

    def text(self) -> bytes:
        """The numbers of this process and of the store."""
        return self.exposition().text

    def exposition(self, accept: str = "") -> Exposition:
        """The text to serve: `accept` is the request's header, which may ask for OpenMetrics."""
        return _expose(self._all, accept)

    def own_exposition(self, accept: str = "") -> Exposition:
        """Only the numbers of this process: the store is not read."""
        return _expose(self._own, accept)

    def collect(self) -> Iterator[Metric]:
        yield gauge("rota_build_info", "Which Rota this is; always 1.", ("version",), {(_version(),): 1.0})


def _version() -> str:
    try:
        return version("rota")
    except PackageNotFoundError:
        return "not installed"


def _expose(registry: CollectorRegistry, accept: str) -> Exposition:
    try:
        encode, kind = choose_encoder(accept)
    except (TypeError, ValueError):  # it names a version that does not exist
        encode, kind = choose_encoder("")
    return Exposition(encode(registry), kind)
