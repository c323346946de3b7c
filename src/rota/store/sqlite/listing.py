"""Reads jobs: by id, and in lists, the newest first, each by an index however many other jobs lie between."""

from __future__ import annotations

from heapq import merge
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from rota.model.jobs.job import State
from rota.store.contract import FEWEST_REPEATED, Failure
from rota.store.shared.paging import page_of
from rota.store.sqlite.block_index import BLOCK
from rota.store.sqlite.clock import wall_time_of
from rota.store.sqlite.codec import JOB_COLUMNS, jobs_of
from rota.store.sqlite.transaction import rows_in

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from rota.model.jobs.job import Job
    from rota.store.contract import JobFilter, Page
    from rota.store.sqlite.block_index import BlockIndex
    from rota.store.sqlite.transaction import Transactions

    Row = tuple[Any, ...]
    Conditions = tuple[list[str], list[Any]]

FAR = 2**62  # beyond every position
BY_POSITION = "NOT INDEXED"
FEW = 2_000  # jobs
MOST_TOGETHER = 32  # blocks that one query reads
INDEXES = {  # of the states that have one for lists; of running jobs there are no more than workers have slots
    State.RUNNING: "leased",
    State.SCHEDULED: "scheduled",
    State.HELD: "waiting",
    State.FAILED: "failed",
    State.CANCELLED: "cancelled",
}


class Reader(NamedTuple):
    """A snapshot that jobs are listed from, or counted in: then each part of them is one row with its number."""

    connection: sqlite3.Connection
    first: int = 0  # no position below this one is read
    most: int | None = None  # count so many of a part at most

    def joined(self, parts: list[Iterator[Row]]) -> Iterator[Row]:
        """Several parts as one, in order if they are listed."""
        return merge(*parts, key=_seq, reverse=True) if self.most is None else chain.from_iterable(parts)


