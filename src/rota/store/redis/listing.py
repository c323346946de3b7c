"""Gets jobs by id and lists them by filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.state import State
from rota.store.contract import Page
from rota.store.redis.codec import job_of, jobs_of
from rota.store.redis.indexes import HOUR
from rota.store.shared.matching import check_cursor, matches
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.job import Job
    from rota.store.contract import JobFilter
    from rota.store.redis.guarded_writer import GuardedWriter

BEYOND = 2**53  # above every position
LONGEST_STEP = 1_000  # jobs read in one call if most of them do not match
ALL_JOBS = [("tasks", "")]


class Listing:
    """Shows jobs."""

    def __init__(self, writer: GuardedWriter) -> None:
        self._writer = writer

    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        found = self._writer.read_jobs(list(dict.fromkeys(ids)))
        jobs = {job_id: job_of(job_id, snapshot) for job_id, snapshot in found.items() if snapshot is not None}
        return [jobs[job_id] for job_id in ids if job_id in jobs]

    def list_jobs(self, where: JobFilter, cursor: str | None, limit: int) -> Page[Job]:
        """Newest first, from the smallest index that has all of them; what does not match is left out."""
        check_cursor(cursor)
        if where.key is not None:
            return self._job_of_key(where, cursor)
        least, highest = self._positions(where)
        below = min(int(cursor) if cursor else BEYOND, highest + 1)
        shown: list[Job] = []
        step = limit + 1
        while len(shown) <= limit and below > least:
            found, below, is_last = self.read_step(_sources(where), below, least, step)
            shown += [job for job in found if matches(job, where)]
            if is_last:
                break
            step = max(step, LONGEST_STEP)
        return page_of(shown, limit, lambda job: str(job.seq))

    def read_step(
        self, sources: list[tuple[Any, ...]], below: int, least: int, number: int, *, is_rising: bool = False
    ) -> tuple[list[Job], int, bool]:
        """Jobs at positions from `least` to `below`, newest first unless `is_rising`; the last position that was read,
        and whether no more are left."""
        raw, reached = self._writer.connection.call(
            "list", sources=sources, below=str(below), least=str(least), count=number, is_rising=is_rising
        ).body
        return jobs_of(raw), int(reached), len(raw[0]) < number

    def _job_of_key(self, where: JobFilter, cursor: str | None) -> Page[Job]:
        """At most one job has a key."""
        (holder,) = self._writer.read(["HGET", "key", where.key])
        jobs = self.get_jobs([holder.decode()]) if holder is not None else []
        return Page([job for job in jobs if matches(job, where) and (cursor is None or job.seq < int(cursor))])

    def _positions(self, where: JobFilter) -> tuple[int, int]:
        """The lowest and the highest position of jobs of a time, by those of every hour."""
        if where.since is None and where.until is None:
            return 0, BEYOND
        commands = (["ZRANGE", f"hours:{end}", 0, -1, "WITHSCORES"] for end in ("first", "last"))
        firsts, lasts = (_by_hour(found) for found in self._writer.read(*commands))
        since = -1 if where.since is None else where.since // HOUR
        until = BEYOND if where.until is None else where.until // HOUR
        hours = [hour for hour in firsts if since <= hour <= until]
        if not hours:
            return BEYOND, 0
        return min(firsts[hour] for hour in hours), max(lasts.get(hour, BEYOND) for hour in hours)


def _by_hour(found: list[bytes]) -> dict[int, int]:
    return {int(hour): int(float(position)) for hour, position in zip(found[::2], found[1::2], strict=True)}


def _sources(where: JobFilter) -> list[tuple[Any, ...]]:
    """The indexes that have all jobs that a filter shows; the script reads the smallest."""
    sources: list[tuple[Any, ...]] = []
    if where.schedule_id is not None:
        sources.append(("schedule", where.schedule_id))
    if where.task is not None:
        is_prefix = where.task.endswith("*")
        sources.append(("tasks", where.task[:-1]) if is_prefix else ("task", where.task))
    if where.states or where.queue is not None:
        states = [state.value for state in where.states or State]
        sources.append(("states", where.queue or False, states))
    return sources or ALL_JOBS
