"""Exchange: what ended goes in and what is next comes out, in one round trip where nothing odd is among it."""

from __future__ import annotations

from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import psycopg

from rota.model.job import Job
from rota.model.state import State
from rota.store.contract import MOST_PROMOTED, Exchange, Exchanged, Extended
from rota.store.postgres.arrays import once
from rota.store.postgres.calls import Function
from rota.store.postgres.codec import text_of
from rota.store.shared.matching import is_held_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.settle import Change
    from rota.store.postgres.changing import Changer
    from rota.store.postgres.lookahead import LookaheadJudge
    from rota.store.postgres.transaction import Row, Transaction

NOT_PLAIN = "RO001"  # what the server raises where a job is awaited, or not what was decided on
_EXCHANGE = Function(
    "exchange",
    (
        *("bigint", "text", "integer", "text[]", "bigint", "integer", "bigint", "boolean", "bigint"),
        *("bigint[]", "integer[]", "text[]", "bigint[]", "integer[]", "integer[]"),
        *("text[]", "text[]", "bytea[]", "text[]", "bigint[]"),
        *("text[]", "integer[]", "integer[]", "integer[]"),
    ),
)
_NOTHING = (None,) * 15
_RUNNING = State.RUNNING
_SEQ, _PRIORITY = itemgetter(1), itemgetter(5)
_ENDS = (State.SUCCEEDED, State.FAILED, State.CANCELLED)


class Odd(Exception):
    """Something among the settled jobs needs the model's word; nothing was written."""


class Sealed(Exception):
    """The store is sealed; says with what, and the store turns it into its refusal."""

    def __init__(self, packed: str) -> None:
        super().__init__(packed)
        self.packed = packed


class Exchanger:
    """One namespace's exchange with workers."""

    def __init__(self, changer: Changer, lookahead: LookaheadJudge) -> None:
        self._changer = changer
        self._lookahead = lookahead

    def at_once(self, tx: Transaction, ask: Exchange, now: int | None) -> Exchanged:
        """Settle plain ends and claim, by one call of the server's function. Raises Odd where that is not enough."""
        settled = sorted(ask.settled, key=_place)
        if not all(map(is_plain, settled)) or len(set(map(_place, settled))) != len(settled):
            raise Odd
        try:
            reply, is_whole = self._call(tx, ask, now, settled)
        except psycopg.Error as err:
            if err.sqlstate == NOT_PLAIN:
                raise Odd from err
            raise
        if not is_whole:
            raise Odd
        return reply

    def step_by_step(self, tx: Transaction, ask: Exchange, now: int | None) -> Exchanged:
        """The same in a transaction, with the model's word on each job."""
        at = tx.rows("SELECT coalesce(%s::bigint, {ns}.micros())", (now,))[0][0]
        if ask.want > 0:
            check_seal(tx)
        refused = self._changer.settle(tx, ask.settled, at, lambda change, job: is_held_by(ask.holder, change, job))
        reply, is_whole = self._call(tx, ask, now, [])  # at its own time: what it claims may be younger than this
        if not is_whole:
            self._lookahead.judge_due(tx, ask.queues, reply.now)
            reply, _ = self._call(tx, ask, now, [], is_judged=True)
        return Exchanged(now=reply.now, refused=refused, claimed=reply.claimed, next_due_at=reply.next_due_at)

    def _call(
        self, tx: Transaction, ask: Exchange, now: int | None, settled: Sequence[Change], *, is_judged: bool = False
    ) -> tuple[Exchanged, bool]:
        """The server's answer; and whether it did what was asked, or first wants jobs judged that were made ahead."""
        who = (now, ask.holder, ask.want, list(ask.queues), ask.lease_for, MOST_PROMOTED, tx.slot or 0)
        rows = tx.call(_EXCHANGE, (*who, is_judged, ask.ahead, *_columns(settled)))
        (_, at, to_do, _, _, _, _, next_due, *_, seal, _, _, _) = rows.pop()
        if seal is not None:
            raise Sealed(seal)
        return Exchanged(now=at, claimed=_claimed(rows, ask, at), next_due_at=next_due), to_do is None

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

    def record_progress(self, tx: Transaction, holder: str, notes: Sequence[tuple[str, int, str]]) -> None:
        """Keep how far running jobs are, by each one's last word; what the holder no longer owns is left alone."""
        last = {(job_id, lease_no): text for job_id, lease_no, text in notes}
        notes = [(*run, text) for run, text in last.items()]
        tx.run(
            "WITH mine AS MATERIALIZED (SELECT r.seq, w.text FROM unnest(%s::text[], %s::int[], %s::text[]) "
            "AS w (id, lease_no, text) JOIN {ns}.job j ON j.id = w.id JOIN {ns}.running r ON r.seq = j.seq "
            "AND r.lease_no = w.lease_no WHERE r.holder = %s ORDER BY r.seq FOR UPDATE OF r SKIP LOCKED) "
            "UPDATE {ns}.running r SET progress = m.text FROM mine m WHERE r.seq = m.seq",
            (*([*column] for column in zip(*_texts(notes), strict=True)), holder),
        )


