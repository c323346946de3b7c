"""Reads jobs: by id, and in lists, the newest first, each by an index however many other jobs lie between."""

from __future__ import annotations

from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any

from rota.model.state import State
from rota.store.shared.matching import check_cursor
from rota.store.shared.paging import page_of
from rota.store.sqlite.block_index import BLOCK
from rota.store.sqlite.codec import JOB_COLUMNS, jobs_of
from rota.store.sqlite.transaction import rows_in

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from rota.model.job import Job
    from rota.store.contract import JobFilter, Page
    from rota.store.sqlite.block_index import BlockIndex
    from rota.store.sqlite.transaction import Transactions

    Row = tuple[Any, ...]
    Conditions = tuple[list[str], list[Any]]

FAR = 2**62  # beyond every position
INDEXES = {  # of the states that have one for lists; of running jobs there are no more than workers have slots
    State.RUNNING: "leased",
    State.SCHEDULED: "scheduled",
    State.HELD: "waiting",
    State.FAILED: "failed",
    State.CANCELLED: "cancelled",
}


class Listing:
    """Reads one namespace's jobs."""

    def __init__(self, namespace: str, transactions: Transactions, blocks: BlockIndex) -> None:
        self._transactions = transactions
        self._name = f"{namespace}_job"
        self._blocks = blocks

    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        with self._transactions.read() as connection:
            return self.get(connection, ids)

    def get(self, connection: sqlite3.Connection, ids: Sequence[str]) -> list[Job]:
        """Those of the jobs that exist, in the order asked for."""
        rows = rows_in(connection, f"SELECT {JOB_COLUMNS} FROM {self._name} WHERE id IN", ids)
        found = {job.id: job for job in jobs_of(rows)}
        return [found[job_id] for job_id in ids if job_id in found]

    def at(self, connection: sqlite3.Connection, positions: Sequence[int]) -> list[Job]:
        """Those of the jobs that exist."""
        return jobs_of(rows_in(connection, f"SELECT {JOB_COLUMNS} FROM {self._name} WHERE seq IN", positions))

    def list_jobs(self, where: JobFilter, cursor: str | None, limit: int) -> Page[Job]:
        before = FAR if check_cursor(cursor) is None else int(cursor or 0)
        with self._transactions.snapshot() as connection:
            jobs = jobs_of(islice(self._newest(connection, where, before), limit + 1))
        return page_of(jobs, limit, lambda job: str(job.seq))

    def _newest(self, connection: sqlite3.Connection, where: JobFilter, before: int) -> Iterator[Row]:
        kind, rest = _kind(where), _rest(where)
        states = list(dict.fromkeys(where.states))
        if where.key is not None or where.schedule_id is not None:
            return self._walk(connection, _all(kind, rest, _in_states(states)), before)
        if states:
            found = [self._in_state(connection, state, where, before) for state in states]
            return found[0] if len(found) == 1 else merge(*found, key=_seq, reverse=True)
        if kind[0]:
            blocks = self._blocks.of_kinds(connection, *kind, before)
            return self._in_blocks(connection, blocks, _all(kind, rest), before)
        return self._walk(connection, rest, before)

    def _in_state(self, connection: sqlite3.Connection, state: State, where: JobFilter, before: int) -> Iterator[Row]:
        kind, conditions = _kind(where), _all(([f"state = '{state.value}'"], []), _kind(where), _rest(where))
        if state is State.QUEUED and where.task is None:
            return self._ready(connection, where, conditions, before)
        if state in INDEXES:
            return self._walk(connection, conditions, before, f"INDEXED BY {{}}_{INDEXES[state]}")
        blocks = self._blocks.of_successes(connection, before) if state is State.SUCCEEDED else None
        if kind[0]:
            blocks = _in_both(blocks, self._blocks.of_kinds(connection, *kind, before))
        return self._in_blocks(connection, blocks or iter(()), conditions, before)

    def _ready(
        self, connection: sqlite3.Connection, where: JobFilter, conditions: Conditions, before: int
    ) -> Iterator[Row]:
        """Ready jobs: the index has them in order for each queue and priority."""
        queues = self._ready_queues(connection) if where.queue is None else [where.queue]
        parts = [(queue, priority) for queue in queues for priority in self._priorities(connection, queue)]
        found = [
            self._walk(
                connection, _all((["queue = ?", "priority = ?"], [*part]), conditions), before, "INDEXED BY {}_ready"
            )
            for part in parts
        ]
        return merge(*found, key=_seq, reverse=True)

    def _ready_queues(self, connection: sqlite3.Connection) -> list[str]:
        ready = f"SELECT min(queue) FROM {self._name} WHERE state = 'queued'"
        return _steps(connection, ready, f"{ready} AND queue > ?", [])

    def _priorities(self, connection: sqlite3.Connection, queue: str) -> list[int]:
        ready = f"SELECT max(priority) FROM {self._name} WHERE state = 'queued' AND queue = ?"
        return _steps(connection, ready, f"{ready} AND priority < ?", [queue])

    def _walk(
        self, connection: sqlite3.Connection, conditions: Conditions, before: int, index: str = "", first: int = 0
    ) -> Iterator[Row]:
        """From a position on, the newest first."""
        clauses, values = conditions
        bounds = ["seq < ?", *(["seq >= ?"] if first else [])]
        query = (
            f"SELECT {JOB_COLUMNS} FROM {self._name} {index.format(self._name)} "
            f"WHERE {' AND '.join([*clauses, *bounds])} ORDER BY seq DESC"
        )
        return iter(connection.execute(query, [*values, before, *([first] if first else [])]))

    def _in_blocks(
        self, connection: sqlite3.Connection, blocks: Iterable[int], conditions: Conditions, before: int
    ) -> Iterator[Row]:
        for block in blocks:
            end = min(before, (block + 1) * BLOCK)
            yield from self._walk(connection, conditions, end, "NOT INDEXED", block * BLOCK)


