"""Reads jobs by id, and lists them, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.job import State
from rota.store.contract import LARGEST_BATCH, MOST_COUNTED, Failure, check_cursor
from rota.store.memory.connection import Database
from rota.store.shared.matching import matches
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.store.contract import JobFilter, Page


class Listing(Database):
    """Reads jobs."""

    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        with self._lock:
            return [self._jobs[job_id] for job_id in ids if job_id in self._jobs]

    def list_jobs(self, where: JobFilter, *, cursor: str | None = None, limit: int = 50) -> Page[Job]:
        check_cursor(cursor)
        with self._lock:
            found = (job for job in self._jobs.values() if matches(job, where))
            newest = sorted(found, key=lambda job: -job.seq)
        rest = [job for job in newest if cursor is None or job.seq < int(cursor)]
        return page_of(rest, limit, lambda job: str(job.seq))

    def count_jobs(self, where: JobFilter, *, limit: int = MOST_COUNTED) -> int:
        with self._lock:
            return min(limit, sum(matches(job, where) for job in self._jobs.values()))

    def list_failures(self, since: int, *, limit: int = LARGEST_BATCH) -> list[Failure]:
        with self._lock:
            failed = [job for job in self._jobs.values() if job.state is State.FAILED]
        late = [job for job in failed if (job.finished_at or 0) >= since]
        late.sort(key=lambda job: (job.finished_at or 0, job.seq), reverse=True)
        return [
            Failure(id=job.id, task=job.task, at=job.finished_at or 0, error=job.error or "") for job in late[:limit]
        ]