def _texts(notes: Sequence[tuple[str, int, str]]) -> list[tuple[str, int, str | None]]:
    return [(job_id, lease_no, text_of(text)) for job_id, lease_no, text in notes]


def _place(change: Change) -> int:
    return change.job.seq


def is_plain(change: Change) -> bool:
    """Whether a change is an end that touches nothing but its job: that is most of them."""
    job = change.job
    return (
        change.finished_at is not None
        and job.schedule_id is None
        and not change.is_removal
        and change.deaths == job.deaths
        and change.run_at == job.run_at
        and change.queued_at == job.queued_at
        and change.started_at == job.started_at
        and change.past == job.past
    )


def check_seal(tx: Transaction) -> None:
    """Raise where the store is sealed; a seal waits for whoever has looked."""
    row = tx.row("SELECT value FROM {ns}.seal")
    if row is not None:
        raise Sealed(row[0])


def _columns(settled: Sequence[Change]) -> tuple[Any, ...]:
    """Changer by column, as the server's function takes them; then whose keys are free, and the counts by queue."""
    if not settled:
        return _NOTHING
    freed = [change.job.seq for change in settled if change.job.key is not None and change.key is None]
    return (
        [change.job.seq for change in settled],
        once([change.job.lease_no for change in settled]),
        once([change.state.value for change in settled]),
        once([change.finished_at for change in settled]),
        once([change.attempts for change in settled]),
        _filled([None if change.failures == change.job.failures else change.failures for change in settled]),
        _filled([text_of(change.error) for change in settled]),
        _filled([text_of(change.cancel_reason) for change in settled]),
        _filled([change.result for change in settled]),
        _filled([change.key for change in settled]),
        freed or None,
        *_counts(settled),
    )


def _counts(settled: Sequence[Change]) -> tuple[list[Any], ...]:
    """The queues of jobs that ended, and for each way to end, how many of each queue did."""
    ended = Counter([(change.job.queue, change.state) for change in settled])
    queues = list(dict.fromkeys(queue for queue, _ in ended))
    return queues, *([ended[queue, state] for queue in queues] for state in _ENDS)


def _filled(values: list[Any]) -> list[Any] | None:
    return None if values.count(None) == len(values) else values


def _claimed(rows: list[Row], ask: Exchange, now: int) -> list[Job]:
    """The jobs in the server's answer, the best first; what every claimed job has in common is not in it."""
    rows = [row for row in rows if row[0] is not None]  # else: a place whose job was taken away by hand
    rows.sort(key=_SEQ)
    if len(set(map(_PRIORITY, rows))) > 1:
        rows.sort(key=_PRIORITY, reverse=True)
    until = now + ask.lease_for
    return [_job(row, ask.holder, now, until) for row in rows]


def _job(row: Row, holder: str, now: int, until: int) -> Job:
    queued_at = row[16]
    started_at = now if queued_at is None or queued_at < now else queued_at
    ended = (None, row[21], None, row[22], None)
    return Job(*(*row[:4], _RUNNING, *row[4:17], started_at, None, *row[17:21], holder, until, *ended, *row[23:]))
