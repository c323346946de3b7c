"""Lists of jobs: the newest that a filter shows, found among the newest of all or through the block index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from rota.model.jobs.job import FINAL, State
from rota.store.contract import FEWEST_REPEATED, Failure, JobFilter
from rota.store.postgres import job_rows
from rota.store.postgres.codec import TABLES, text_of
from rota.store.postgres.fast import block_index
from rota.store.postgres.fast.block_index import BLOCK
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.jobs.job import Job
    from rota.store.contract import Page
    from rota.store.postgres.connection import Database
    from rota.store.postgres.transaction import Transaction

REACH = 2000  # rows that are read before the block index
FIRST, GROWTH, MOST = 8, 8, 512  # blocks that are read at once
DENSE = {State.SUCCEEDED, State.QUEUED}  # most jobs of a block may be in such a state, and few in another
MOST_ATTEMPTS = 2**31 - 1  # of the column's type
_END = 2**63 - 1  # behind every position

_IN_BLOCK = f"x.seq >= b.block * {BLOCK} AND x.seq < b.block * {BLOCK} + {BLOCK} AND "
_JOINED = "JOIN {ns}.job j ON j.seq = p.seq"
# If the rows stop early, no plan may begin with all jobs.
_ONE_BY_ONE = "CROSS JOIN LATERAL (SELECT y.* FROM {ns}.job y WHERE y.seq = p.seq OFFSET 0) j"
_KINDS = (  # one probe per queue and task, never all of its entries
    "SELECT k.queue, k.task FROM (WITH RECURSIVE kind (queue, task) AS ("
    "(SELECT m.queue, m.task FROM {ns}.block_index m WHERE <within> ORDER BY m.queue, m.task LIMIT 1) UNION ALL "
    "SELECT n.queue, n.task FROM kind k CROSS JOIN LATERAL (SELECT m.queue, m.task FROM {ns}.block_index m "
    "WHERE (m.queue, m.task) > (k.queue, k.task) AND <within> ORDER BY m.queue, m.task LIMIT 1) n) "
    "SELECT * FROM kind) k WHERE <task>"
)
_BLOCKS = (
    "SELECT DISTINCT c.block FROM (<kinds>) k CROSS JOIN LATERAL (SELECT DISTINCT m.block FROM {ns}.block_index m "
    "WHERE m.queue = k.queue AND m.task = k.task AND m.block <= %s AND m.block >= %s ORDER BY m.block DESC LIMIT %s) c "
    "ORDER BY c.block DESC LIMIT %s"
)

_FAILURES = (  # by the index of ended jobs
    "SELECT j.id, j.task, f.finished_at, f.error FROM (SELECT x.seq, x.finished_at, x.error FROM {ns}.finished x "
    "WHERE x.state = 'failed' AND x.finished_at >= %s ORDER BY x.finished_at DESC, x.seq DESC LIMIT %s) f "
    "CROSS JOIN LATERAL (SELECT y.id, y.task FROM {ns}.job y WHERE y.seq = f.seq OFFSET 0) j "
    "ORDER BY f.finished_at DESC, f.seq DESC"
)


class Query(NamedTuple):
    """A statement, or a part of one, and the values for it."""

    text: str
    values: list[Any]


class Listing:
    """One namespace's jobs, read by id or by a filter."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        return self._database.call(lambda tx: job_rows.get(tx, ids))

    def list_jobs(self, where: JobFilter, cursor: str | None, limit: int) -> Page[Job]:
        return self._database.call(lambda tx: _page(tx, where, _END if cursor is None else int(cursor), limit))

    def count_jobs(self, where: JobFilter, limit: int) -> int:
        return self._database.call(lambda tx: _count(tx, where, limit))

    def list_failures(self, since: int, limit: int) -> list[Failure]:
        rows = self._database.call(lambda tx: tx.rows(_FAILURES, (since, limit)))
        return [Failure(id=job_id, task=task, at=at, error=error or "") for job_id, task, at, error in rows]


def _page(tx: Transaction, where: JobFilter, end: int, limit: int) -> Page[Job]:
    seqs = newest(tx, where, end, limit + 1)
    return page_of(job_rows.at(tx, seqs)[::-1], limit, lambda job: str(job.seq))


