"""Lists of jobs: the places of the newest that a filter shows, found near the end or by the marks of their kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rota.model.state import FINAL
from rota.store.postgres.codec import TABLES, text_of
from rota.store.postgres.marks import BLOCK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.model.state import State
    from rota.store.contract import JobFilter
    from rota.store.postgres.transaction import Transaction

REACH = 2000  # rows that are looked through before marks are asked for
FIRST, GROWTH, MOST = 8, 8, 512  # blocks that are looked through at once
_END = 2**63 - 1  # behind every place

_IN_BLOCK = f"x.seq >= b.block * {BLOCK} AND x.seq < b.block * {BLOCK} + {BLOCK} AND "
_JOINED = "JOIN {ns}.job j ON j.seq = p.seq"
# Where the rows stop early, no plan may begin with all jobs.
_ONE_BY_ONE = "CROSS JOIN LATERAL (SELECT y.* FROM {ns}.job y WHERE y.seq = p.seq OFFSET 0) j"
_KINDS = (  # one look per kind, never at all of its marks
    "SELECT k.queue, k.task FROM (WITH RECURSIVE kind (queue, task) AS ("
    "(SELECT m.queue, m.task FROM {ns}.mark m WHERE <within> ORDER BY m.queue, m.task LIMIT 1) UNION ALL "
    "SELECT n.queue, n.task FROM kind k CROSS JOIN LATERAL (SELECT m.queue, m.task FROM {ns}.mark m "
    "WHERE (m.queue, m.task) > (k.queue, k.task) AND <within> ORDER BY m.queue, m.task LIMIT 1) n) "
    "SELECT * FROM kind) k WHERE <task>"
)
_BLOCKS = (
    "SELECT DISTINCT c.block FROM (<kinds>) k CROSS JOIN LATERAL (SELECT DISTINCT m.block FROM {ns}.mark m "
    "WHERE m.queue = k.queue AND m.task = k.task AND m.block <= %s ORDER BY m.block DESC LIMIT %s) c "
    "ORDER BY c.block DESC LIMIT %s"
)


class Query(NamedTuple):
    """A statement, or a part of one, and the values for it."""

    text: str
    values: list[Any]


def newest(tx: Transaction, where: JobFilter, below: int | None, limit: int) -> list[int]:
    """The places of the newest jobs before a place that a filter shows, the newest first."""
    end = _END if below is None else below
    if not _is_by_kind(where):
        return _seqs(tx, _found(where, end, limit))
    near = _seqs(tx, _found(where, end, limit, tail=f"ORDER BY x.seq DESC LIMIT {REACH}"))
    if len(near) >= limit:
        return near
    beyond = _beyond_reach(tx, where, end)
    if beyond is None:
        return near
    near = [seq for seq in near if seq > beyond]
    return _by_marks(tx, where, beyond + 1, limit, near)


def _is_by_kind(where: JobFilter) -> bool:
    """Whether only marks tell where such jobs are: those of a schedule have an index, and of a key there is one."""
    has_kind = where.queue is not None or where.task is not None
    return has_kind and where.schedule_id is None and where.key is None


def _beyond_reach(tx: Transaction, where: JobFilter, end: int) -> int | None:
    """The newest place that was not reached; None where all were."""
    tail = f"ORDER BY x.seq DESC OFFSET {REACH} LIMIT 1"
    parts = [_rows_of(state, end, tail=tail, columns="x.seq") for state in where.states or [None]]
    found: int | None = tx.rows(*_union("SELECT max(u.seq) FROM ({parts}) u", parts))[0][0]
    return found


def _by_marks(tx: Transaction, where: JobFilter, end: int, limit: int, found: list[int]) -> list[int]:
    """What was found, and the newest jobs before an end in the blocks that are marked for them, some at a time."""
    number = FIRST
    while True:
        blocks = _blocks(where, (end - 1) // BLOCK, number)
        inner = _found(where, end, limit, within=_IN_BLOCK)
        text = f"SELECT b.block, f.seq FROM ({blocks.text}) b LEFT JOIN LATERAL ({inner.text}) f ON true"
        rows = tx.rows(text, [*blocks.values, *inner.values])
        here = sorted((seq for _, seq in rows if seq is not None), reverse=True)
        found = [*found, *here]
        looked_at = {block for block, _ in rows}
        if len(found) >= limit or len(looked_at) < number:
            return found[:limit]
        end = min(looked_at) * BLOCK
        number = _next_number(number, len(here), limit - len(found))


def _next_number(number: int, found: int, missing: int) -> int:
    """How many blocks to look through after so many that had so much; a tenth more than should do."""
    expected = number * missing * 11 // (found * 10) + 1 if found else number * GROWTH
    return max(FIRST, min(expected, MOST))


def _blocks(where: JobFilter, highest: int, number: int) -> Query:
    """The newest blocks, up to one, that are marked for such jobs."""
    kinds = _kinds(where)
    return Query(_BLOCKS.replace("<kinds>", kinds.text), [*kinds.values, highest, number, number])


def _kinds(where: JobFilter) -> Query:
    queue, task = text_of(where.queue), _task_is("k", where)
    if queue is not None and where.task is not None and not where.task.endswith("*"):
        return Query("SELECT %s::text AS queue, %s::text AS task", [queue, *task.values])
    within = Query("true", []) if queue is None else Query("m.queue = %s", [queue])
    text = _KINDS.replace("<within>", within.text).replace("<task>", task.text)
    return Query(text, [*within.values, *within.values, *task.values])


def _found(where: JobFilter, end: int, limit: int, *, within: str = "", tail: str = "") -> Query:
    """The places of the newest jobs that a filter shows, of all or of what a block or a reach leaves of them."""
    if not where.states:
        return _found_in("j", where, limit, _rows_of(None, end, within, tail))
    find = _found_in_state if not within or not _asks_job(where) else _found_in_block
    parts = [find(state, where, end, limit, within, tail) for state in where.states]
    return _union(f"SELECT u.seq FROM ({{parts}}) u ORDER BY u.seq DESC LIMIT {limit}", parts)


def _found_in_state(state: State, where: JobFilter, end: int, limit: int, within: str, tail: str) -> Query:
    """Through the rows in a state, and from each to its job if that is asked for anything."""
    join = (_ONE_BY_ONE if where.schedule_id is None else _JOINED) if _asks_job(where) else ""
    return _found_in("p", where, limit, _rows_of(state, end, within, tail), join)


def _found_in_block(state: State, where: JobFilter, end: int, limit: int, within: str, tail: str) -> Query:
    """Through the jobs in a block, and from those that are asked for to their rows in a state."""
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


def _rows_of(state: State | None, end: int, within: str = "", tail: str = "", columns: str = "x.*") -> Query:
    """The rows of all jobs, or of those in a state, that stand before an end."""
    table = "job" if state is None else TABLES[state]
    is_state = Query("x.state = %s AND ", [state.value]) if state in FINAL and state is not None else Query("", [])
    text = f"SELECT {columns} FROM {{ns}}.{table} x WHERE {within}{is_state.text}x.seq < %s {tail}"
    return Query(text, [*is_state.values, end])


def _asks_job(where: JobFilter) -> bool:
    """Whether a filter asks for what only a job's own row says."""
    return any(value is not None for value in (where.task, where.schedule_id, where.since, where.until))


def _conditions(where: JobFilter, here: str) -> list[Query]:
    """What a filter asks of a job `j`; its queue and place are in the row `here` as well."""
    texts = ((f"{here}.queue = %s", where.queue), ("j.schedule_id = %s", where.schedule_id))
    key = f"{here}.seq = (SELECT k.seq FROM {{ns}}.unique_key k WHERE k.key = %s)"
    named = [Query(text, [text_of(value)]) for text, value in (*texts, (key, where.key)) if value is not None]
    times = (("j.created_at >= %s", where.since), ("j.created_at < %s", where.until))
    timed = [Query(text, [value]) for text, value in times if value is not None]
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
