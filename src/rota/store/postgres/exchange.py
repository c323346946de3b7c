"""Exchange: what ended goes in and what is next comes out, in one round trip where nothing odd is among it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from rota.model.job import Job
from rota.model.state import State
from rota.store.contract import MOST_PROMOTED, Exchange, Exchanged, Extended, Refusal
from rota.store.matching import is_held_by
from rota.store.postgres.arrays import once
from rota.store.postgres.rows import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.settle import Change
    from rota.store.postgres.changes import Changes
    from rota.store.postgres.transaction import Row, Transaction

WAITED_FOR = "RO001"  # what the server raises where a job came to wait for one that was being settled
_CALL = (
    "SELECT * FROM {ns}.exchange(%s, %s, %s, %s::text[], %s, %s, %s, %s::bigint[], %s::int[], %s::text[], "
    "%s::bigint[], %s::int[], %s::int[], %s::text[], %s::text[], %s::bytea[], %s::text[])"
)
_NOTHING = (None,) * 10


class Odd(Exception):
    """Something among the settled jobs needs the model's word; nothing was written."""


class Sealed(Exception):
    """The store is sealed; says with what, and the store turns it into its refusal."""

    def __init__(self, packed: str) -> None:
        super().__init__(packed)
        self.packed = packed


class Exchanging:
    """One namespace's exchange with workers."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    def at_once(self, tx: Transaction, ask: Exchange, now: int | None) -> Exchanged:
        """Settle plain ends and claim, by one call of the server's function. Raises Odd where that is not enough."""
        settled = sorted(ask.settled, key=lambda change: change.job.seq)
        if not all(map(is_plain, settled)) or len({change.id for change in settled}) != len(settled):
            raise Odd
        try:
            return self._call(tx, ask, now, settled)
        except psycopg.Error as err:
            if err.sqlstate == WAITED_FOR:
                raise Odd from err
            raise

    def step_by_step(self, tx: Transaction, ask: Exchange, now: int | None) -> Exchanged:
        """The same in a transaction, with the model's word on each job."""
        at = tx.rows("SELECT coalesce(%s::bigint, {ns}.micros())", (now,))[0][0]
        if ask.want > 0:
            check_seal(tx)
        refused = self._changes.settle(tx, ask.settled, at, lambda change, job: is_held_by(ask.holder, change, job))
        reply = self._call(tx, ask, now, [])  # at a time of its own: what it claims may be younger than this call
        return Exchanged(now=reply.now, refused=refused, claimed=reply.claimed, next_due_at=reply.next_due_at)

    def _call(self, tx: Transaction, ask: Exchange, now: int | None, settled: Sequence[Change]) -> Exchanged:
        values = (now, ask.holder, ask.want, list(ask.queues), ask.lease_for, MOST_PROMOTED, tx.slot or 0)
        rows = tx.rows(_CALL, (*values, *_columns(settled)))
        head = rows.pop()
        at, next_due, seal, is_odd = head[:4]
        if seal is not None:
            raise Sealed(seal)
        if is_odd:
            raise Odd
        done = rows[0][4] if rows else None
        refused = _refused(ask.settled, done) if settled else []
        claimed = [_claimed(row, ask, at) for row in rows[1:]]
        claimed.sort(key=lambda job: (-job.priority, job.seq))
        return Exchanged(now=at, refused=refused, claimed=claimed, next_due_at=next_due)

    def extend(
        self, tx: Transaction, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, now: int | None
    ) -> Extended:
        """Renew exactly these leases, by one statement; and what the holder was asked to stop.

        A job that is ending in a transaction of its task is passed over: whoever waited for that would lose the others.
        """
        rows = tx.rows(
            "WITH clock AS (SELECT coalesce(%s::bigint, {ns}.micros()) AS now), mine AS MATERIALIZED ("
            "SELECT r.seq, w.id FROM unnest(%s::text[], %s::int[]) AS w (id, lease_no) "
            "JOIN {ns}.job j ON j.id = w.id JOIN {ns}.running r ON r.seq = j.seq AND r.lease_no = w.lease_no "
            "WHERE r.holder = %s), "
            "free AS MATERIALIZED (SELECT r.seq FROM {ns}.running r WHERE r.seq = ANY(ARRAY(SELECT seq FROM mine)) "
            "ORDER BY r.seq FOR UPDATE SKIP LOCKED), "
            "kept AS (UPDATE {ns}.running r SET lease_until = (SELECT now FROM clock) + %s FROM free f "
            "WHERE r.seq = f.seq) "
            "SELECT (SELECT now FROM clock), (SELECT array_agg(id) FROM mine), "
            "(SELECT array_agg(ARRAY[j.id, r.cancel_reason]) FROM {ns}.running r JOIN {ns}.job j ON j.seq = r.seq "
            "WHERE r.holder = %s AND r.cancel_reason IS NOT NULL)",
            (now, [job_id for job_id, _ in leases], [lease_no for _, lease_no in leases], holder, lease_for, holder),
        )
        at, kept, asked = rows[0]
        held = set(kept or ())
        lost = [job_id for job_id, _ in leases if job_id not in held]
        return Extended(now=at, lost=lost, cancels=dict(asked or ()))

    def request_cancels(self, tx: Transaction, ids: Sequence[str], reason: str) -> list[str]:
        """Ask running jobs to stop; the first reason stays."""
        rows = tx.rows(
            "WITH mine AS MATERIALIZED (SELECT r.seq, j.id FROM {ns}.job j JOIN {ns}.running r ON r.seq = j.seq "
            "WHERE j.id = ANY(%s) ORDER BY r.seq FOR UPDATE OF r) UPDATE {ns}.running r "
            "SET cancel_reason = coalesce(r.cancel_reason, %s) FROM mine m WHERE r.seq = m.seq RETURNING m.id",
            (list(ids), text_of(reason) or "cancelled"),
        )
        asked = {job_id for (job_id,) in rows}
        return [job_id for job_id in ids if job_id in asked]

    def note_progress(self, tx: Transaction, holder: str, notes: Sequence[tuple[str, int, str]]) -> None:
        """Keep how far running jobs are; what the holder no longer owns is left alone."""
        tx.run(
            "WITH mine AS MATERIALIZED (SELECT r.seq, w.text FROM unnest(%s::text[], %s::int[], %s::text[]) "
            "AS w (id, lease_no, text) JOIN {ns}.job j ON j.id = w.id JOIN {ns}.running r ON r.seq = j.seq "
            "AND r.lease_no = w.lease_no WHERE r.holder = %s ORDER BY r.seq FOR UPDATE OF r SKIP LOCKED) "
            "UPDATE {ns}.running r SET progress = m.text FROM mine m WHERE r.seq = m.seq",
            (*([*column] for column in zip(*_texts(notes), strict=True)), holder),
        )


