"""Counts the content of a store, as JSON shows it."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from rota.inspector.facts.queue import QueueFacts, ended_by_state, jobs_by_state, queues_facts
from rota.inspector.reading import all_schedules
from rota.inspector.schedule_state import STATES, schedule_state
from rota.model.micros import datetime_of, optional_datetime
from rota.store.shared.liveness import live_nodes

if TYPE_CHECKING:
    from rota.store.contract import QueueInfo, Store

MOST_SCHEDULES = 10_000  # read for their states: no store keeps these numbers


class StatsFacts(Struct, kw_only=True):
    """The store in numbers."""

    store: str
    at: datetime
    jobs: dict[str, int]  # stored jobs, by state
    totals: dict[str, int]  # jobs that ever ended, by state
    queues: list[QueueFacts]
    nodes: dict[str, int]  # alive, silent
    running: int  # jobs that live nodes run …
    concurrency: int  # … of so many at once
    schedules: dict[str, int]  # by state; of the first 10,000 by id
    schedules_truncated: bool  # whether there are more
    oldest_at: datetime | None  # since when the job that waits longest has been ready
    oldest_queue: str | None


class CountedSchedules(NamedTuple):
    """How many schedules are in each state, and whether there are more than were read."""

    by_state: dict[str, int]
    is_truncated: bool


def read_stats(store: Store) -> StatsFacts:
    now, queues, nodes = store.now(), store.list_queues(), store.list_nodes()
    alive = live_nodes(nodes, now)
    schedules, oldest = _count_schedules(store, now), _oldest(queues)
    return StatsFacts(
        store=store.describe(),
        at=datetime_of(now),
        jobs=jobs_by_state(queues),
        totals=ended_by_state(queues),
        queues=queues_facts(store, queues),
        nodes={"alive": len(alive), "silent": len(nodes) - len(alive)},
        running=sum(node.running for node in alive),
        concurrency=sum(node.concurrency for node in alive),
        schedules=schedules.by_state,
        schedules_truncated=schedules.is_truncated,
        oldest_at=optional_datetime(oldest.oldest_at) if oldest else None,
        oldest_queue=oldest.name if oldest else None,
    )


def _oldest(queues: list[QueueInfo]) -> QueueInfo | None:
    waiting = [queue for queue in queues if queue.oldest_at is not None]
    return min(waiting, key=lambda queue: queue.oldest_at or 0, default=None)


def _count_schedules(store: Store, now: int) -> CountedSchedules:
    found = all_schedules(store)
    counted = Counter(schedule_state(schedule, now) for schedule in islice(found, MOST_SCHEDULES))
    return CountedSchedules({state: counted[state] for state in STATES}, next(found, None) is not None)
