"""The occurrence ledger: ranges and kept jobs together, oldest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.occurrence import is_record_of, of_job
from rota.store.redis.codec import job_of, occurrence_of, schedule_of
from rota.store.shared.matching import check_cursor
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from rota.model.job import Job
    from rota.model.occurrence import Occurrence
    from rota.store.contract import Page
    from rota.store.redis.guarded_writer import GuardedWriter


class Ledger:
    """Lists what became of expected times."""

    def __init__(self, writer: GuardedWriter) -> None:
        self._writer = writer

    def list_occurrences(
        self, schedule_id: str, start: int, end: int, cursor: str | None, limit: int
    ) -> Page[Occurrence]:
        check_cursor(cursor)
        after = int(cursor) if cursor else start - 1
        packed, ranges = self._writer.read(
            ["HGET", "schedule", schedule_id],
            ["ZRANGEBYSCORE", f"ledger:{schedule_id}", f"({after}", "+inf", "LIMIT", 0, limit + 1],
        )
        made_at = 0 if packed is None else schedule_of(schedule_id, packed, []).created_at
        entries = [of_job(job) for job in self._kept_jobs(schedule_id, after, end, limit + 1, made_at)]
        entries += [entry for row in ranges if (entry := occurrence_of(schedule_id, row)).earliest_at < end]
        entries.sort(key=lambda entry: entry.through_at)
        return page_of(entries, limit, lambda entry: str(entry.through_at))

    def _kept_jobs(self, schedule_id: str, after: int, end: int, most: int, made_at: int) -> list[Job]:
        """The first jobs that are records of this schedule; an earlier schedule of that name is skipped."""
        found: list[Job] = []
        skipped = 0
        while len(found) < most:
            (ids,) = self._writer.read(
                ["ZRANGEBYSCORE", f"slot:{schedule_id}", f"({after}", f"({end}", "LIMIT", skipped, most]
            )
            jobs = self._writer.read_jobs([job_id.decode() for job_id in ids])
            known = [job_of(job_id, snapshot) for job_id, snapshot in jobs.items() if snapshot is not None]
            found += [job for job in known if is_record_of(job, made_at)]
            skipped += most
            if len(ids) < most:
                break
        return found[:most]
