"""Finds running jobs whose node is silent: they are running until a live node returns them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.job import State
from rota.store.contract import LARGEST_PAGE, JobFilter
from rota.store.shared.liveness import live_nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.store.contract import Node, Store


def jobs_of_silent_nodes(store: Store, nodes: Sequence[Node], now: int) -> list[Job]:
    """Jobs that run according to the store and whose node sends no heartbeat, of the newest page of running jobs.
    While every node is alive, no job is read."""
    alive = {node.id for node in live_nodes(list(nodes), now)}
    if alive and len(alive) == len(nodes):
        return []
    running = store.list_jobs(JobFilter(states=(State.RUNNING,)), limit=LARGEST_PAGE).items
    return [job for job in running if job.holder not in alive]
