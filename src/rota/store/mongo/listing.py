"""Gets jobs by id, and lists them by position, newest or oldest first. Each list uses an index with its order.

A job's queue and task never change, so the index `kind` is written once per job. Lists by either, or by neither, merge
the kinds that exist: the server skips from one to the next to find them, and reads of each only what is shown. Queued
jobs are merged from the ranges of the index `ready`, one per queue and priority. Two indexes have the kinds of each of
the other states, except running jobs, which are few. A count needs no order, so the server skips over the kinds itself.
The index is always named: otherwise the server would reuse the plan of the last list with a similar filter.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from bson.min_key import MinKey
from bson.timestamp import Timestamp

from rota.model.jobs.job import State
from rota.store.contract import Failure, JobFilter, Page
from rota.store.mongo import time_slices
from rota.store.mongo.codec import between, given, jobs_of, position_of, seq_of
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rota.model.jobs.job import Job
    from rota.store.mongo.connection import Connection
    from rota.store.mongo.database import Database, Document

EXISTING = {"state": {"$exists": True}}  # no tombstone of a removed job
MOST_MERGED = 200  # ranges of an index that a server merges; it reads and sorts the whole if there are more
FEW = 1_000  # jobs of a kind, counted by keys of its index alone
FIRST = Timestamp(0, 0)  # before every position; a tombstone has none
ANY = {"$gte": MinKey()}  # for the first field of an index: the server skips from each of its values to the next

_OF_SCHEDULE = {State.SCHEDULED: "scheduled_schedule", State.FAILED: "failed_schedule"}
_LATE = {State.SCHEDULED, State.SUCCEEDED}  # in the index of this name; those that ended otherwise or are held: `rest`


def get_jobs(db: Database, ids: Sequence[str]) -> list[Job]:
    """Those of the jobs that exist, in the order of the ids."""
    found = db.jobs.by_id(ids, **EXISTING)
    return jobs_of(found[job_id] for job_id in ids if job_id in found)


def find_job(db: Database, job_id: str) -> Job | None:
    return next(iter(get_jobs(db, [job_id])), None)


_Kinds = Callable[[], "list[Document]"]  # conditions that match all kinds of a filter


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
        with self._connection.call() as db:
            query = _in_time(db, where, conditions(where, cursor))
            if query is None:
                return Page([])
            kinds = cache(lambda: _kinds(db, where, query))
            found = _read(db, _reads(db, where, query, kinds), limit + 1, -1)
            if _may_move(where):  # a second look finds a job that was in no state when that state was read
                found = _newest([found, _read(db, _reads(db, where, query, kinds), limit + 1, -1)], limit + 1)
        return page_of(jobs_of(found), limit, lambda job: str(job.seq))

    def count_jobs(self, where: JobFilter, limit: int) -> int:
        with self._connection.call() as db:
            query = _in_time(db, where, conditions(where, None))
            reads = _reads(db, where, query, lambda: [_any_kind(query)]) if query else ()
            return _count(db, [_Read(_countable(read.query), read.hint) for read in reads], limit)

    def list_failures(self, since: int, limit: int) -> list[Failure]:
        """By the index of ended jobs."""
        query: Document = {"state": State.FAILED.value, "finished_at": {"$gte": since}}
        with self._connection.call() as db:
            fields = {"task": 1, "finished_at": 1, "error": 1}
            found = list(db.jobs.find(query, fields, hint="ended").sort("finished_at", -1).limit(limit))
        return [
            Failure(
                id=str(document["_id"]),
                task=str(document.get("task", "")),
                at=int(document["finished_at"]),
                error=str(document.get("error") or ""),
            )
            for document in found
        ]


def oldest_jobs(db: Database, after: int, limit: int) -> list[Job]:
    """The oldest of all jobs, beyond a position."""
    query: Document = {"seq": {"$gt": position_of(after)}, **EXISTING}
    return jobs_of(_read(db, _by_kind(_kinds(db, JobFilter(), query), query), limit, 1))


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
    task = where.task
    return query | given(
        task=_starts_with(task[:-1]) if task is not None and task.endswith("*") else task,
        queue=where.queue,
        schedule_id=where.schedule_id,
        key=where.key,
        attempts=between(gte=where.least_attempts, lte=where.most_attempts),
        created_at=between(gte=where.since, lt=where.until),
    )


def _in_time(db: Database, where: JobFilter, query: Document) -> Document | None:
    """The query with the positions of jobs of its time; None if there are none."""
    if where.since is None and where.until is None:
        return query
    found = time_slices.positions(db, where.since, where.until)
    if found is None:
        return None
    end = min(found.end, query["seq"].get("$lt", found.end))
    return {**query, "seq": {**query["seq"], "$gte": found.first, "$lt": end}}


def _starts_with(prefix: str) -> Document:
    """A range, which an index can answer, up to the first text after all those with this prefix."""
    return {"$gte": prefix, "$lt": prefix + "\U0010ffff"}


def _read(db: Database, reads: Sequence[_Read], limit: int, direction: int) -> list[Document]:
    answers = [list(db.jobs.find(query, hint=hint).sort("seq", direction).limit(limit)) for query, hint in reads]
    if len(answers) == 1:
        return answers[0]
    return sorted(chain.from_iterable(answers), key=stored_seq, reverse=direction < 0)[:limit]


def _count(db: Database, reads: Sequence[_Read], most: int) -> int:
    """How many jobs these find together, up to a number."""
    number = 0
    for query, hint in reads:
        number += db.jobs.count(query, most - number, hint) if number < most else 0
    return number


def _countable(query: Document) -> Document:
    """The query for a count that an index can answer alone: without what a state or a position implies."""
    seq = {"$gte": FIRST, **{name: value for name, value in query["seq"].items() if name != "$exists"}}
    rest = {name: value for name, value in query.items() if value != {"$exists": True}}
    return {**rest, "seq": seq}


def _newest(answers: Sequence[Sequence[Document]], limit: int) -> list[Document]:
    """The newest of several answers, each job as it was read last."""
    by_id = {str(document["_id"]): document for document in chain.from_iterable(answers)}
    return sorted(by_id.values(), key=stored_seq, reverse=True)[:limit]


def stored_seq(document: Document) -> int:
    """The position of a document; 0 if it was changed by hand."""
    seq = seq_of(document.get("seq"))
    return seq if isinstance(seq, int) else 0


def _reads(db: Database, where: JobFilter, query: Document, kinds: _Kinds) -> list[_Read]:
    if where.key is not None:
        return [_Read(query, "key")]
    if where.least_attempts is not None:
        return [_Read(query, "repeated")]
    if where.schedule_id is not None and _is_by_schedule(db, where):
        return [_Read(_from_first_ready(db, where, query) if where.states == (State.QUEUED,) else query, "made")]
    if not where.states:
        return _by_kind(kinds(), query)
    return [read for state in dict.fromkeys(where.states) for read in _in_state(db, where, query, state, kinds)]


def _may_move(where: JobFilter) -> bool:
    """Whether a job can move from one of the states to another while they are read one after the other."""
    return len({state for state in where.states if not state.is_final}) > 1


def _in_state(db: Database, where: JobFilter, query: Document, state: State, kinds: _Kinds) -> list[_Read]:
    query = {**query, "state": state.value}
    if where.schedule_id is not None and state in _OF_SCHEDULE:
        return [_Read(query, _OF_SCHEDULE[state])]
    if state is State.FAILED and isinstance(query.get("task"), str):
        return [_Read(query, "failed_task")]
    if state not in {State.QUEUED, State.RUNNING}:
        return _by_kind(kinds(), query, "late" if state in _LATE else "rest")
    if _are_few(db, where):
        return _by_kind(kinds(), query)
    if state is State.RUNNING:
        return [_Read(query, "leased")]
    if where.task is not None and not _are_few_ready(db):
        return _by_kind(kinds(), _from_first_ready(db, where, query))
    used = {queue: [job.get("priority") for job in first_ready(db, queue)] for queue in _queues(db, where)}
    return [_Read({**query, **each}, "ready") for each in merged(used, "priority")]


def _from_first_ready(db: Database, where: JobFilter, query: Document) -> Document:
    """The query from the lowest position of a ready job on: as a rule, most jobs of a task or a schedule have ended and
    are older."""
    firsts: list[Any] = [job.get("seq") for queue in _queues(db, where) for job in first_ready(db, queue)]
    if not all(isinstance(first, Timestamp) for first in firsts):
        return query  # somebody changed one by hand
    first = max(min(firsts, default=FIRST), query["seq"].get("$gte", FIRST))
    return {**query, "seq": {**query["seq"], "$gte": first}}


def _are_few(db: Database, where: JobFilter) -> bool:
    """Whether a filter's queue or task has so few jobs that their states can be looked at one by one."""
    if where.queue is None and where.task is None:
        return False
    kind = {name: value for name, value in conditions(where, None).items() if name in {"queue", "task"}}
    return db.jobs.count(kind | _any_kind(kind), FEW, "kind") < FEW