class Listing:
    """Reads one namespace's jobs."""

    def __init__(self, namespace: str, transactions: Transactions, blocks: BlockIndex) -> None:
        self._transactions = transactions
        self._name = f"{namespace}_job"
        self._blocks = blocks

    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        with self._transactions.read() as connection:
            return self._by_wall_clock(connection, self.get(connection, ids))

    def get(self, connection: sqlite3.Connection, ids: Sequence[str]) -> list[Job]:
        """Those of the jobs that exist, in the order asked for."""
        rows = rows_in(connection, f"SELECT {JOB_COLUMNS} FROM {self._name} WHERE id IN", ids)
        found = {job.id: job for job in jobs_of(rows)}
        return [found[job_id] for job_id in ids if job_id in found]

    def at(self, connection: sqlite3.Connection, positions: Sequence[int]) -> list[Job]:
        """Those of the jobs that exist."""
        return jobs_of(rows_in(connection, f"SELECT {JOB_COLUMNS} FROM {self._name} WHERE seq IN", positions))

    def list_jobs(self, where: JobFilter, cursor: str | None, limit: int) -> Page[Job]:
        before = FAR if cursor is None else int(cursor)
        with self._transactions.snapshot() as connection:
            rows = islice(self._newest(Reader(connection), where, before), limit + 1)
            jobs = self._by_wall_clock(connection, jobs_of(rows))
        return page_of(jobs, limit, lambda job: str(job.seq))

    def _by_wall_clock(self, connection: sqlite3.Connection, jobs: list[Job]) -> list[Job]:
        """The jobs with the ends of their leases by the clock that all other times go by."""
        ids = [job.id for job in jobs if job.lease_until is not None]
        if not ids:
            return jobs
        rows = rows_in(connection, f"SELECT id, lease_until, lease_boot FROM {self._name} WHERE id IN", ids)
        ends = {job_id: wall_time_of(until, boot) for job_id, until, boot in rows}
        return [msgspec.structs.replace(job, lease_until=ends[job.id]) if job.id in ends else job for job in jobs]

    def count_jobs(self, where: JobFilter, limit: int) -> int:
        with self._transactions.snapshot() as connection:
            number = 0
            for (some,) in self._newest(Reader(connection, most=limit), where, FAR):
                number += some
                if number >= limit:
                    return limit
            return number

    def list_failures(self, since: int, limit: int) -> list[Failure]:
        """By the index of ended jobs."""
        query = (
            f"SELECT id, task, finished_at, error FROM {self._name} INDEXED BY {self._name}_ended "
            "WHERE state = 'failed' AND finished_at >= ? ORDER BY finished_at DESC, seq DESC LIMIT ?"
        )
        with self._transactions.read() as connection:
            rows = connection.execute(query, (since, limit)).fetchall()
        return [Failure(id=job_id, task=task, at=at, error=error or "") for job_id, task, at, error in rows]

    def _newest(self, reader: Reader, where: JobFilter, before: int) -> Iterator[Row]:
        if where.since is not None or where.until is not None:
            positions = self._blocks.positions(reader.connection, where.since, where.until)
            reader, before = reader._replace(first=positions.start), min(before, positions.stop)
        kind, rest = _kind(where), _rest(where)
        states = list(dict.fromkeys(where.states))
        if where.least_attempts is not None and where.key is None:
            return self._walk(reader, _all(kind, rest, _in_states(states)), before, "INDEXED BY {}_repeated")
        if states == [State.QUEUED] and (where.task is not None or where.schedule_id is not None):
            reader = reader._replace(first=max(reader.first, self._first_ready(reader, where)))
        if where.key is not None or self._is_by_schedule(reader, where):
            return self._walk(reader, _all(kind, rest, _in_states(states)), before)
        if states:
            found = [self._in_state(reader, state, where, before) for state in states]
            return found[0] if len(found) == 1 else reader.joined(found)
        if kind[0]:
            blocks = self._blocks.of_kinds(reader.connection, *kind, before)
            return self._in_blocks(reader, blocks, _all(kind, rest), before)
        return self._walk(reader, rest, before)

    def _is_by_schedule(self, reader: Reader, where: JobFilter) -> bool:
        """Whether to read the jobs of a schedule: if it has few, or if those of the states asked for are no fewer."""
        if where.schedule_id is None or not where.states or State.SUCCEEDED in where.states:
            return where.schedule_id is not None
        if self._are_few(reader, "schedule_id = ?", where.schedule_id):
            return True
        return State.QUEUED in where.states and not self._are_few(reader, "state = 'queued'")

    def _are_few(self, reader: Reader, condition: str, *values: str) -> bool:
        few = f"SELECT count(*) FROM (SELECT 1 FROM {self._name} WHERE {condition} LIMIT {FEW})"
        return bool(reader.connection.execute(few, values).fetchone()[0] < FEW)

    def _in_state(self, reader: Reader, state: State, where: JobFilter, before: int) -> Iterator[Row]:
        kind, conditions = _kind(where), _all(([f"state = '{state.value}'"], []), _kind(where), _rest(where))
        if state is State.QUEUED and (where.task is None or self._are_few(reader, "state = 'queued'")):
            return self._ready(reader, where, conditions, before)
        index = f"INDEXED BY {{}}_{INDEXES[state]}" if state in INDEXES else BY_POSITION
        if state in INDEXES and not kind[0]:
            return self._walk(reader, conditions, before, index)
        blocks = self._blocks.of_successes(reader.connection, before) if state is State.SUCCEEDED else None
        if kind[0]:
            blocks = _in_both(blocks, self._blocks.of_kinds(reader.connection, *kind, before))
        return self._in_blocks(reader, blocks or iter(()), conditions, before, index)

    def _ready(self, reader: Reader, where: JobFilter, conditions: Conditions, before: int) -> Iterator[Row]:
        """Ready jobs: the index has them in order for each queue and priority."""
        queues = self._ready_queues(reader) if where.queue is None else [where.queue]
        parts = [(queue, priority) for queue in queues for priority in self._priorities(reader, queue)]
        found = [
            self._walk(
                reader, _all((["queue = ?", "priority = ?"], [*part]), conditions), before, "INDEXED BY {}_ready"
            )
            for part in parts
        ]
        return reader.joined(found)

    def _first_ready(self, reader: Reader, where: JobFilter) -> int:
        """The lowest position of a ready job: as a rule, most jobs of a task or a schedule have ended and are older."""
        queues = self._ready_queues(reader) if where.queue is None else [where.queue]
        query = f"SELECT min(seq) FROM {self._name} WHERE state = 'queued' AND queue = ? AND priority = ?"
        parts = [(queue, priority) for queue in queues for priority in self._priorities(reader, queue)]
        return min((int(reader.connection.execute(query, part).fetchone()[0]) for part in parts), default=FAR)

    def _ready_queues(self, reader: Reader) -> list[str]:
        ready = f"SELECT min(queue) FROM {self._name} WHERE state = 'queued'"
        return _steps(reader.connection, ready, f"{ready} AND queue > ?", [])

    def _priorities(self, reader: Reader, queue: str) -> list[int]:
        ready = f"SELECT max(priority) FROM {self._name} WHERE state = 'queued' AND queue = ?"
        return _steps(reader.connection, ready, f"{ready} AND priority < ?", [queue])

    def _walk(
        self, reader: Reader, conditions: Conditions, before: int, index: str = "", first: int = 0
    ) -> Iterator[Row]:
        """From a position on, the newest first; or how many there are."""
        clauses, values = conditions
        first = max(first, reader.first)
        bounds = ["seq < ?", *(["seq >= ?"] if first else [])]
        found = f"FROM {self._name} {index.format(self._name)} WHERE {' AND '.join([*clauses, *bounds])}"
        query = f"SELECT {JOB_COLUMNS} {found} ORDER BY seq DESC"
        if reader.most is not None:
            query = f"SELECT count(*) FROM (SELECT 1 {found} LIMIT {reader.most})"
        yield from reader.connection.execute(query, [*values, before, *([first] if first else [])])

    def _in_blocks(
        self, reader: Reader, blocks: Iterable[int], conditions: Conditions, before: int, index: str = BY_POSITION
    ) -> Iterator[Row]:
        for some in _ranges(takewhile(lambda block: (block + 1) * BLOCK > reader.first, blocks)):
            end = min(before, some.stop * BLOCK)
            yield from self._walk(reader, conditions, end, index, some.start * BLOCK)


def _ranges(blocks: Iterable[int]) -> Iterator[range]:
    """Neighbours of falling numbers as one range, so that one query reads them; not too many, as few may be enough."""
    some = range(0)
    for block in blocks:
        if some and block == some.start - 1 and len(some) < MOST_TOGETHER:
            some = range(block, some.stop)
            continue
        if some:
            yield some
        some = range(block, block + 1)
    if some:
        yield some


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
        ("attempts >= ?", where.least_attempts),
        ("attempts <= ?", where.most_attempts),
    )
    said = [(clause, value) for clause, value in asked if value is not None]
    by_index = [] if where.least_attempts is None else [f"attempts >= {FEWEST_REPEATED}"]  # as the index says it
    return [*by_index, *(clause for clause, _ in said)], [value for _, value in said]
