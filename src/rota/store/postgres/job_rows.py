"""Jobs as rows: read, found, listed, written and taken away, inside a transaction that the store has begun."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from rota.model.state import State
from rota.store.contract import Page
from rota.store.postgres.arrays import literal, once
from rota.store.postgres.calls import Function
from rota.store.postgres.codec import JOB_COLUMNS, PLACES, RECORD, TABLES, WRITTEN, jobs_of, place_of, record_of
from rota.store.postgres.listing import newest
from rota.store.postgres.marks import BLOCK, Kinds, mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.job import Job, NewJob
    from rota.store.contract import JobFilter
    from rota.store.postgres.marked import Kind
    from rota.store.postgres.transaction import Row, Transaction

_ADD_JOB = Function(
    "add_job",
    (
        *("text", "text", "bytea", "text", "smallint", "bigint", "bigint", "boolean", "bigint", "text", "bigint"),
        *("bigint", "integer", "text", "bytea", "bigint", "bigint"),
    ),
)
_ADD_READY_JOBS = Function(
    "add_ready_jobs",
    (
        *("bigint", "bigint", "text[]", "text[]", "bytea[]", "text[]", "smallint[]", "text[]", "text[]"),
        *("bigint", "text[]", "text[]", "integer[]", "integer[]"),
    ),
)
FEW = 20  # so many rows are inserted one by one, more are copied


class ReadyJobs(NamedTuple):
    """Jobs of which `is_simply_ready` is true, or plain requests, as they are sent."""

    columns: list[str | None]
    kinds: Kinds

    @classmethod
    def of(cls, jobs: Sequence[Job] | Sequence[NewJob]) -> ReadyJobs:
        tasks, queues = once([job.task for job in jobs]), once([job.queue for job in jobs])
        columns = (
            [job.id for job in jobs],
            tasks,
            once([job.payload for job in jobs]),
            queues,
            once([job.priority for job in jobs]),
            _filled([job.schedule_id for job in jobs]),
            _filled([job.made_by for job in jobs]),
        )
        kinds = Kinds.of(len(jobs), queues=queues, tasks=tasks)
        return cls([None if column is None else literal(column) for column in columns], kinds)


class JobRows:
    """One namespace's jobs, by id or by place."""

    # Reading.

    def get(self, tx: Transaction, ids: Sequence[str]) -> list[Job]:
        if not ids:
            return []
        rows = tx.rows(f"SELECT {JOB_COLUMNS} FROM {{ns}}.jobs WHERE id = ANY(%s)", (list(ids),))
        found = {job.id: job for job in jobs_of(rows)}
        return [found[job_id] for job_id in ids if job_id in found]

    def at(self, tx: Transaction, seqs: Sequence[int]) -> list[Job]:
        """Jobs by place, the oldest first."""
        query = f"SELECT {JOB_COLUMNS} FROM {{ns}}.jobs WHERE seq = ANY(%s) ORDER BY seq"
        return jobs_of(tx.rows(query, (list(seqs),))) if seqs else []

    def page(self, tx: Transaction, where: JobFilter, cursor: str | None, limit: int) -> Page[Job]:
        seqs = newest(tx, where, None if cursor is None else int(cursor), limit + 1)
        jobs = self.at(tx, seqs[:limit])[::-1]
        return Page(jobs, str(jobs[-1].seq) if len(seqs) > limit else None)

    def waiting_of(self, tx: Transaction, schedule_id: str) -> list[Job]:
        """What a schedule's trigger made and nobody has started; nobody starts it before this transaction ends."""
        seqs: list[int] = []
        for table in ("held", "later", "ready"):
            query = (
                f"SELECT p.seq FROM {{ns}}.job j JOIN {{ns}}.{table} p ON p.seq = j.seq "
                "WHERE j.schedule_id = %s AND j.fire_at IS NOT NULL ORDER BY p.seq FOR UPDATE OF p"
            )
            seqs += [seq for (seq,) in tx.rows(query, (schedule_id,))]
        return [job for job in self.at(tx, seqs) if job.state.is_waiting]

    def made(self, tx: Transaction, occurrences: Sequence[tuple[str, int | None]]) -> set[tuple[str, int]]:
        """Those of the occurrences (schedule and time) that have a job."""
        if not occurrences:
            return set()
        rows = tx.rows(
            "SELECT j.schedule_id, j.fire_at FROM unnest(%s::text[], %s::bigint[]) AS w (id, fire_at) "
            "JOIN {ns}.job j ON j.schedule_id = w.id AND j.fire_at = w.fire_at",
            ([name for name, _ in occurrences], [fire_at for _, fire_at in occurrences]),
        )
        return {(name, fire_at) for name, fire_at in rows}

    def last_held(self, tx: Transaction, names: Sequence[str]) -> dict[str, str]:
        """Of each schedule the last job that is held."""
        if not names:
            return {}
        rows = tx.rows(
            "SELECT DISTINCT ON (h.schedule_id) h.schedule_id, j.id FROM {ns}.held h JOIN {ns}.job j ON j.seq = h.seq "
            "WHERE h.schedule_id = ANY(%s) ORDER BY h.schedule_id, h.seq DESC",
            (list(names),),
        )
        return dict(rows)

    def lapsed(self, tx: Transaction, limit: int, now: int | None) -> list[Job]:
        query = (
            f"SELECT {JOB_COLUMNS} FROM {{ns}}.jobs WHERE seq = ANY(ARRAY(SELECT r.seq FROM {{ns}}.running r "
            "WHERE r.lease_until <= coalesce(%s::bigint, {ns}.micros()) ORDER BY r.lease_until LIMIT %s)) "
            "AND state = 'running' ORDER BY lease_until"
        )
        return jobs_of(tx.rows(query, (now, limit)))

    # Writing.

    def insert(self, tx: Transaction, jobs: Sequence[Job], *, may_copy: bool = True) -> list[Job]:
        """Write new jobs and count them; gives those that were not there already, with their places.

        Copying is for callers who know that none is: there it would end the transaction.
        """
        placed = self._placed(tx, jobs)
        mark(tx, placed)
        if len(placed) > FEW and may_copy:
            tx.copy("job", RECORD, map(record_of, placed))
        else:
            placed = self._insert_records(tx, placed)
        self.put(tx, placed)
        for (queue, state), number in Counter((job.queue, job.state) for job in placed).items():
            tx.counts.add(queue, state, number)
        return placed

    def tell(self, tx: Transaction, jobs: Sequence[Job]) -> None:
        """Wake workers where somebody may be waiting: for an empty line, or for what is due first."""
        ready = sorted({job.queue for job in jobs if job.state is State.QUEUED})
        first: dict[str, int] = {}
        for job in jobs:
            if job.state is State.SCHEDULED:
                first[job.queue] = min(job.run_at, first.get(job.queue, job.run_at))
        if ready and tx.rows("SELECT {ns}.is_idle(%s)", (ready,))[0][0]:
            tx.notify("jobs")
        for queue, run_at in first.items():
            query = "SELECT EXISTS (SELECT FROM {ns}.later WHERE queue = %s AND run_at <= %s)"
            if not tx.rows(query, (queue, run_at))[0][0]:
                tx.notify("jobs")

    def add_one(self, tx: Transaction, job: Job, at: int | None) -> bool | None:
        """One job without a key that waits for nobody; None where the store is sealed.

        `at` is the time that it was accepted at; None: a plain one, made when the server gets it.
        """
        times = (None, None) if at is None else (job.created_at, job.run_at)
        rows = tx.call(
            _ADD_JOB,
            (
                *(job.id, job.task, job.payload, job.queue, job.priority, *times),
                *(job.state is State.QUEUED, job.key_until, job.schedule_id, job.fire_at, job.after_at),
                *(job.generation, job.made_by, job.past, tx.slot, tx.marked.block_with({(job.queue, job.task)})),
            ),
        )
        return _is_made(tx, rows, {(job.queue, job.task)})

    def add_ready(self, tx: Transaction, jobs: ReadyJobs, at: int | None) -> bool | None:
        """Many jobs by one call; None where the store is sealed."""
        marked = tx.marked.block_with(jobs.kinds.all)
        rows = tx.call(_ADD_READY_JOBS, (at, tx.slot, *jobs.columns, marked, *jobs.kinds.columns))
        return _is_made(tx, rows, jobs.kinds.last)

    def put(self, tx: Transaction, jobs: Iterable[Job]) -> None:
        """Write where jobs stand."""
        by_table: dict[str, list[Row]] = {}
        for job in jobs:
            by_table.setdefault(TABLES[job.state], []).append(place_of(job))
        for table, rows in by_table.items():
            columns = WRITTEN[table]
            if len(rows) > FEW:
                tx.copy(table, columns, rows)
            else:
                marks = ", ".join(["%s"] * len(rows[0]))
                tx.run_many(f"INSERT INTO {{ns}}.{table} ({columns}) VALUES ({marks})", rows)

    def take(self, tx: Transaction, jobs: Iterable[Job]) -> None:
        """Remove the rows that say where jobs stand; their transaction has locked them."""
        by_table: dict[str, list[int]] = {}
        for job in jobs:
            by_table.setdefault(TABLES[job.state], []).append(job.seq)
        for table, seqs in by_table.items():
            tx.run(
                f"DELETE FROM {{ns}}.{table} WHERE seq = ANY(%s)",
                (seqs,),
            )

    def locked(self, tx: Transaction, jobs: Iterable[Job], *, waits: bool = True) -> dict[int, Job]:
        """Jobs as they are now, by place, kept so until the transaction ends; those in another state are missing.

        `waits=False`: those that somebody else has locked are missing too.
        """
        by_table: dict[str, dict[int, Job]] = {}
        for job in jobs:
            by_table.setdefault(TABLES[job.state], {})[job.seq] = job
        current: dict[int, Job] = {}
        for table in sorted(by_table):
            known = by_table[table]
            columns = [name for name in PLACES[table].split(", ") if name not in {"seq", "queue"}]
            query = (
                f"SELECT j.id, j.seq, {', '.join(f'p.{name}' for name in columns)} FROM {{ns}}.job j "
                f"JOIN {{ns}}.{table} p ON p.seq = j.seq WHERE j.seq = ANY(%s) ORDER BY p.seq FOR UPDATE OF p"
                f"{'' if waits else ' SKIP LOCKED'}"
            )
            for job_id, seq, *values in tx.rows(query, (sorted(known),)):
                if known[seq].id == job_id:
                    current[seq] = _renewed(known[seq], dict(zip(columns, values, strict=True)))
        return current

    def delete(self, tx: Transaction, jobs: Sequence[Job]) -> None:
        """Take jobs away with their logs, keys and slots; their transaction has locked them."""
        self.take(tx, jobs)
        seqs = [job.seq for job in jobs]
        for table in ("unique_key", "overlap_slot", "log", "job"):
            tx.run(f"DELETE FROM {{ns}}.{table} WHERE seq = ANY(%s)", (seqs,))
        for job in jobs:
            tx.counts.remove(job.queue, job.state)

    def _placed(self, tx: Transaction, jobs: Sequence[Job]) -> list[Job]:
        if not jobs:
            return []
        query = (  # no place is drawn before the transaction has a number, by which upkeep knows that it is under way
            "SELECT nextval('{ns}.job_seq_seq') FROM generate_series(1, %s) WHERE pg_current_xact_id() IS NOT NULL"
        )
        seqs = [seq for (seq,) in tx.rows(query, (len(jobs),))]
        return [msgspec.structs.replace(job, seq=seq) for job, seq in zip(jobs, seqs, strict=True)]

    def _insert_records(self, tx: Transaction, jobs: Sequence[Job]) -> list[Job]:
        if not jobs:
            return []
        marks = f"({', '.join(['%s'] * len(RECORD.split(', ')))})"
        inserted = {
            seq
            for start in range(0, len(jobs), FEW)
            for (seq,) in tx.rows(
                f"INSERT INTO {{ns}}.job ({RECORD}) VALUES {', '.join([marks] * len(jobs[start : start + FEW]))} "
                "ON CONFLICT (id) DO NOTHING RETURNING seq",
                [value for job in jobs[start : start + FEW] for value in record_of(job)],
            )
        }
        return [job for job in jobs if job.seq in inserted]


def _is_made(tx: Transaction, rows: Sequence[Row], kinds: set[Kind]) -> bool | None:
    """What a call that adds has answered: the last place, of a block that is marked for these kinds now."""
    if not rows or rows[0][0] is None:
        return None
    tx.marked.note(rows[0][0] // BLOCK, kinds)
    return True


def _filled(values: list[Any]) -> list[Any] | None:
    return None if values.count(None) == len(values) else values


def is_simply_ready(job: Job) -> bool:
    """Whether a new job is in line at once and has nothing that most jobs do not have."""
    taken = job.key or job.slot or job.key_until
    return job.state is State.QUEUED and not job.past and not taken and job.fire_at is None


def _renewed(job: Job, values: dict[str, Any]) -> Job:
    """The job with what its row says now; what the row's table does not keep is empty."""
    state = State(values.pop("state")) if "state" in values else job.state
    absent = {"started_at", "finished_at", "lease_until", "holder", "cancel_reason", "result"} - values.keys()
    return msgspec.structs.replace(job, state=state, **values, **dict.fromkeys(absent))
