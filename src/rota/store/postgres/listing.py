"""Lists of jobs: the newest that a filter shows, found among the newest of all or through the block index."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from rota.model.jobs.job import State
from rota.store.contract import FEWEST_REPEATED, Failure
from rota.store.postgres import job_rows
from rota.store.postgres.codec import TABLES, text_of
from rota.store.postgres.fast import block_index
from rota.store.postgres.fast.block_index import BLOCK
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.jobs.job import Job
    from rota.store.contract import JobFilter, Page
    from rota.store.postgres.codec import Row
    from rota.store.postgres.connection import Database
    from rota.store.postgres.transaction import Transaction

REACH = 2000  # rows that are read before the block index
FIRST, GROWTH, MOST = 8, 8, 512  # blocks that are read at once
DENSE = {State.SUCCEEDED, State.QUEUED}  # most jobs of a block may be in such a state, and few in another
RARE = {State.FAILED, State.CANCELLED}  # whose rows have the task and the time of creation, and an index by task
MOST_ATTEMPTS = 2**31 - 1  # of the column's type
_END = 2**63 - 1  # behind every position

_IN_BLOCK = f"x.seq >= b.block * {BLOCK} AND x.seq < b.block * {BLOCK} + {BLOCK} AND "
_POSITIONS, _NUMBER = "ARRAY({jobs})", "(SELECT count(*) FROM ({jobs}) f)"  # answers about the jobs in a block
_SPAN = "SELECT coalesce(min(u.low), 0), coalesce(max(u.high), -1) FROM ({}) u"
_ENDS = "SELECT {} AS low, max(x.seq) AS high FROM {{ns}}.{} x"
_JOINED = "JOIN {ns}.job j ON j.seq = p.seq"
# Most jobs of a schedule have succeeded. Without the OFFSET, the server may read all that ended, by several processes.
_SUCCEEDED = "CROSS JOIN LATERAL (SELECT FROM {ns}.finished y WHERE y.seq = j.seq AND y.state = 'succeeded' OFFSET 0) p"
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
    "WHERE m.queue = k.queue AND m.task = k.task "
    f"AND m.block <= (%(end)s - 1) / {BLOCK} AND m.block >= %(first)s / {BLOCK} "
    "ORDER BY m.block DESC LIMIT %(number)s) c ORDER BY c.block DESC LIMIT %(number)s"
)

_FAILURES = (  # by the index of ended jobs
    "SELECT j.id, j.task, f.finished_at, f.error FROM (SELECT x.seq, x.finished_at, x.error FROM {ns}.finished x "
    "WHERE x.state = 'failed' AND x.finished_at >= %s ORDER BY x.finished_at DESC, x.seq DESC LIMIT %s) f "
    "CROSS JOIN LATERAL (SELECT y.id, y.task FROM {ns}.job y WHERE y.seq = f.seq OFFSET 0) j "
    "ORDER BY f.finished_at DESC, f.seq DESC"
)


class Listing:
    """One namespace's jobs, read by id or by a filter."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        return self._database.call(lambda tx: job_rows.get(tx, ids))

    def list_jobs(self, where: JobFilter, cursor: str | None, limit: int) -> Page[Job]:
        end = _END if cursor is None else int(cursor)
        found = self._database.call(lambda tx: job_rows.at(tx, Search(tx, where, end).newest(limit + 1)))
        return page_of(found[::-1], limit, lambda job: str(job.seq))

    def count_jobs(self, where: JobFilter, limit: int) -> int:
        return self._database.call(lambda tx: Search(tx, where, _END).count(limit))

    def list_failures(self, since: int, limit: int) -> list[Failure]:
        rows = self._database.select(_FAILURES, (since, limit))
        return [Failure(id=job_id, task=task, at=at, error=error or "") for job_id, task, at, error in rows]


