"""Builds Prometheus metric families from counted numbers. The only module that does, as it needs the extra."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

Labels = TypeVar("Labels", bound=tuple[str, ...])

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prometheus_client.core import Metric

    from rota.observe.numbers import Histograms


def counter(name: str, text: str, labels: tuple[str, ...], samples: Iterable[tuple[Labels, float]]) -> Metric:
    """A number that only rises; its samples have as many values as there are labels."""
    family = CounterMetricFamily(name, text, labels=labels)
    for values, number in samples:
        family.add_metric(values[: len(labels)], number)
    return family


def gauge(name: str, text: str, labels: tuple[str, ...], samples: Mapping[Labels, float]) -> Metric:
    """A number that rises and falls."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, number in samples.items():
        family.add_metric(values, number)
    return family


def histogram(name: str, text: str, label: str, observed: Histograms) -> Metric:
    """The distribution of durations."""
    family = HistogramMetricFamily(name, text, labels=(label,))
    bounds = [*(repr(bound) for bound in observed.bounds), "+Inf"]
    for value, cell in observed.items():
        family.add_metric((value,), list(zip(bounds, accumulate(cell.counts), strict=True)), cell.total)
    return family
