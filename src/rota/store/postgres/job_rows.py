"""Reads, inserts, moves, locks and deletes the rows of jobs. Each state has a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.model.jobs.job import State
from rota.store.postgres import codec
from rota.store.postgres.fast.block_index import BLOCK, SLICE
from rota.store.postgres.transaction import columns_of, insert_statement
from rota.store.shared.batching import grouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.jobs.job import Job
    from rota.store.postgres.transaction import Transaction

_INSERT = insert_statement("job", codec.RECORD, "ON CONFLICT (id) DO NOTHING RETURNING seq")
UPDATE, FREE, SHARE = "FOR UPDATE OF p", "FOR UPDATE OF p SKIP LOCKED", "FOR SHARE OF p"  # how jobs are locked
_CLAIMABLE = {State.QUEUED, State.SCHEDULED}
_LOCKED = [name for name in codec.STATE_ROW if name not in {"seq", "queue"}]


def get(tx: Transaction, ids: Sequence[str]) -> list[Job]:
    """Those of the jobs that exist, in the order of the ids."""
    if not ids:
        return []
    rows = tx.rows(f"SELECT {codec.JOB_COLUMNS} FROM {{ns}}.jobs WHERE id = ANY(%s)", (list(ids),))
    found = {job.id: job for job in codec.jobs_from(rows)}
    return [found[job_id] for job_id in ids if job_id in found]


def at(tx: Transaction, seqs: Sequence[int]) -> list[Job]:
    """Jobs by position, the oldest first."""
    query = f"SELECT {codec.JOB_COLUMNS} FROM {{ns}}.jobs WHERE seq = ANY(%s) ORDER BY seq"
    return codec.jobs_from(tx.rows(query, (list(seqs),))) if seqs else []


def made(tx: Transaction, occurrences: Sequence[tuple[str, int | None]]) -> set[tuple[str, int]]:
    """Those of the occurrences (schedule and time) that have a job."""
    if not occurrences:
        return set()
    rows: list[tuple[str, int]] = tx.rows(
        "SELECT j.schedule_id, j.fire_at FROM unnest(%s::text[], %s::bigint[]) AS w (id, fire_at) "
        "JOIN {ns}.job j ON j.schedule_id = w.id AND j.fire_at = w.fire_at",
        ([name for name, _ in occurrences], [fire_at for _, fire_at in occurrences]),
    )
    return set(rows)


def last_held(tx: Transaction, names: Sequence[str]) -> dict[str, str]:
    """Of each schedule the last held job."""
    if not names:
        return {}
    query = (
        "SELECT DISTINCT ON (h.schedule_id) h.schedule_id, j.id FROM {ns}.held h JOIN {ns}.job j ON j.seq = h.seq "
        "WHERE h.schedule_id = ANY(%s) ORDER BY h.schedule_id, h.seq DESC"
    )
    return dict(tx.rows(query, (list(names),)))


def placed(tx: Transaction, jobs: Sequence[Job]) -> list[Job]:
    """New jobs with the positions that they will have."""
    query = (  # the transaction needs its id before it draws a position: upkeep knows by it that this one is open
        "SELECT nextval('{ns}.job_seq_seq') FROM generate_series(1, %s) WHERE pg_current_xact_id() IS NOT NULL"
    )
    seqs = [seq for (seq,) in tx.rows(query, (len(jobs),))] if jobs else []
    return [msgspec.structs.replace(job, seq=seq) for job, seq in zip(jobs, seqs, strict=True)]


def insert(tx: Transaction, placed: Sequence[Job]) -> list[Job]:
    """Write new jobs and count them; returns those that did not exist."""
    if not placed:
        return []
    tx.rows("SELECT {ns}.index_blocks(%s, %s, %s)::text", columns_of((job.seq, job.queue, job.task) for job in placed))
    slices = sorted({(job.created_at // SLICE, job.seq // BLOCK) for job in placed})
    tx.rows("SELECT {ns}.index_times(%s, %s)::text", columns_of(slices))
    inserted = {seq for (seq,) in tx.rows(_INSERT, columns_of(map(codec.record_row, placed)))}
    placed = [job for job in placed if job.seq in inserted]
    put(tx, placed, are_new=True)
    tx.counts.add_all(placed)
    return placed


def notify(tx: Transaction, jobs: Sequence[Job]) -> None:
    """Wake workers that may be idle: before the jobs are inserted, no job of a queue is ready, or none is due first."""
    due = [(job.queue, job.run_at if job.state is State.SCHEDULED else None) for job in jobs if job.state in _CLAIMABLE]
    query = (
        "SELECT bool_or({ns}.must_notify(f.queue, f.run_at)) FROM (SELECT n.queue, min(n.run_at) AS run_at "
        "FROM unnest(%s::text[], %s::bigint[]) AS n (queue, run_at) GROUP BY n.queue, n.run_at IS NULL) f"
    )
    if due and tx.rows(query, columns_of(due))[0][0]:
        tx.notify("jobs")


def put(tx: Transaction, jobs: Iterable[Job], *, are_new: bool = False) -> None:
    """Write the jobs' rows into the tables of their states. New jobs have positions that this transaction has drawn."""
    for table, some in _by_table(jobs).items():
        if are_new and table == codec.TABLES[State.QUEUED]:
            rows = ((*codec.state_row(job), True) for job in some)
            tx.insert(table, {**codec.STATE_TYPES, "is_new": "boolean"}, rows)
        else:
            tx.insert(table, codec.STATE_TYPES, map(codec.state_row, some))


def take(tx: Transaction, jobs: Iterable[Job]) -> None:
    """Delete the jobs' rows from the tables of their states; the transaction has locked them."""
    for table, some in _by_table(jobs).items():
        tx.run(f"DELETE FROM {{ns}}.{table} WHERE seq = ANY(%s)", ([job.seq for job in some],))


def locked(tx: Transaction, jobs: Iterable[Job], lock: str = UPDATE) -> dict[int, Job]:
    """Jobs as they are now, by position, locked until the transaction ends. Those in another state are missing.

    With FREE, those that another transaction has locked are missing, too.
    """
    current: dict[int, Job] = {}
    for table, some in sorted(_by_table(jobs).items()):
        known = {job.seq: job for job in some}
        query = (
            f"SELECT j.id, j.seq, p.state, {', '.join(f'p.{name}' for name in _LOCKED)} FROM {{ns}}.job j "
            f"JOIN {{ns}}.{table} p ON p.seq = j.seq WHERE j.seq = ANY(%s) ORDER BY p.seq {lock}"
        )
        for job_id, seq, state, *values in tx.rows(query, (sorted(known),)):
            job = known[seq]
            if job.id == job_id:
                fields: dict[str, Any] = dict(zip(_LOCKED, values, strict=True))
                current[seq] = msgspec.structs.replace(job, state=State(state) if state else job.state, **fields)
    return current


def _by_table(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    return grouped(jobs, lambda job: codec.TABLES[job.state])