class Search:
    """The jobs before a position that a filter shows. The filter's values have the same names in all queries."""

    def __init__(self, tx: Transaction, where: JobFilter, end: int) -> None:
        self._tx = tx
        self._where = where
        positions = range(end)
        if where.since is not None or where.until is not None:
            positions = block_index.positions(tx, where.since, where.until)
        task = where.task or ""
        self._is_prefix = task.endswith("*")
        self._values = {
            "task": text_of(task.removesuffix("*") if self._is_prefix else task),
            "queue": text_of(where.queue),
            "schedule": text_of(where.schedule_id),
            "key": text_of(where.key),
            "since": where.since,
            "until": where.until,
            "first": positions.start,
            "end": min(end, positions.stop),
        }
        has_kind = where.queue is not None or where.task is not None
        is_rare = bool(where.states) and RARE.issuperset(where.states)
        of_rare_task = is_rare and where.task is not None and not self._is_prefix
        has_index = where.schedule_id is not None or where.key is not None or of_rare_task
        # Whether only the block index finds such jobs: those of a schedule have an index, and a key has one job.
        self._needs_blocks = has_kind and not has_index and where.least_attempts is None
        # Whether a filter needs what only a job's own row has.
        self._needs_job = any(one is not None for one in (where.task, where.schedule_id, where.since, where.until))
        # Whether the newest rows are likely to have such jobs, or are the cheapest to read first.
        are_dense = State.SUCCEEDED in where.states and not has_index and where.least_attempts is None
        self._is_near = self._needs_blocks or are_dense

    def newest(self, limit: int) -> list[int]:
        """The positions of the newest of these jobs, the newest first."""
        if not self._is_near:
            return self._seqs(self._by_index(limit))
        near, beyond = self._near(limit)
        if beyond is None:
            return near
        self._values["end"] = beyond + 1
        if not self._needs_blocks:
            return [*near, *self._seqs(self._by_index(limit - len(near)))]
        found = chain.from_iterable(self._in_blocks(limit, len(near), _POSITIONS))
        return [*near, *sorted(found, reverse=True)][:limit]

    def count(self, limit: int) -> int:
        """How many there are, up to a limit. The server counts: thousands of positions take longer to send."""
        if not self._needs_blocks:
            return self._number(f"SELECT count(*) FROM ({self._by_index(limit)}) c") or 0
        numbers: list[int] = self._in_blocks(limit, 0, _NUMBER)
        return min(sum(numbers), limit)

    def _rows(self, query: str, **more: int) -> list[Row]:
        return self._tx.rows(query, {**self._values, **more})

    def _seqs(self, query: str) -> list[int]:
        return [seq for (seq,) in self._rows(query)]

    def _number(self, query: str) -> int | None:
        number: int | None = self._rows(query)[0][0]
        return number

    def _near(self, limit: int) -> tuple[list[int], int | None]:
        """Jobs among the newest rows, and the newest position beyond them; None if there is no need to read on."""
        near = self._seqs(self._found(limit, tail=f"ORDER BY x.seq DESC LIMIT {REACH}"))
        if len(near) >= limit and len(self._where.states) <= 1:
            return near, None
        tail = f"ORDER BY x.seq DESC OFFSET {REACH} LIMIT 1"
        parts = [_newest_of(state, tail, "x.seq") for state in self._where.states or [None]]
        beyond = self._number(f"SELECT max(u.seq) FROM ({_all_of(parts)}) u")
        if beyond is None:
            return near, None
        # The rows of one state may reach further back than those of another.
        near = [seq for seq in near if seq > beyond]
        return near, None if len(near) >= limit else beyond

    def _in_blocks(self, limit: int, known: int, answer: str) -> list[Any]:
        """The answers about each block that has such jobs, the newest blocks first, some at a time, until there are as
        many jobs as the limit says, with those that are known."""
        low, high = self._span()
        self._values["first"] = max(int(self._values["first"] or 0), low)
        self._values["end"] = min(int(self._values["end"] or 0), high + 1)
        about = answer.format(jobs=self._found(limit, within=_IN_BLOCK))
        query = f"SELECT b.block, {about} FROM ({_BLOCKS.replace('<kinds>', self._kinds())}) b"
        number, missing, answers = FIRST, limit - known, []
        while True:
            rows = self._rows(query, number=number)
            answers += [one for _, one in rows]
            here = sum(one if answer is _NUMBER else len(one) for _, one in rows)
            if here >= missing or len(rows) < number:
                return answers
            missing -= here
            self._values["end"] = min(block for block, _ in rows) * BLOCK
            number = _next_number(number, here, missing)

    def _span(self) -> tuple[int, int]:
        """The oldest and the newest row of the states: blocks that have only older or newer jobs are not read. The rows
        of ended jobs reach back as far as the blocks do."""
        tables = dict.fromkeys(TABLES[state] for state in self._where.states)
        if not tables:
            return 0, _END
        ends = [_ENDS.format("0" if table == "finished" else "min(x.seq)", table) for table in tables]
        ((low, high),) = self._tx.rows(_SPAN.format(_all_of(ends)))
        return low, high

    def _by_index(self, limit: int) -> str:
        if self._where.least_attempts is None:
            return self._found(limit)
        # Each table has an index of jobs with several attempts. The literal is its condition.
        most = MOST_ATTEMPTS if self._where.most_attempts is None else self._where.most_attempts
        within = f"x.attempts >= {FEWEST_REPEATED} AND x.attempts BETWEEN {self._where.least_attempts} AND {most} AND "
        states = dict.fromkeys(self._where.states or State)
        return _newest_of_all([self._found_in_state(state, limit, within, "") for state in states], limit)

    def _kinds(self) -> str:
        task, has_queue = self._task_is("k"), self._where.queue is not None
        if has_queue and self._where.task is not None and not self._is_prefix:
            return "SELECT %(queue)s::text AS queue, %(task)s::text AS task"
        return _KINDS.replace("<within>", "m.queue = %(queue)s" if has_queue else "true").replace("<task>", task)

    def _found(self, limit: int, *, within: str = "", tail: str = "") -> str:
        """The positions of the newest, of all or of those in a block or in reach."""
        if not self._where.states:
            return self._found_in("j", limit, _rows_of(None, within, tail))
        parts = [
            (self._found_in_block if within and state in DENSE and self._needs_job else self._found_in_state)(
                state, limit, within, tail
            )
            for state in dict.fromkeys(self._where.states)
        ]
        return _newest_of_all(parts, limit)

    def _found_in_state(self, state: State, limit: int, within: str, tail: str) -> str:
        """Through the rows in a state, and from each to its job if the filter needs it."""
        if self._where.schedule_id is None:
            join = _ONE_BY_ONE if self._needs_job and state not in RARE else ""
            return self._found_in("p", limit, _rows_of(state, within, tail), join)
        if state is State.SUCCEEDED and self._where.least_attempts is None:
            return self._found_in("j", limit, _rows_of(None), _SUCCEEDED)
        return self._found_in("p", limit, _rows_of(state, within, tail), _JOINED)

    def _found_in_block(self, state: State, limit: int, within: str, tail: str) -> str:
        """Through the jobs in a block that has rows in a state, and from those that match to these rows."""
        jobs = self._found_in("j", BLOCK, _rows_of(None, within, tail))
        rows = f"SELECT p.seq FROM ({_rows_of(state)}) p WHERE p.seq = ANY (ARRAY({jobs}))"
        return f"{rows} AND EXISTS ({_rows_of(state, within)}) ORDER BY p.seq DESC LIMIT {limit}"

    def _found_in(self, here: str, limit: int, rows: str, join: str = "") -> str:
        clause = " AND ".join(self._conditions(here, "j" if join else here)) or "true"
        return f"SELECT {here}.seq FROM ({rows}) {here} {join} WHERE {clause} ORDER BY {here}.seq DESC LIMIT {limit}"

    def _conditions(self, here: str, job: str) -> list[str]:
        """The conditions on a job, whose own values are in the row `job`; its queue and position are in `here`, too."""
        where = self._where
        wanted = (
            (where.task, self._task_is(job)),
            (where.queue, f"{here}.queue = %(queue)s"),
            (where.schedule_id, "j.schedule_id = %(schedule)s"),
            (where.key, f"{here}.seq = (SELECT k.seq FROM {{ns}}.unique_key k WHERE k.key = %(key)s)"),
            (self._values["first"] or None, f"{here}.seq >= %(first)s"),
            (where.since, f"{job}.created_at >= %(since)s"),
            (where.until, f"{job}.created_at < %(until)s"),
        )
        return [condition for value, condition in wanted if value is not None]

    def _task_is(self, here: str) -> str:
        if self._where.task is None:
            return "true"
        return f"starts_with({here}.task, %(task)s)" if self._is_prefix else f"{here}.task = %(task)s"


