"""Reads the circumstances of a job or a schedule: the nodes that can fire and run it, and the job that it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.inspector.facts.queue import pause_of
from rota.model.jobs.job import State
from rota.model.why.job import Around, JobVerdict, Sealed, why_job
from rota.store.shared.liveness import live_nodes

if TYPE_CHECKING:
    from rota.model.jobs.job import Job
    from rota.store.contract import Node, Store


def why_waits(store: Store, job: Job) -> JobVerdict:
    """The state of a job, what it waits for, and what to do."""
    return why_job(job, around(store, job.queue, job.task, store.now()), job_of(store, awaited_by(job)))


def job_of(store: Store, job_id: str | None) -> Job | None:
    found = store.get_jobs([job_id]) if job_id is not None else []
    return found[0] if found else None


def awaited_by(job: Job | None) -> str | None:
    return job.waits_for if job is not None and job.state is State.HELD else None


def around(store: Store, queue: str, task: str, now: int, tz: str = "UTC") -> Around:
    """The nodes that can fire schedules, and run a task from a queue."""
    alive = live_nodes(store.list_nodes(), now)
    workers = [node for node in alive if _takes_from(node, queue)]
    info = next((info for info in store.list_queues() if info.name == queue), None)
    pause = pause_of(store, info) if info is not None else None
    return Around(
        now=now,
        tz=tz,
        has_scheduler=any("scheduler" in node.roles for node in alive),
        has_worker=bool(workers),
        knows_task=any(task in node.tasks for node in workers),
        is_queue_paused=info is not None and info.is_paused,
        pause_reason=pause.reason if pause is not None else "",
        seal=_seal(store),
    )


def _seal(store: Store) -> Sealed | None:
    seal = store.sealed()
    if seal is None:
        return None
    return Sealed(other=seal.source or seal.target, is_done=seal.is_done, is_target=bool(seal.source))


def _takes_from(node: Node, queue: str) -> bool:
    return "worker" in node.roles and queue in node.queues
