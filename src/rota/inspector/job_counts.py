"""Counts the jobs of each state that a filter shows, without counting numbers that are known already.

The queues know how many jobs of each state they keep: a state without jobs is not counted. Nor are the jobs that
succeeded, as a rule the most: all jobs that match are counted by one index, and the numbers of the other states are
subtracted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.inspector.facts.queue import jobs_by_state
from rota.model.jobs.job import State
from rota.store.contract import MOST_COUNTED, JobFilter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.store.contract import QueueInfo, Store

SUCCEEDED = State.SUCCEEDED.value


def count_by_state(store: Store, where: JobFilter, queues: Iterable[QueueInfo]) -> dict[str, int]:
    """The jobs that a filter shows in each state, whatever states it names; exact to 10,000, or in all if the queues
    have the numbers."""
    kept = jobs_by_state(queue for queue in queues if where.queue is None or where.queue == queue.name)
    if where == JobFilter(states=where.states, queue=where.queue):
        return kept
    found = {state: _count(store, where, state) if kept[state] and state != SUCCEEDED else 0 for state in kept}
    if kept[SUCCEEDED]:
        found[SUCCEEDED] = _succeeded(store, where, list(found.values()))
    return found


def _succeeded(store: Store, where: JobFilter, others: list[int]) -> int:
    """All jobs that match without those of the other states, if these are known exactly."""
    if max(others) >= MOST_COUNTED:
        return _count(store, where, SUCCEEDED)
    in_others = sum(others)
    total = store.count_jobs(msgspec.structs.replace(where, states=()), limit=MOST_COUNTED + in_others)
    return max(0, total - in_others)


def _count(store: Store, where: JobFilter, state: str) -> int:
    return store.count_jobs(msgspec.structs.replace(where, states=(State(state),)))
