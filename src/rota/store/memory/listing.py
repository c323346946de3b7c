"""Reads jobs: by id, and in lists, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.memory.connection import Database
from rota.store.shared.matching import check_cursor, matches
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.job import Job
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
