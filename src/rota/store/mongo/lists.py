"""Lists of jobs in their order, newest or oldest first: each goes by an index that has its matches in that order.

A job's queue and task never change, so that the index `kind` is written once per job. Lists by either, or by neither,
merge the kinds that there are: the server jumps from one to the next to tell which, and reads of each only what is
shown. Ready jobs are merged from their lines, one per queue and priority. Other states have indexes of their own, but
for running jobs, which are as few as the work that is being done. The index is always named: left to itself, the server
would go by what was best for the last list that looked alike.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from bson.min_key import MinKey
from pymongo.errors import AutoReconnect, NetworkTimeout, OperationFailure

from rota.model.state import State
from rota.store.contract import JobFilter, Page
from rota.store.mongo.documents import jobs_of
from rota.store.mongo.jobs import LIVING, conditions
from rota.store.mongo.places import beyond, seq_of
from rota.store.mongo.wire import MOST_KEPT, Command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rota.model.job import Job
    from rota.store.mongo.connection import Connection
    from rota.store.mongo.space import Document

MOST_MERGED = 200  # ranges of an index that a server merges; more of them it reads whole, and sorts
BAD_HINT = 2  # the server's word for a value that it cannot take
ANY = {"$gte": MinKey()}  # said of an index's first field, it has the server jump from one of its values to the next
ASKED_AT_ONCE = 100  # small questions in one message

_INDEXES = {
    State.SCHEDULED: "late",
    State.SUCCEEDED: "late",
    State.HELD: "rest",
    State.FAILED: "rest",
    State.CANCELLED: "rest",
    State.RUNNING: "leased",
}


class Look(NamedTuple):
    """One question to the server; without a hint it chooses the index."""

    query: Document
    hint: str | None


class Lists:
    """Lists of one namespace's jobs."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def page(self, where: JobFilter, cursor: str | None, limit: int) -> Page[Job]:
        """The newest that a filter lets through, below a cursor."""
        query = conditions(where, cursor)
        found = self._found(lambda: self._looks(where, query), query, limit + 1, -1)
        jobs = jobs_of(found[:limit])
        return Page(jobs, str(jobs[-1].seq) if len(found) > limit else None)

    def oldest(self, after: int, limit: int) -> list[Job]:
        """The oldest of all, beyond a place in line."""
        query: Document = {"seq": beyond(after), **LIVING}
        return jobs_of(self._found(lambda: self._by_kind(JobFilter(), query), query, limit, 1))

    def _found(self, looks: Callable[[], list[Look]], query: Document, limit: int, direction: int) -> list[Document]:
        """What the looks show; or all is read, where an index is missing: somebody dropped it, or it is being made."""
        try:
            return self._read(looks(), limit, direction)
        except OperationFailure as err:
            if err.code != BAD_HINT:
                raise
            return self._read([Look(query, None)], limit, direction)

    def _read(self, looks: Sequence[Look], limit: int, direction: int) -> list[Document]:
        jobs = self._connection.space.jobs
        answers = [list(jobs.find(query, hint=hint).sort("seq", direction).limit(limit)) for query, hint in looks]
        if len(answers) == 1:
            return answers[0]
        return sorted(chain.from_iterable(answers), key=_place, reverse=direction < 0)[:limit]

    def _looks(self, where: JobFilter, query: Document) -> list[Look]:
        if where.key is not None:
            return [Look(query, "key")]
        if where.schedule_id is not None:
            return [Look(query, "made")]
        if len(where.states) != 1:
            return self._by_kind(where, query)
        return self._by_state(where, where.states[0], query)

    def _by_state(self, where: JobFilter, state: State, query: Document) -> list[Look]:
        query = {**query, "state": state.value}
        if state is not State.QUEUED:
            return [Look(query, _INDEXES[state])]
        if where.task is not None:
            return self._by_kind(where, query)
        lines = self._lines(self._queues(where))
        return [Look({**query, **each}, "ready") for each in packed(lines, "priority")]

    def _by_kind(self, where: JobFilter, query: Document) -> list[Look]:
        return [Look({**query, **each}, "kind") for each in packed(self._kinds(where, query), "task")]

    # What there is.

    def _queues(self, where: JobFilter) -> list[Any]:
        if where.queue is not None:
            return [where.queue]
        (found,) = self._ask([self._distinct("queue", {"queue": ANY})])
        return [queue for queue in found["values"] if queue is not None and isinstance(queue, Hashable)]

    def _kinds(self, where: JobFilter, query: Document) -> dict[Any, list[Any]]:
        """The tasks of each queue that a list may show."""
        queues = self._queues(where)
        task = query.get("task")
        if isinstance(task, str):
            return {queue: [task] for queue in queues}
        range_of: Document = {} if task is None else {"task": task}
        found = self._ask([self._distinct("task", {"queue": queue, **range_of}) for queue in queues])
        return {queue: answer["values"] for queue, answer in zip(queues, found, strict=True)}

    def _lines(self, queues: Sequence[Any]) -> dict[Any, list[Any]]:
        """The priorities of each queue that has ready jobs: the highest, then the highest of the others, and so on."""
        lines: dict[Any, list[Any]] = {queue: [] for queue in queues}
        left = list(queues)
        while left:
            answers = self._ask([self._first(queue, lines[queue]) for queue in left])
            found = [(queue, answer["cursor"]["firstBatch"]) for queue, answer in zip(left, answers, strict=True)]
            left = [queue for queue, first in found if first]
            for queue, first in found:
                lines[queue] += [document.get("priority") for document in first]
        return lines

    def _ask(self, commands: Sequence[Command]) -> list[Document]:
        starts = range(0, len(commands), ASKED_AT_ONCE)
        return [answer for at in starts for answer in self._answers(commands[at : at + ASKED_AT_ONCE])]

    def _answers(self, commands: Sequence[Command]) -> list[Document]:
        """Asked again where the link was broken, as the driver does with what only reads: each kept one may be."""
        for _ in range(MOST_KEPT):
            try:
                return self._connection.wire.ask(*commands)
            except NetworkTimeout:
                raise
            except AutoReconnect:
                continue
        return self._connection.wire.ask(*commands)

    def _distinct(self, name: str, query: Document) -> Command:
        return Command({"distinct": self._connection.space.jobs.name, "key": name, "query": query})

    def _first(self, queue: Any, seen: Sequence[Any]) -> Command:
        """The best ready job of a queue, but for these priorities."""
        return Command(
            {
                "find": self._connection.space.jobs.name,
                "filter": {"state": "queued", "queue": queue, "priority": {"$nin": list(seen)}},
                "projection": {"priority": 1},
                "sort": {"priority": -1},
                "limit": 1,
                "hint": "ready",
            }
        )


def packed(values: Mapping[Any, Sequence[Any]], name: str) -> list[Document]:
    """Conditions that let every queue through with its values: as few as the server can merge each."""
    packs: list[tuple[list[Any], list[Any]]] = []
    for queue, all_of_it in values.items():
        for start in range(0, len(all_of_it), MOST_MERGED):
            some = all_of_it[start : start + MOST_MERGED]
            both = _union(packs[-1][1], some) if packs else []
            if packs and queue not in packs[-1][0] and (len(packs[-1][0]) + 1) * len(both) <= MOST_MERGED:
                packs[-1] = ([*packs[-1][0], queue], both)
            else:
                packs.append(([queue], list(some)))
    return [{"queue": {"$in": queues}, name: {"$in": some}} for queues, some in packs]


def _union(some: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """Without repeats; what was written by hand may be of any type."""
    union = list(some)
    union += [value for value in others if value not in union]
    return union


def _place(document: Document) -> int:
    place = seq_of(document.get("seq"))
    return place if isinstance(place, int) else 0
