"""The occurrence ledger: ranges and kept jobs together, oldest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.schedules.occurrence import is_record_of, of_job
from rota.store.redis.codec import job_of, occurrence_of, schedule_of
from rota.store.shared.paging import occurrence_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.model.schedules.occurrence import Occurrence
    from rota.store.contract import LedgerSpan, Page
    from rota.store.redis.guarded_write import GuardedWriter


class Ledger:
    """Lists what became of expected times."""

    def __init__(self, writer: GuardedWriter) -> None:
        self._writer = writer

    def list_many_occurrences(self, spans: Sequence[LedgerSpan], limit: int) -> list[Page[Occurrence]]:
        """All ranges by one request, and the kept jobs by two more."""
        schedules = [["HGET", "schedule", span.schedule_id] for span in spans]
        ledgers = [
            ["ZRANGEBYSCORE", f"ledger:{span.schedule_id}", span.start, "+inf", "LIMIT", 0, limit + 1] for span in spans
        ]
        answers = self._writer.read(*schedules, *ledgers)
        number = len(spans)
        kept = self._kept_jobs(spans, answers[:number], limit + 1)
        return [
            occurrence_page([*map(of_job, jobs), *_ranges(span, rows)], limit)
            for span, jobs, rows in zip(spans, kept, answers[number:], strict=True)
        ]

    def _kept_jobs(self, spans: Sequence[LedgerSpan], schedules: Sequence[bytes | None], most: int) -> list[list[Job]]:
        """The first jobs that are records of each schedule; those of an earlier schedule of that name are skipped."""
        kept: list[list[Job]] = [[] for _ in spans]
        left, skipped = list(range(len(spans))), 0
        while left:
            some = [spans[n] for n in left]
            found = self._writer.read(
                *(
                    ["ZRANGEBYSCORE", f"slot:{name}", start, f"({end}", "LIMIT", skipped, most]
                    for name, start, end in some
                )
            )
            jobs = self._writer.read_jobs([job_id.decode() for ids in found for job_id in ids])
            for n, ids in zip(left, found, strict=True):
                read = [(name, jobs[name]) for name in map(bytes.decode, ids)]
                mine = [job_of(name, snapshot) for name, snapshot in read if snapshot is not None]
                made_at = _created_at(spans[n].schedule_id, schedules[n])
                kept[n] += [job for job in mine if is_record_of(job, made_at)]
            left = [n for n, ids in zip(left, found, strict=True) if len(ids) == most and len(kept[n]) < most]
            skipped += most
        return kept


def _created_at(name: str, packed: bytes | None) -> int:
    return 0 if packed is None else schedule_of(name, packed, []).created_at


def _ranges(span: LedgerSpan, rows: Sequence[bytes]) -> list[Occurrence]:
    entries = [occurrence_of(span.schedule_id, row) for row in rows]
    return [entry for entry in entries if entry.earliest_at < span.end]
