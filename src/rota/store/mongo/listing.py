"""Gets jobs by id, and lists them by position, newest or oldest first. Each list uses an index with its order.

A job's queue and task never change, so the index `kind` is written once per job. Lists by either, or by neither, merge
the kinds that exist: the server skips from one to the next to find them, and reads of each only what is shown. Queued
jobs are merged from the ranges of the index `ready`, one per queue and priority. The other states have indexes of their
own, except running jobs, which are few. The index is always named: otherwise the server would reuse the plan of the
last list with a similar filter.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from bson.min_key import MinKey

from rota.model.state import State
from rota.store.contract import JobFilter, Page
from rota.store.mongo.codec import jobs_of, position_of, seq_of
from rota.store.shared.matching import check_cursor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rota.model.job import Job
    from rota.store.mongo.connection import Connection
    from rota.store.mongo.database import Database, Document

EXISTING = {"state": {"$exists": True}}  # no tombstone of a removed job
MOST_MERGED = 200  # ranges of an index that a server merges; it reads and sorts the whole if there are more
ANY = {"$gte": MinKey()}  # for the first field of an index: the server skips from each of its values to the next

_INDEXES = {
    State.SCHEDULED: "late",
    State.SUCCEEDED: "late",
    State.HELD: "rest",
    State.FAILED: "rest",
    State.CANCELLED: "rest",
    State.RUNNING: "leased",
}


def get_jobs(db: Database, ids: Sequence[str]) -> list[Job]:
    """Those of the jobs that exist, in the order of the ids."""
    documents = db.jobs.find({"_id": {"$in": list(ids)}, **EXISTING}, hint="_id_") if ids else ()
    found = {job.id: job for job in jobs_of(documents)}
    return [found[job_id] for job_id in ids if job_id in found]


def find_job(db: Database, job_id: str) -> Job | None:
    return next(iter(get_jobs(db, [job_id])), None)


class _Read(NamedTuple):
    """One query, and the index for it."""

    query: Document
    hint: str


class Listing:
    """Lists one namespace's jobs."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        with self._connection.call() as db:
            return get_jobs(db, ids)

    def list_jobs(self, where: JobFilter, cursor: str | None, limit: int) -> Page[Job]:
        """The newest jobs that match the filter, below the cursor."""
        query = conditions(where, check_cursor(cursor))
        with self._connection.call() as db:
            found = _read(db, _reads(db, where, query), limit + 1, -1)
        jobs = jobs_of(found[:limit])
        return Page(jobs, str(jobs[-1].seq) if len(found) > limit else None)


def oldest_jobs(db: Database, after: int, limit: int) -> list[Job]:
    """The oldest of all jobs, beyond a position."""
    query: Document = {"seq": {"$gt": position_of(after)}, **EXISTING}
    return jobs_of(_read(db, _by_kind(db, JobFilter(), query), limit, 1))


def conditions(where: JobFilter, cursor: str | None) -> Document:
    """A filter as a query."""
    seq: Document = {"$exists": True}
    query: Document = {"seq": seq, **EXISTING}
    if cursor is not None:
        seq["$lt"] = position_of(int(cursor))
    if where.states:
        query["state"] = {"$in": [state.value for state in where.states]}
        if all(state.is_final for state in where.states):
            query["finished_at"] = {"$exists": True}
    if where.task is not None:
        query["task"] = _starts_with(where.task[:-1]) if where.task.endswith("*") else where.task
    for name, value in (("queue", where.queue), ("schedule_id", where.schedule_id), ("key", where.key)):
        if value is not None:
            query[name] = value
    created = {"$gte": where.since, "$lt": where.until}
    if where.since is not None or where.until is not None:
        query["created_at"] = {name: value for name, value in created.items() if value is not None}
    return query


def _starts_with(prefix: str) -> Document:
    """A range, which an index can answer, up to the first text after all those with this prefix."""
    return {"$gte": prefix, "$lt": prefix + "\U0010ffff"}


def _read(db: Database, reads: Sequence[_Read], limit: int, direction: int) -> list[Document]:
    answers = [list(db.jobs.find(query, hint=hint).sort("seq", direction).limit(limit)) for query, hint in reads]
    if len(answers) == 1:
        return answers[0]
    return sorted(chain.from_iterable(answers), key=_seq, reverse=direction < 0)[:limit]


def _seq(document: Document) -> int:
    seq = seq_of(document.get("seq"))
    return seq if isinstance(seq, int) else 0


def _reads(db: Database, where: JobFilter, query: Document) -> list[_Read]:
    if where.key is not None:
        return [_Read(query, "key")]
    if where.schedule_id is not None:
        return [_Read(query, "made")]
    if len(where.states) != 1:
        return _by_kind(db, where, query)
    state = where.states[0]
    query = {**query, "state": state.value}
    if state is not State.QUEUED:
        return [_Read(query, _INDEXES[state])]
    if where.task is not None:
        return _by_kind(db, where, query)
    priorities = {queue: _priorities(db, queue) for queue in _queues(db, where)}
    return [_Read({**query, **each}, "ready") for each in merged(priorities, "priority")]


def _by_kind(db: Database, where: JobFilter, query: Document) -> list[_Read]:
    task = query.get("task")
    of_queue: Document = {} if task is None else {"task": task}
    kinds = {
        queue: [task] if isinstance(task, str) else db.jobs.distinct("task", {"queue": queue, **of_queue})
        for queue in _queues(db, where)
    }
    return [_Read({**query, **each}, "kind") for each in merged(kinds, "task")]


def _queues(db: Database, where: JobFilter) -> list[Any]:
    if where.queue is not None:
        return [where.queue]
    found = db.jobs.distinct("queue", {"queue": ANY})
    return [queue for queue in found if queue is not None and isinstance(queue, Hashable)]


def _priorities(db: Database, queue: Any) -> list[Any]:
    """The priorities of a queue's ready jobs: the highest, then the highest of the others, and so on."""
    seen: list[Any] = []
    while True:
        query = {"state": "queued", "queue": queue, "priority": {"$nin": seen}}
        first = db.jobs.find_one(query, {"priority": 1}, sort=[("priority", -1)], hint="ready")
        if first is None:
            return seen
        seen.append(first.get("priority"))


def merged(values: Mapping[Any, Sequence[Any]], name: str) -> list[Document]:
    """Conditions that match each queue with its values: as few as possible, each small enough for one merge."""
    groups: list[tuple[list[Any], list[Any]]] = []
    for queue, all_values in values.items():
        for start in range(0, len(all_values), MOST_MERGED):
            some = all_values[start : start + MOST_MERGED]
            both = _union(groups[-1][1], some) if groups else []
            if groups and queue not in groups[-1][0] and (len(groups[-1][0]) + 1) * len(both) <= MOST_MERGED:
                groups[-1] = ([*groups[-1][0], queue], both)
            else:
                groups.append(([queue], list(some)))
    return [{"queue": {"$in": queues}, name: {"$in": some}} for queues, some in groups]


def _union(some: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Without repeats; a value that was written by hand may be of any type."""
    return [*some, *(value for value in others if value not in some)]
