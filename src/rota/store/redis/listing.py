"""Gets jobs by id and lists them by filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rota.model.jobs.job import State
from rota.store.contract import FEWEST_REPEATED, Failure, Page
from rota.store.redis.codec import job_of, jobs_of
from rota.store.redis.indexes import HOUR
from rota.store.shared.matching import matches
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.store.contract import JobFilter
    from rota.store.redis.guarded_write import GuardedWriter

BEYOND = 2**53  # above every position
LONGEST_STEP = 1_000  # jobs read in one call if most of them do not match
ALL_JOBS = [("tasks", "")]
_REPEATED = ("index", "repeated")


class Span(NamedTuple):
    """The positions that jobs of a time can have; all between `after` and `before` are of it."""

    first: int = 0
    last: int = BEYOND
    after: int = -1
    before: int = BEYOND + 1


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
        if where.key is not None:
            return self._job_of_key(where, cursor)
        span = self._span(where)
        below = min(int(cursor) if cursor else BEYOND, span.last + 1)
        shown: list[Job] = []
        step = limit + 1
        while len(shown) <= limit and below > span.first:
            asked = {**_asked(where, span), "most": limit + 1 - len(shown)}
            found, below, is_last = self.read_step(below, span.first, step, **asked)
            shown += [job for job in found if matches(job, where)]
            if is_last:
                break
            step = max(step, LONGEST_STEP)
        return page_of(shown, limit, lambda job: str(job.seq))

    def read_step(self, below: int, least: int, number: int, **asked: Any) -> tuple[list[Job], int, bool]:
        """Jobs at positions from `least` to `below`, newest first unless `is_rising`; the last position that was read,
        and whether no more are left."""
        raw, reached, examined = self._writer.connection.call(
            "list", below=str(below), least=str(least), count=number, **{"sources": ALL_JOBS, **asked}
        ).body
        return jobs_of(raw), int(reached), examined < number

    def count_jobs(self, where: JobFilter, limit: int) -> int:
        """By the sizes of indexes, if one alone has these jobs: only those at the ends of a time are read."""
        if where.key is not None:
            return min(limit, len(self._job_of_key(where, None)))
        sources, span = _sources(where), self._span(where)
        if _attempts(where) and sources == [_REPEATED] and span == Span():
            most = "+inf" if where.most_attempts is None else where.most_attempts
            return min(limit, int(self._writer.read(["ZCOUNT", "attempts", where.least_attempts, most])[0]))
        first, last = max(span.first, span.after + 1), min(span.last, span.before - 1)
        if len(sources) > 1 or _attempts(where) or first > last:
            return min(limit, self._count_by_steps(where, span, span.first, span.last, limit))
        call = self._writer.connection.call
        number = int(call("count", sources=sources, first=str(first), last=str(last), is_by_size=True).body[0])
        for low, high in ((span.first, first - 1), (last + 1, span.last)):
            if number < limit and low <= high:
                number += self._count_by_steps(where, span, low, high, limit - number)
        return min(limit, number)

    def _count_by_steps(self, where: JobFilter, span: Span, first: int, last: int, limit: int) -> int:
        """How many jobs at these positions a filter shows; the script looks at each."""
        number, progress = 0, dict[str, Any]()
        asked = {**_asked(where, span), "first": str(first), "last": str(last)}
        while number < limit:
            some, key, reached = self._writer.connection.call("count", **asked, **progress).body
            number += some
            if not key:
                break
            progress = {"key": key.decode(), "from": reached.decode()}
        return number

    def list_failures(self, since: int, limit: int) -> list[Failure]:
        (ids,) = self._writer.read(["ZREVRANGEBYSCORE", "ended:failed", "+inf", since, "LIMIT", 0, limit])
        jobs = self.get_jobs([job_id.decode() for job_id in ids])
        failed = [job for job in jobs if job.state is State.FAILED]  # the others were retried meanwhile
        return [Failure(id=job.id, task=job.task, at=job.finished_at or 0, error=job.error or "") for job in failed]

    def _job_of_key(self, where: JobFilter, cursor: str | None) -> Page[Job]:
        """At most one job has a key."""
        (holder,) = self._writer.read(["HGET", "key", where.key])
        jobs = self.get_jobs([holder.decode()]) if holder is not None else []
        return Page([job for job in jobs if matches(job, where) and (cursor is None or job.seq < int(cursor))])

    def _span(self, where: JobFilter) -> Span:
        """Where jobs of a time are, by the lowest and the highest position of every hour."""
        if where.since is None and where.until is None:
            return Span()
        commands = (["ZRANGE", f"hours:{end}", 0, -1, "WITHSCORES"] for end in ("first", "last"))
        firsts, lasts = (_by_hour(found) for found in self._writer.read(*commands))
        since = -1 if where.since is None else where.since // HOUR
        until = BEYOND if where.until is None else where.until // HOUR
        hours = [hour for hour in firsts if since <= hour <= until]
        if not hours:
            return Span(first=BEYOND, last=-1)
        return Span(
            first=min(firsts[hour] for hour in hours),
            last=max(lasts.get(hour, BEYOND) for hour in hours),
            after=max((lasts.get(hour, BEYOND) for hour in firsts if hour <= since), default=-1),
            before=min((firsts[hour] for hour in firsts if hour >= until), default=BEYOND + 1),
        )


def _asked(where: JobFilter, span: Span) -> dict[str, Any]:
    """A filter for the script: where its jobs are, their time, the positions between which all are of it, attempts."""
    asked = {"sources": _sources(where), **_attempts(where)}
    if where.since is None and where.until is None:
        return asked
    ends = {"since": where.since, "until": where.until, "certain_from": span.after, "certain_to": span.before}
    return asked | {name: str(value) for name, value in ends.items() if value is not None}


def _attempts(where: JobFilter) -> dict[str, Any]:
    """A filter's attempts for the script, unless all jobs of the index of repeated jobs have so many."""
    if where.least_attempts is None or (where.least_attempts == FEWEST_REPEATED and where.most_attempts is None):
        return {}
    most = {} if where.most_attempts is None else {"most_attempts": where.most_attempts}
    return {"least_attempts": where.least_attempts, **most}


def _by_hour(found: list[bytes]) -> dict[int, int]:
    return {int(hour): int(float(position)) for hour, position in zip(found[::2], found[1::2], strict=True)}


def _sources(where: JobFilter) -> list[tuple[Any, ...]]:
    """The indexes that have all jobs that a filter shows; the script reads the smallest."""
    sources: list[tuple[Any, ...]] = [] if where.least_attempts is None else [_REPEATED]
    if where.schedule_id is not None:
        sources.append(("index", f"made:{where.schedule_id}"))
    if where.task is not None:
        is_prefix = where.task.endswith("*")
        sources.append(("tasks", where.task[:-1]) if is_prefix else ("index", f"task:{where.task}"))
    if where.states or where.queue is not None:
        states = [state.value for state in dict.fromkeys(where.states or State)]
        sources.append(("states", where.queue or False, states))
    return sources or ALL_JOBS