class Bounded(JobFilter, frozen=True, kw_only=True):
    """A filter with the lowest position that a job of its time can have."""

    first: int


def newest(tx: Transaction, where: JobFilter, end: int, limit: int) -> list[int]:
    """The positions of the newest jobs before an end that a filter shows, the newest first."""
    where, end = _bounded(tx, where, end)
    if where.least_attempts is not None or not _is_near(where):
        return _seqs(tx, _by_index(where, end, limit))
    near, beyond = _near(tx, where, end, limit)
    if beyond is None:
        return near
    if _needs_blocks(where):
        return _in_blocks(tx, where, beyond + 1, limit, near)
    return [*near, *_seqs(tx, _by_index(where, beyond + 1, limit - len(near)))]


def _count(tx: Transaction, where: JobFilter, limit: int) -> int:
    """How many jobs a filter shows, up to a limit. The server counts: thousands of positions take longer to send."""
    where, end = _bounded(tx, where, _END)
    if where.least_attempts is not None or not _needs_blocks(where):
        query = _by_index(where, end, limit)
        found: int = tx.rows(f"SELECT count(*) FROM ({query.text}) c", query.values)[0][0]
        return found
    near, beyond = _near(tx, where, end, limit)
    return len(near) if beyond is None else _count_in_blocks(tx, where, beyond + 1, limit, len(near))


def _bounded(tx: Transaction, where: JobFilter, end: int) -> tuple[JobFilter, int]:
    """The filter and the end with the positions that jobs of its time can have."""
    if where.since is None and where.until is None:
        return where, end
    positions = block_index.positions(tx, where.since, where.until)
    return Bounded(**msgspec.structs.asdict(where), first=positions.start), min(end, positions.stop)


def _by_index(where: JobFilter, end: int, limit: int) -> Query:
    return _found(where, end, limit) if where.least_attempts is None else _repeated(where, end, limit)


def _near(tx: Transaction, where: JobFilter, end: int, limit: int) -> tuple[list[int], int | None]:
    """Jobs among the newest rows, and the newest position beyond them; None if there is no need to read on."""
    near = _seqs(tx, _found(where, end, limit, tail=f"ORDER BY x.seq DESC LIMIT {REACH}"))
    if len(near) >= limit and len(where.states or ()) <= 1:
        return near, None
    beyond = _beyond_reach(tx, where, end)
    if beyond is None:
        return near, None
    # The rows of one state may reach further back than those of another.
    near = [seq for seq in near if seq > beyond]
    return near, None if len(near) >= limit else beyond


def _repeated(where: JobFilter, end: int, limit: int) -> Query:
    """Jobs with several attempts: each table has an index of those."""
    # The literal is the condition of the index.
    within = f"x.attempts >= {FEWEST_REPEATED} AND x.attempts BETWEEN {where.least_attempts} AND "
    within += f"{MOST_ATTEMPTS if where.most_attempts is None else where.most_attempts} AND "
    parts = [_found_in_state(state, where, end, limit, within, "") for state in dict.fromkeys(where.states or State)]
    return _union(f"SELECT u.seq FROM ({{parts}}) u ORDER BY u.seq DESC LIMIT {limit}", parts)


def _is_near(where: JobFilter) -> bool:
    """Whether the newest rows are likely to have what a filter shows, or are the cheapest to read first."""
    has_index = where.schedule_id is not None or where.key is not None
    return _needs_blocks(where) or (State.SUCCEEDED in (where.states or ()) and not has_index)


def _needs_blocks(where: JobFilter) -> bool:
    """Whether only the block index finds such jobs: those of a schedule have an index, and a key has one job."""
    has_kind = where.queue is not None or where.task is not None
    return has_kind and where.schedule_id is None and where.key is None


def _beyond_reach(tx: Transaction, where: JobFilter, end: int) -> int | None:
    """The newest position that was not read; None if all were."""
    tail = f"ORDER BY x.seq DESC OFFSET {REACH} LIMIT 1"
    parts = [_newest_of(state, end, tail, columns="x.seq") for state in where.states or [None]]
    found: int | None = tx.rows(*_union("SELECT max(u.seq) FROM ({parts}) u", parts))[0][0]
    return found


