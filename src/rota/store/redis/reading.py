"""Reading jobs: by id, by filter, and those whose lease has run out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.state import State
from rota.store.contract import Page
from rota.store.redis.desk import WIDEST_READ, text_of
from rota.store.redis.packing import job_of, jobs_of, sights_of
from rota.store.redis.places import HOUR
from rota.store.redis.sheaves import SHEAVES_AT_ONCE, SPAN_BITS
from rota.store.redis.spoilt import set_aside
from rota.store.shared.matching import check_cursor, matches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.job import Job
    from rota.store.contract import JobFilter
    from rota.store.redis.desk import Desk
    from rota.store.redis.packing import Sight

BEYOND = 2**53  # above every place in line
LONGEST_STEP = 1_000  # jobs looked at in one call where most of them do not match


class Reader:
    """Shows jobs as they are."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def get(self, ids: Sequence[str]) -> list[Job]:
        sights: dict[str, Sight | None] = {}
        for start in range(0, len(ids), WIDEST_READ):
            sights |= self._desk.sights(list(dict.fromkeys(ids[start : start + WIDEST_READ])))
        found = {job_id: job_of(job_id, sight) for job_id, sight in sights.items() if sight is not None}
        return [found[job_id] for job_id in ids if job_id in found]

    def lapsed(self, limit: int, now: int | None) -> list[Job]:
        """Running jobs whose lease has run out; those that cannot be read are seen to at once."""
        reply = self._desk.link.call("lapsed", now=text_of(now), limit=limit)
        sights = sights_of(reply.body)
        jobs = {job_id: job_of(job_id, sight) for job_id, sight in sights.items() if sight is not None}
        for job_id, job in jobs.items():
            if job.state is not State.RUNNING:
                sight = sights[job_id]
                set_aside(self._desk, job, sight.record if sight else None, reply.now)
        return [job for job in jobs.values() if job.state is State.RUNNING]

    def page(self, where: JobFilter, cursor: str | None, limit: int) -> Page[Job]:
        """Newest first, from the smallest index that fits; what it does not know is looked at and left out."""
        check_cursor(cursor)
        if where.key is not None:
            return self._of_key(where, cursor)
        below = int(cursor) if cursor else BEYOND
        least, highest = self._places_of_times(where)
        below = min(below, highest + 1)
        shown: list[Job] = []
        step = limit + 1
        while len(shown) <= limit and below > least:
            raw, reached = self._step(where, below, least, step)
            found = jobs_of(raw)
            shown += [job for job in found if matches(job, where)]
            if len(raw[0]) < step:
                break
            below, step = int(reached), max(step, LONGEST_STEP)
        return Page(shown[:limit], str(shown[limit - 1].seq) if len(shown) > limit else None)

    def _step(self, where: JobFilter, below: int, least: int, step: int) -> Any:
        reply = self._desk.link.call(
            "list",
            sources=sources_of(where),
            below=str(below),
            least=str(least),
            count=step,
            step=SHEAVES_AT_ONCE,
            span=1 << SPAN_BITS,
        )
        return reply.body

    def _of_key(self, where: JobFilter, cursor: str | None) -> Page[Job]:
        """At most one job has a key."""
        (holder,) = self._desk.ask(["HGET", "key", where.key])
        jobs = self.get([holder.decode()]) if holder is not None else []
        return Page([job for job in jobs if matches(job, where) and (cursor is None or job.seq < int(cursor))])

    def _places_of_times(self, where: JobFilter) -> tuple[int, int]:
        """Between which places in line the jobs of a time stand, by the first and the last place of every hour."""
        if where.since is None and where.until is None:
            return 0, BEYOND
        command = ["ZRANGE", "hours:first", 0, -1, "WITHSCORES"], ["ZRANGE", "hours:last", 0, -1, "WITHSCORES"]
        firsts, lasts = (_by_hour(found) for found in self._desk.ask(*command))
        since = -1 if where.since is None else where.since // HOUR
        until = BEYOND if where.until is None else where.until // HOUR
        hours = [hour for hour in firsts if since <= hour <= until]
        if not hours:
            return BEYOND, 0
        return min(firsts[hour] for hour in hours), max(lasts.get(hour, BEYOND) for hour in hours)


def _by_hour(found: list[bytes]) -> dict[int, int]:
    return {int(hour): int(float(place)) for hour, place in zip(found[::2], found[1::2], strict=True)}


def sources_of(where: JobFilter) -> list[tuple[Any, ...]]:
    """The indexes that have all jobs that a filter shows; the script takes the smallest."""
    sources: list[tuple[Any, ...]] = []
    if where.schedule_id is not None:
        sources.append(("schedule", where.schedule_id))
    if where.task is not None:
        is_open = where.task.endswith("*")
        sources.append(("tasks", where.task[:-1]) if is_open else ("task", where.task))
    if where.states or where.queue is not None:
        states = [state.value for state in where.states or State]
        sources.append(("states", where.queue or False, states))
    return sources or [("tasks", "")]
