"""Reads the numbers of the store: queues, nodes and schedules. Any node can report them, and all report the same."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from rota.errors import StoreError
from rota.inspector.facts.alert import open_alerts
from rota.model.jobs.job import FINAL, State
from rota.model.micros import SECOND
from rota.observe.families import counter, gauge
from rota.observe.numbers import MOST_QUEUES, OTHER
from rota.store.shared.liveness import live_nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.core import Metric

    from rota.model.alerts.incident import Incident
    from rota.observe.census import Census
    from rota.store.contract import Node, QueueInfo, Store

log = logging.getLogger("rota.metrics")

ROLES = ("worker", "scheduler")


class StoreMetrics:
    """Reads numbers from the store at every scrape. Nothing here counts jobs."""

    def __init__(self, store: Callable[[], Store], census: Census) -> None:
        self._store = store
        self._census = census

    def collect(self) -> Iterator[Metric]:
        """All families; if the store does not answer, only the one that says so."""
        is_up, families = True, []
        try:
            store = self._store()
            now = store.now()
            families = [*_of_queues(store.list_queues(), now), *_of_nodes(store.list_nodes(), now)]
            families += [*self._census.families(store, now), *_of_alerts(open_alerts(store, now))]
        except StoreError as err:
            log.warning("the numbers of the store cannot be read: %s", err)
            is_up = False
        yield gauge("rota_store_up", "Whether the store answers.", (), {(): float(is_up)})
        yield from families


def _of_queues(queues: list[QueueInfo], now: int) -> Iterator[Metric]:
    counts: Counter[tuple[str, ...]] = Counter()
    totals: Counter[tuple[str, ...]] = Counter()
    ages: dict[tuple[str, ...], float] = defaultdict(float)
    paused: dict[tuple[str, ...], float] = defaultdict(float)
    for place, queue in enumerate(sorted(queues, key=lambda queue: queue.name)):
        name = queue.name if place < MOST_QUEUES else OTHER
        for state in State:
            counts[name, state.value] += queue.counts.get(state.value, 0)
        for state in FINAL:
            totals[name, state.value] += queue.totals.get(state.value, 0)
        age = max(0, now - queue.oldest_at) / SECOND if queue.oldest_at is not None else 0.0
        ages[name,] = max(ages[name,], age)
        paused[name,] += queue.is_paused
    of, both = ("queue",), ("queue", "state")
    yield gauge("rota_queue_jobs", "Jobs that are kept, by state.", both, counts)
    yield gauge("rota_queue_oldest_age_seconds", "How long the first in line has been waiting.", of, ages)
    yield gauge("rota_queue_paused", "Whether the queue is paused (of other: how many are).", of, paused)
    yield counter("rota_jobs_ended_total", "Jobs that ever ended, by state.", both, totals.items())


def _of_nodes(nodes: list[Node], now: int) -> Iterator[Metric]:
    numbers = {(role, state): 0.0 for role in ROLES for state in ("alive", "silent")}
    ages: dict[tuple[str, ...], float] = {}
    alive = live_nodes(nodes, now)
    for node in nodes:
        for role in set(node.roles) & set(ROLES):
            numbers[role, "alive" if node in alive else "silent"] += 1
            age = max(0, now - node.beat_at) / SECOND
            ages[role,] = min(age, ages.get((role,), age))
    all_slots = sum(node.concurrency for node in alive)
    used = sum(min(node.running, node.concurrency) for node in alive)
    yield gauge("rota_nodes", "Nodes by role; silent ones were not heard of for 20 s.", ("role", "state"), numbers)
    yield gauge("rota_last_beat_age_seconds", "Since when no node of a role was heard of.", ("role",), ages)
    yield gauge("rota_slots", "Jobs that all live workers together run at once.", (), {(): all_slots})
    yield gauge("rota_slots_in_use", "Slots of live workers that were taken when they last said so.", (), {(): used})


def _of_alerts(incidents: list[Incident]) -> Iterator[Metric]:
    counts: Counter[tuple[str, ...]] = Counter((incident.rule,) for incident in incidents)
    yield gauge("rota_alerts_open", "Alerts that are open, by rule.", ("rule",), counts)