def _in_blocks(tx: Transaction, where: JobFilter, end: int, limit: int, found: list[int]) -> list[int]:
    """What was found, and the newest jobs before an end in the blocks that have such jobs, some at a time."""
    number = FIRST
    while True:
        blocks = _blocks(where, (end - 1) // BLOCK, number)
        inner = _found(where, end, limit, within=_IN_BLOCK)
        text = f"SELECT b.block, f.seq FROM ({blocks.text}) b LEFT JOIN LATERAL ({inner.text}) f ON true"
        rows = tx.rows(text, [*blocks.values, *inner.values])
        here = sorted((seq for _, seq in rows if seq is not None), reverse=True)
        found = [*found, *here]
        checked = {block for block, _ in rows}
        if len(found) >= limit or len(checked) < number:
            return found[:limit]
        end = min(checked) * BLOCK
        number = _next_number(number, len(here), limit - len(found))


def _count_in_blocks(tx: Transaction, where: JobFilter, end: int, limit: int, found: int) -> int:
    number = FIRST
    while True:
        blocks = _blocks(where, (end - 1) // BLOCK, number)
        inner = _found(where, end, limit, within=_IN_BLOCK)
        text = f"SELECT b.block, (SELECT count(*) FROM ({inner.text}) f) FROM ({blocks.text}) b"
        counts: dict[int, int] = dict(tx.rows(text, [*inner.values, *blocks.values]))
        here = sum(counts.values())
        found += here
        if found >= limit or len(counts) < number:
            return min(found, limit)
        end = min(counts) * BLOCK
        number = _next_number(number, here, limit - found)


def _next_number(number: int, found: int, missing: int) -> int:
    """How many blocks to read after so many that had so much; a tenth more than should do."""
    expected = number * missing * 11 // (found * 10) + 1 if found else number * GROWTH
    return max(FIRST, min(expected, MOST))


def _blocks(where: JobFilter, highest: int, number: int) -> Query:
    """The newest blocks, up to one, that have such jobs."""
    kinds = _kinds(where)
    return Query(
        _BLOCKS.replace("<kinds>", kinds.text), [*kinds.values, highest, _first(where) // BLOCK, number, number]
    )


def _kinds(where: JobFilter) -> Query:
    queue, task = text_of(where.queue), _task_is("k", where)
    if queue is not None and where.task is not None and not where.task.endswith("*"):
        return Query("SELECT %s::text AS queue, %s::text AS task", [queue, *task.values])
    within = Query("true", []) if queue is None else Query("m.queue = %s", [queue])
    text = _KINDS.replace("<within>", within.text).replace("<task>", task.text)
    return Query(text, [*within.values, *within.values, *task.values])


def _found(where: JobFilter, end: int, limit: int, *, within: str = "", tail: str = "") -> Query:
    """The positions of the newest jobs that a filter shows, of all or of those in a block or in reach."""
    if not where.states:
        return _found_in("j", where, limit, _rows_of(None, end, within, tail))
    parts = [
        (_found_in_block if within and state in DENSE and _needs_job(where) else _found_in_state)(
            state, where, end, limit, within, tail
        )
        for state in dict.fromkeys(where.states)
    ]
    return _union(f"SELECT u.seq FROM ({{parts}}) u ORDER BY u.seq DESC LIMIT {limit}", parts)


def _found_in_state(state: State, where: JobFilter, end: int, limit: int, within: str, tail: str) -> Query:
    """Through the rows in a state, and from each to its job if the filter needs it."""
    join = (_ONE_BY_ONE if where.schedule_id is None else _JOINED) if _needs_job(where) else ""
    return _found_in("p", where, limit, _rows_of(state, end, within, tail), join)


def _found_in_block(state: State, where: JobFilter, end: int, limit: int, within: str, tail: str) -> Query:
    """Through the jobs in a block, and from those that match to their rows in a state."""
    jobs = _found_in("j", where, BLOCK, _rows_of(None, end, within, tail))
    rows = _rows_of(state, end)
    return Query(
        f"SELECT p.seq FROM ({rows.text}) p WHERE p.seq = ANY (ARRAY({jobs.text})) ORDER BY p.seq DESC LIMIT {limit}",
        [*rows.values, *jobs.values],
    )


def _found_in(here: str, where: JobFilter, limit: int, rows: Query, join: str = "") -> Query:
    conditions = _conditions(where, here)
    clause = " AND ".join(condition.text for condition in conditions) or "true"
    return Query(
        f"SELECT {here}.seq FROM ({rows.text}) {here} {join} WHERE {clause} ORDER BY {here}.seq DESC LIMIT {limit}",
        [*rows.values, *(value for condition in conditions for value in condition.values)],
    )


def _rows_of(state: State | None, end: int, within: str = "", tail: str = "") -> Query:
    """The rows of all jobs, or of those in a state, before an end; with a tail, only the newest."""
    if tail:
        rows = _newest_of(state, end, tail)
        is_state = _is_state("n", state)
        return Query(f"SELECT n.* FROM ({rows.text}) n WHERE {is_state.text}true", [*rows.values, *is_state.values])
    is_state = _is_state("x", state)
    text = f"SELECT x.* FROM {{ns}}.{_table_of(state)} x WHERE {within}{is_state.text}x.seq < %s"
    return Query(text, [*is_state.values, end])


def _newest_of(state: State | None, end: int, tail: str, columns: str = "x.*") -> Query:
    """The rows in a state that a tail reaches; for successes all ended jobs, because most of them are such.

    Without statistics the server takes the successes for few: it would read all of them and sort them.
    """
    is_state = Query("", []) if state is State.SUCCEEDED else _is_state("x", state)
    text = f"SELECT {columns} FROM {{ns}}.{_table_of(state)} x WHERE {is_state.text}x.seq < %s {tail}"
    return Query(text, [*is_state.values, end])


def _table_of(state: State | None) -> str:
    return "job" if state is None else TABLES[state]


def _is_state(here: str, state: State | None) -> Query:
    """The condition on a row's state, where its table does not say it."""
    return Query(f"{here}.state = %s AND ", [state.value]) if state in FINAL and state is not None else Query("", [])


def _first(where: JobFilter) -> int:
    return where.first if isinstance(where, Bounded) else 0


def _needs_job(where: JobFilter) -> bool:
    """Whether a filter needs what only a job's own row has."""
    return any(value is not None for value in (where.task, where.schedule_id, where.since, where.until))


def _conditions(where: JobFilter, here: str) -> list[Query]:
    """The conditions on a job `j`; its queue and position are in the row `here`, too."""
    texts = ((f"{here}.queue = %s", where.queue), ("j.schedule_id = %s", where.schedule_id))
    key = f"{here}.seq = (SELECT k.seq FROM {{ns}}.unique_key k WHERE k.key = %s)"
    named = [Query(text, [text_of(value)]) for text, value in (*texts, (key, where.key)) if value is not None]
    times = (("j.created_at >= %s", where.since), ("j.created_at < %s", where.until))
    first = [Query(f"{here}.seq >= %s", [_first(where)])] if _first(where) else []
    timed = [*first, *(Query(text, [value]) for text, value in times if value is not None)]
    return [*([] if where.task is None else [_task_is("j", where)]), *named, *timed]


def _task_is(here: str, where: JobFilter) -> Query:
    if where.task is None:
        return Query("true", [])
    if where.task.endswith("*"):
        return Query(f"starts_with({here}.task, %s)", [text_of(where.task[:-1])])
    return Query(f"{here}.task = %s", [text_of(where.task)])


def _union(text: str, parts: Iterable[Query]) -> Query:
    parts = list(parts)
    whole = " UNION ALL ".join(f"({part.text})" for part in parts)
    return Query(text.replace("{parts}", whole), [value for part in parts for value in part.values])


def _seqs(tx: Transaction, query: Query) -> list[int]:
    return [seq for (seq,) in tx.rows(*query)]