def _next_number(number: int, found: int, missing: int) -> int:
    """How many blocks to read after so many that had so much; a tenth more than should do."""
    expected = number * missing * 11 // (found * 10) + 1 if found else number * GROWTH
    return max(FIRST, min(expected, MOST))


def _rows_of(state: State | None, within: str = "", tail: str = "") -> str:
    """The rows of all jobs, or of those in a state, before the end; with a tail, only the newest."""
    if tail:
        return f"SELECT n.* FROM ({_newest_of(state, tail)}) n WHERE {_is_state('n', state)}true"
    return f"SELECT x.* FROM {{ns}}.{_table_of(state)} x WHERE {within}{_is_state('x', state)}x.seq < %(end)s"


def _newest_of(state: State | None, tail: str, columns: str = "x.*") -> str:
    """The rows in a state that a tail reaches; for successes all ended jobs, because most of them are such.

    Without statistics the server takes the successes for few: it would read all of them and sort them.
    """
    is_state = "" if state is State.SUCCEEDED else _is_state("x", state)
    return f"SELECT {columns} FROM {{ns}}.{_table_of(state)} x WHERE {is_state}x.seq < %(end)s {tail}"


def _table_of(state: State | None) -> str:
    return "job" if state is None else TABLES[state]


def _is_state(here: str, state: State | None) -> str:
    """The condition on a row's state, where its table does not say it."""
    return f"{here}.state = '{state.value}' AND " if state is not None and state.is_final else ""


def _all_of(parts: Iterable[str]) -> str:
    return " UNION ALL ".join(f"({part})" for part in parts)


def _newest_of_all(parts: Iterable[str], limit: int) -> str:
    return f"SELECT u.seq FROM ({_all_of(parts)}) u ORDER BY u.seq DESC LIMIT {limit}"
