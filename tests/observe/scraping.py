"""What a scrape says, read by a real parser of Prometheus' text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class Scrape:
    """The samples of one text."""

    def __init__(self, text: bytes) -> None:
        self.families: dict[str, Metric] = {
            family.name: family for family in text_string_to_metric_families(text.decode())
        }
        self.samples = [sample for family in self.families.values() for sample in family.samples]

    def value(self, name: str, **labels: str) -> float:
        """The one sample of that name and those labels; 0 if there is none yet."""
        found = [sample.value for sample in self.samples if sample.name == name and sample.labels == labels]
        assert len(found) <= 1
        return found[0] if found else 0.0

    def has(self, name: str, **labels: str) -> bool:
        return any(sample.name == name and sample.labels == labels for sample in self.samples)

    def labels(self, name: str, label: str) -> set[str]:
        """All values of a label."""
        return {sample.labels[label] for sample in self.samples if sample.name == name}

    @property
    def names(self) -> dict[str, set[str]]:
        """Every sample's name, with the names of its labels; a family without samples by its own name."""
        names: dict[str, set[str]] = {}
        for sample in self.samples:
            names.setdefault(sample.name, set()).update(sample.labels)
        return names


def scrape(app) -> Scrape:
    return Scrape(app.metrics.text())
