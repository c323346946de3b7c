"""Matching: which jobs a filter shows, said in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.model.job import Job
    from rota.store.contract import JobFilter


def matches(job: Job, where: JobFilter) -> bool:
    """Whether a list with this filter shows the job."""
    if where.states and job.state not in where.states:
        return False
    if where.task is not None and not _task_matches(job.task, where.task):
        return False
    if where.since is not None and job.created_at < where.since:
        return False
    if where.until is not None and job.created_at >= where.until:
        return False
    wanted = ((where.queue, job.queue), (where.schedule_id, job.schedule_id), (where.key, job.key))
    return all(want is None or want == have for want, have in wanted)


def _task_matches(task: str, pattern: str) -> bool:
    return task.startswith(pattern[:-1]) if pattern.endswith("*") else task == pattern