def _is_by_schedule(db: Database, where: JobFilter) -> bool:
    """Whether to read the jobs of a schedule: if it has few, or if those of the states asked for are no fewer."""
    if not where.states or State.SUCCEEDED in where.states:
        return True
    if db.jobs.count({"schedule_id": where.schedule_id}, FEW, "made") < FEW:
        return True
    return State.QUEUED in where.states and not _are_few_ready(db)


def _are_few_ready(db: Database) -> bool:
    return db.jobs.count({"state": State.QUEUED.value, "queue": ANY}, FEW, "ready") < FEW


def _by_kind(kinds: Sequence[Document], query: Document, hint: str = "kind") -> list[_Read]:
    return [_Read({**query, **each}, hint) for each in kinds]


def _any_kind(query: Document) -> Document:
    """What a query does not say of a kind, for a count."""
    return {name: ANY for name in ("queue", "task") if name not in query}


def _kinds(db: Database, where: JobFilter, query: Document) -> list[Document]:
    task = query.get("task")
    of_queue: Document = {} if task is None else {"task": task}
    kinds = {
        queue: [task] if isinstance(task, str) else db.jobs.distinct("task", {"queue": queue, **of_queue})
        for queue in _queues(db, where)
    }
    return merged(kinds, "task")


def _queues(db: Database, where: JobFilter) -> list[Any]:
    if where.queue is not None:
        return [where.queue]
    found = db.jobs.distinct("queue", {"queue": ANY})
    return [queue for queue in found if queue is not None and isinstance(queue, Hashable)]


def first_ready(db: Database, queue: Any) -> Iterator[Document]:
    """The first ready job of each priority of a queue, the highest first: one read for each, never of the whole."""
    fields = {"priority": 1, "seq": 1, "queued_at": 1, "run_at": 1}
    seen: list[Any] = []
    while True:
        query = {"state": "queued", "queue": queue, "priority": {"$nin": seen}}
        first = db.jobs.find_one(query, fields, sort=[("priority", -1), ("seq", 1)], hint="ready")
        if first is None:
            return
        seen.append(first.get("priority"))
        yield first


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