def _steps(connection: sqlite3.Connection, first: str, following: str, values: list[Any]) -> list[Any]:
    """The distinct values that an index has, one look for each."""
    found: list[Any] = []
    (value,) = connection.execute(first, values).fetchone()
    while value is not None:
        found.append(value)
        (value,) = connection.execute(following, [*values, value]).fetchone()
    return found


def _in_both(some: Iterator[int] | None, others: Iterator[int]) -> Iterator[int]:
    """The blocks that both have."""
    if some is None:
        return others
    chosen = set(others)
    return (block for block in some if block in chosen)


def _seq(row: Row) -> int:
    return int(row[1])


def _all(*parts: Conditions) -> Conditions:
    return [clause for clauses, _ in parts for clause in clauses], [value for _, values in parts for value in values]


def _in_states(states: list[State]) -> Conditions:
    if not states:
        return [], []
    return [f"state IN ({', '.join('?' * len(states))})"], [state.value for state in states]


def _kind(where: JobFilter) -> Conditions:
    """What a filter says of queue and task, which a job keeps for life."""
    conditions: list[str] = []
    values: list[Any] = []
    if where.queue is not None:
        conditions.append("queue = ?")
        values.append(where.queue)
    if where.task is not None and where.task.endswith("*"):
        conditions.append("substr(task, 1, ?) = ?")
        values += [len(where.task) - 1, where.task[:-1]]
    elif where.task is not None:
        conditions.append("task = ?")
        values.append(where.task)
    return conditions, values


def _rest(where: JobFilter) -> Conditions:
    asked = (
        ("schedule_id = ?", where.schedule_id),
        ("key = ?", where.key),
        ("created_at >= ?", where.since),
        ("created_at < ?", where.until),
    )
    said = [(clause, value) for clause, value in asked if value is not None]
    return [clause for clause, _ in said], [value for _, value in said]
