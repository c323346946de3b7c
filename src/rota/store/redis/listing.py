"""Gets jobs by id and lists them by filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rota.model.jobs.job import State
from rota.store.contract import FEWEST_REPEATED, Failure, JobFilter, Page
from rota.store.redis.codec import job_of, jobs_of, pairs_of
from rota.store.redis.indexes import HOUR
from rota.store.shared.matching import matches
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rota.model.jobs.job import Job
    from rota.store.redis.guarded_write import GuardedWriter

BEYOND = 2**53  # above every position
LONGEST_STEP = 1_000  # jobs read in one call if most of them do not match
MOST_KEYS = 40  # indexes of a source that the script asks about a job; Python filters by one that has more
_REPEATED = ("index", "repeated")


class Part(NamedTuple):
    """Positions that jobs of a time can have, and whether all jobs there are of it."""

    low: int = 0
    high: int = BEYOND
    is_certain: bool = True


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
        shown: list[Job] = []
        for part in self._parts(where):
            shown += self._list_part(where, part, int(cursor) if cursor else BEYOND, limit + 1 - len(shown))
            if len(shown) > limit:
                break
        return page_of(shown, limit, lambda job: str(job.seq))

    def _list_part(self, where: JobFilter, part: Part, below: int, most: int) -> list[Job]:
        shown: list[Job] = []
        asked = {**_asked(where, part), "most_keys": MOST_KEYS}
        below, step, is_sparse, is_last = min(below, part.high + 1), most, False, False
        while len(shown) < most and below > part.low and not is_last:
            asked |= {"last": str(below - 1), "count": step, "most": most - len(shown), "is_sparse": is_sparse}
            found, below, is_last = self._read_step(asked)
            shown += [job for job in found if matches(job, where)]
            is_sparse, step = len(found) < step // 10, max(step, LONGEST_STEP)
        return shown

    def oldest_jobs(self, after: int = 0, step: int = LONGEST_STEP) -> Iterator[Job]:
        """The jobs at positions after this one, the oldest first, read in steps."""
        asked = {**_asked(JobFilter(), Part()), "count": step, "is_rising": True}
        is_last = False
        while not is_last:
            jobs, after, is_last = self._read_step({**asked, "first": str(after + 1)})
            yield from jobs

    def _read_step(self, asked: dict[str, Any]) -> tuple[list[Job], int, bool]:
        """Jobs, the last position that was read, and whether no more are left."""
        raw, reached, is_last = self._writer.connection.call("list", **asked).body
        return jobs_of(raw), int(reached), is_last is not None

    def count_jobs(self, where: JobFilter, limit: int) -> int:
        if where.key is not None:
            return min(limit, len(self._job_of_key(where, None)))
        is_of_any_time = where.since is None and where.until is None
        if _attempts(where) and _sources(where) == [_REPEATED] and is_of_any_time:
            most = "+inf" if where.most_attempts is None else where.most_attempts
            return min(limit, int(self._writer.read(["ZCOUNT", "attempts", where.least_attempts, most])[0]))
        number = 0
        for part in sorted(self._parts(where), key=lambda part: not part.is_certain):
            number += self._count_part(where, part, limit - number)
        return min(limit, number)

    def _count_part(self, where: JobFilter, part: Part, limit: int) -> int:
        """Up to a limit, in steps."""
        number, asked = 0, _asked(where, part)
        while number < limit:
            some, key, reached, chosen = self._writer.connection.call("count", **asked, most=limit - number).body
            number += some
            if not key:
                break
            asked |= {"key": key.decode(), "from": reached.decode(), "chosen": chosen}
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

    def _parts(self, where: JobFilter) -> list[Part]:
        """Where jobs of a time are, by the lowest and the highest position of every hour; the newest first."""
        if where.since is None and where.until is None:
            return [Part()]
        commands = (["ZRANGE", f"hours:{end}", 0, -1, "WITHSCORES"] for end in ("first", "last"))
        firsts, lasts = (_by_hour(found) for found in self._writer.read(*commands))
        since = -1 if where.since is None else where.since // HOUR
        until = BEYOND if where.until is None else where.until // HOUR
        hours = [hour for hour in firsts if since <= hour <= until]
        if not hours:
            return []
        first, last = min(firsts[hour] for hour in hours), max(lasts.get(hour, BEYOND) for hour in hours)
        low = max(first, 1 + max((lasts.get(hour, BEYOND) for hour in firsts if hour <= since), default=-1))
        high = min(last, -1 + min((firsts[hour] for hour in firsts if hour >= until), default=BEYOND + 1))
        if low > high:
            return [Part(first, last, is_certain=False)]
        parts = [Part(high + 1, last, is_certain=False), Part(low, high), Part(first, low - 1, is_certain=False)]
        return [part for part in parts if part.low <= part.high]


def _asked(where: JobFilter, part: Part) -> dict[str, Any]:
    """A filter for scripts: where its jobs are, the states that it leaves out, attempts and time."""
    asked = {"sources": _sources(where), "first": str(part.low), "last": str(part.high), **_attempts(where)}
    if where.states and where.queue is None:
        asked["rest"] = [state.value for state in State if state not in where.states]
    ends = {} if part.is_certain else {"since": where.since, "until": where.until}
    return asked | {name: str(value) for name, value in ends.items() if value is not None}


def _attempts(where: JobFilter) -> dict[str, Any]:
    """A filter's attempts for the script, unless all jobs of the index of repeated jobs have so many."""
    if where.least_attempts is None or (where.least_attempts == FEWEST_REPEATED and where.most_attempts is None):
        return {}
    most = {} if where.most_attempts is None else {"most_attempts": where.most_attempts}
    return {"least_attempts": where.least_attempts, **most}


def _by_hour(found: list[bytes]) -> dict[int, int]:
    return {int(hour): int(float(position)) for hour, position in pairs_of(found)}


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
    return sources or [("tasks", "")]