def _texts(notes: Sequence[tuple[str, int, str]]) -> list[tuple[str, int, str | None]]:
    return [(job_id, lease_no, text_of(text)) for job_id, lease_no, text in notes]


def is_plain(change: Change) -> bool:
    """Whether a change is an end that touches nothing but its job: that is most of them."""
    job = change.job
    return (
        change.state.is_final
        and job.schedule_id is None
        and not change.is_removal
        and job.deaths == change.deaths
        and (change.run_at, change.queued_at, change.started_at) == (job.run_at, job.queued_at, job.started_at)
        and change.past == job.past
    )


def check_seal(tx: Transaction) -> None:
    """Raise where the store is sealed; a seal waits for whoever has looked."""
    row = tx.row("SELECT value FROM {ns}.seal")
    if row is not None:
        raise Sealed(row[0])


def _columns(settled: Sequence[Change]) -> tuple[Any, ...]:
    """Changes by column; a column that is empty throughout is not sent."""
    if not settled:
        return _NOTHING
    return (
        [change.job.seq for change in settled],
        once([change.job.lease_no for change in settled]),
        once([change.state.value for change in settled]),
        [change.finished_at for change in settled],
        [change.attempts for change in settled],
        _filled([None if change.failures == change.job.failures else change.failures for change in settled]),
        _filled([text_of(change.error) for change in settled]),
        _filled([text_of(change.cancel_reason) for change in settled]),
        _filled([change.result for change in settled]),
        _filled([change.key for change in settled]),
    )


def _filled(values: list[Any]) -> list[Any] | None:
    return values if any(value is not None for value in values) else None


def _refused(settled: Sequence[Change], done: Sequence[int] | None) -> list[Refusal]:
    if done is not None and len(done) == len(settled):
        return []
    taken = set(done or ())
    return [Refusal(change.id, "lease") for change in settled if change.job.seq not in taken]


def _claimed(row: Row, ask: Exchange, now: int) -> Job:
    """A row of the server's answer; what every claimed job has in common is not in it."""
    job_id, seq, task, payload, queue, priority, created_at, run_at, key, key_until, schedule_id, fire_at, *rest = row[
        5:
    ]
    after_at, generation, made_by, waits_for, queued_at, attempts, failures, deaths, lease_no, error, past = rest
    return Job(
        id=job_id,
        seq=seq,
        task=task,
        payload=payload,
        state=State.RUNNING,
        queue=queue,
        priority=priority,
        created_at=created_at,
        run_at=run_at,
        key=key,
        key_until=key_until,
        schedule_id=schedule_id,
        fire_at=fire_at,
        after_at=after_at,
        generation=generation,
        made_by=made_by,
        waits_for=waits_for,
        queued_at=queued_at,
        started_at=now,
        attempts=attempts,
        failures=failures,
        deaths=deaths,
        lease_no=lease_no,
        holder=ask.holder,
        lease_until=now + ask.lease_for,
        error=error,
        past=past,
    )
