"""Metrics: all that Prometheus may read of an app, as one text. Needs the extra `metrics`; imported when asked for."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder

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


class Told(NamedTuple):
    """All numbers, in the form that was asked for."""

    text: bytes
    kind: str  # of content


class Metrics:
    """From its making on, this process counts what it sees; what the store keeps is asked for at every reading."""

    content_type = choose_encoder("")[1]  # of what is told to who asks for no other form

    def __init__(self, store: Callable[[], Store], events: Events, node: Callable[[], Node | None]) -> None:
        first = FirstIds()
        own, kept = OwnMetrics(events, node, first), KeptMetrics(store, Census(first))
        self._own, self._all = CollectorRegistry(), CollectorRegistry()
        self._all.register(kept)  # first: it finds the schedules whose counters begin at zero
        for registry in (self._own, self._all):
            ProcessCollector(registry=registry)
            registry.register(own)
            registry.register(self)

    def text(self) -> bytes:
        """What this process saw and what the store keeps."""
        return self.told().text

    def own_text(self) -> bytes:
        """What this process saw, without a word to the store."""
        return self.own_told().text

    def told(self, accept: str = "") -> Told:
        """The text to serve: `accept` is the request's header, which may ask for OpenMetrics."""
        return _told(self._all, accept)

    def own_told(self, accept: str = "") -> Told:
        """The own text likewise."""
        return _told(self._own, accept)

    def collect(self) -> Iterator[Metric]:
        yield gauge("rota_build_info", "Which Rota this is; always 1.", ("version",), {(_version(),): 1.0})


def _version() -> str:
    try:
        return version("rota")
    except PackageNotFoundError:
        return "not installed"


def _told(registry: CollectorRegistry, accept: str) -> Told:
    try:
        encode, kind = choose_encoder(accept)
    except (TypeError, ValueError):  # it names a version that is none
        encode, kind = choose_encoder("")
    return Told(encode(registry), kind)
