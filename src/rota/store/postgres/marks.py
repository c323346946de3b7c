"""Marks: which kinds of jobs each block of places has. They are written with the jobs and cleared away after them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.job import Job
    from rota.store.postgres.marked import Kind
    from rota.store.postgres.transaction import Transaction

BLOCK = 1000  # places; the schema's functions and the column's name for it say the same
_LOOKED_AT = 500  # marks in one round of upkeep

_SETTLE = (
    "UPDATE {ns}.mark_upkeep u SET settled = CASE WHEN u.since < s.oldest THEN u.coming ELSE u.settled END, "
    "coming = CASE WHEN u.since < s.oldest OR u.since > s.own THEN %s ELSE u.coming END, "
    "since = CASE WHEN u.since < s.oldest OR u.since > s.own THEN s.own ELSE u.since END "
    "FROM (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS oldest, pg_current_xact_id() AS own) s "
    "RETURNING u.settled, u.queue, u.task, u.block"
)
_NEXT = (
    "SELECT m.ctid::text, m.queue, m.task, m.block, m.block < %s AND NOT EXISTS ("
    "SELECT FROM {ns}.job j WHERE j.seq >= m.block * 1000 AND j.seq < m.block * 1000 + 1000 "
    "AND j.queue = m.queue AND j.task = m.task) "
    "FROM (SELECT x.ctid, x.queue, x.task, x.block FROM {ns}.mark x WHERE (x.queue, x.task, x.block) > (%s, %s, %s) "
    "ORDER BY x.queue, x.task, x.block LIMIT %s) m"
)


class Kinds(NamedTuple):
    """The kinds in a list of jobs, each with how many come before its first one and behind its last one."""

    spans: list[tuple[str, str, int, int]]

    @classmethod
    def of(cls, number: int, *, queues: Sequence[str], tasks: Sequence[str]) -> Kinds:
        """Taken by blocks, which is as near as marks are. What is the same throughout has one element."""
        if len(queues) == len(tasks) == 1:
            return cls([(queues[0], tasks[0], 0, 0)])
        spans: list[tuple[str, str, int, int]] = []
        for start in range(0, number, BLOCK):
            stop = min(start + BLOCK, number)
            here = {*zip(_part(queues, start, stop), _part(tasks, start, stop), strict=True)}
            spans += [(queue, task, start, number - stop) for queue, task in sorted(here)]
        return cls(spans)

    @property
    def all(self) -> set[Kind]:
        return {(queue, task) for queue, task, _, _ in self.spans}

    @property
    def last(self) -> set[Kind]:
        """Those that may be of the last job, and are marked where that one is."""
        return {(queue, task) for queue, task, _, behind in self.spans if behind == 0}

    @property
    def columns(self) -> list[list[Any] | None]:
        """As they are sent; the server itself sees what one kind is, and where."""
        if len(self.spans) == 1:
            return [None] * 4
        return [list(column) for column in zip(*self.spans, strict=True)]


def _part(values: Sequence[str], start: int, stop: int) -> Sequence[str]:
    return values[start:stop] if len(values) > 1 else [values[0]] * (stop - start)


def mark(tx: Transaction, jobs: Sequence[Job]) -> None:
    """Mark the blocks of new jobs that have their places."""
    kinds = sorted({(job.queue, job.task, job.seq // BLOCK * BLOCK) for job in jobs})
    if kinds:
        queues, tasks, seqs = (list(column) for column in zip(*kinds, strict=True))
        tx.rows("SELECT {ns}.mark_kinds(%s, %s, %s, %s)::text", (queues, tasks, seqs, seqs))


def clear(tx: Transaction) -> None:
    """Take marks away that no job stands behind any more; a bounded number is looked at, and the next time others.

    A transaction that is under way may have relied on a mark, for jobs that nobody else sees yet. So a mark goes only
    from a block that was full when something older than every transaction now under way was written.
    """
    drawn = tx.rows("SELECT last_value FROM {ns}.job_seq_seq")[0][0]  # before the transaction has its number
    if tx.row("SELECT FROM {ns}.mark_upkeep FOR UPDATE SKIP LOCKED") is None:
        return  # somebody else does it
    ((settled, *looked_at),) = tx.rows(_SETTLE, (drawn // BLOCK,))
    found = tx.rows(_NEXT, (settled, *looked_at, _LOOKED_AT))
    empty = [place for place, _, _, _, is_empty in found if is_empty]
    tx.run("DELETE FROM {ns}.mark WHERE ctid = ANY(%s::tid[])", (empty,))
    queue, task, block = found[-1][1:4] if len(found) == _LOOKED_AT else ("", "", 0)
    tx.run("UPDATE {ns}.mark_upkeep SET queue = %s, task = %s, block = %s", (queue, task, block))
