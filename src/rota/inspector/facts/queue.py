"""Queues, as JSON shows them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from rota.model.micros import optional_datetime
from rota.model.state import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.store.contract import QueueInfo


class QueueFacts(Struct, kw_only=True):
    """A queue in numbers."""

    name: str
    state: Literal["open", "paused"]
    counts: dict[str, int]  # the jobs that are kept, by state
    totals: dict[str, int]  # jobs that ever ended, by state
    oldest_at: datetime | None  # since when the first job in the queue has been waiting


def queue_facts(queue: QueueInfo) -> QueueFacts:
    return QueueFacts(
        name=queue.name,
        state="paused" if queue.is_paused else "open",
        counts=jobs_by_state([queue]),
        totals=ended_by_state([queue]),
        oldest_at=optional_datetime(queue.oldest_at),
    )


def jobs_by_state(queues: Iterable[QueueInfo]) -> dict[str, int]:
    """The jobs of all queues that are kept, by state; a state without jobs is 0."""
    found = list(queues)
    return {state.value: sum(queue.counts.get(state.value, 0) for queue in found) for state in State}


def ended_by_state(queues: Iterable[QueueInfo]) -> dict[str, int]:
    """The jobs of all queues that ever ended, by state; pruned and deleted ones count."""
    found = list(queues)
    final = [state.value for state in State if state.is_final]
    return {state: sum(queue.totals.get(state, 0) for queue in found) for state in final}
