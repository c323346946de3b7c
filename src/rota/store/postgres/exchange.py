"""Settles jobs that ended and claims new ones, in one round trip unless a settled job concerns another."""

from __future__ import annotations

from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

import psycopg

from rota.failpoints import reach
from rota.model.jobs.series import MINUTE, count_runs
from rota.store.contract import MOST_PROMOTED, Exchange, Exchanged
from rota.store.postgres.codec import CLAIMED, SETTLED_COLUMNS, claimed_job, settled_columns
from rota.store.postgres.transaction import function_call
from rota.store.shared.matching import is_held_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change
    from rota.store.postgres.changing import Changer
    from rota.store.postgres.codec import Row
    from rota.store.postgres.connection import Database
    from rota.store.postgres.lookahead import LookaheadDecider
    from rota.store.postgres.transaction import Transaction

NEEDS_DECISION = "RO001"  # the server's error: another job waits for one of these, or one is not what was decided on
# The last row says that all was done: then the runs are counted, in the same statement.
_EXCHANGE = (
    function_call("exchange", 9 + SETTLED_COLUMNS)
    + " AS e WHERE CASE WHEN coalesce(e.id, e.queue, e.task, e.error) IS NULL "
    f"THEN {{ns}}.add_runs(%s, e.seq / {MINUTE}, %s) ELSE true END"
)
_position = attrgetter("job.seq")
_SEQ, _PRIORITY = itemgetter(CLAIMED.index("seq")), itemgetter(CLAIMED.index("priority"))


class Exchanger:
    """One namespace's exchange with workers."""

    def __init__(self, database: Database, changer: Changer, lookahead: LookaheadDecider) -> None:
        self._database = database
        self._changer = changer
        self._lookahead = lookahead

    def exchange(self, ask: Exchange, now: int | None) -> Exchanged:
        """By one call of the server's function if that is enough, else step by step."""
        reach("exchange.before_commit")
        reply = self._database.call(lambda tx: self._exchange_at_once(tx, ask, now))
        if reply is not None:
            reach("exchange.after_commit")
        else:
            reply = self._database.transact("exchange", lambda tx: self._exchange_by_steps(tx, ask, now))
            self._database.notifier.notify("jobs")
        if now is None:
            self._database.clock.set(reply.now)
        return reply

    def _exchange_at_once(self, tx: Transaction, ask: Exchange, now: int | None) -> Exchanged | None:
        """None, and nothing is written, if one call is not enough."""
        settled = sorted(ask.settled, key=_position)
        if not all(map(can_use_fast_path, settled)) or len(set(map(_position, settled))) != len(settled):
            return None
        try:
            reply, is_done = self._call(tx, ask, now, settled)
        except psycopg.Error as err:
            if err.sqlstate == NEEDS_DECISION:
                return None
            raise
        return reply if is_done else None

    def _exchange_by_steps(self, tx: Transaction, ask: Exchange, now: int | None) -> Exchanged:
        """In a transaction, with a decision of the model about each job."""
        at = tx.rows("SELECT coalesce(%s::bigint, {ns}.micros())", (now,))[0][0]
        if ask.want > 0:
            self._database.check_seal(tx)
        refused = self._changer.settle(tx, ask.settled, at, lambda change, job: is_held_by(ask.holder, change, job))
        reply, is_done = self._call(tx, ask, now, [])  # at its own time: what it claims may be younger than this
        if not is_done:
            self._lookahead.decide_due(tx, ask.queues, reply.now)
            reply, _ = self._call(tx, ask, now, [], is_decided=True)
        return Exchanged(now=reply.now, refused=refused, claimed=reply.claimed, next_due_at=reply.next_due_at)

    def _call(
        self, tx: Transaction, ask: Exchange, now: int | None, settled: Sequence[Change], *, is_decided: bool = False
    ) -> tuple[Exchanged, bool]:
        """The server's reply. False: it did nothing, because due jobs of a lookahead must be decided on first."""
        slot = tx.counter_slot or 0
        who = (now, ask.holder, ask.want, list(ask.queues), ask.lease_for, MOST_PROMOTED, slot)
        runs = count_runs(settled) or None
        rows = tx.call(_EXCHANGE, (*who, is_decided, ask.ahead, *settled_columns(settled), slot, runs))
        about_call = dict(zip(CLAIMED, rows.pop(), strict=True))  # the last row, in the columns that have the types
        now = about_call["seq"]
        if about_call["error"] is not None:
            raise self._database.refusal(about_call["error"])
        reply = Exchanged(now=now, claimed=_claimed(rows, ask, now), next_due_at=about_call["run_at"])
        return reply, about_call["task"] is None


def can_use_fast_path(change: Change) -> bool:
    """Whether a change ends its job and concerns nothing else, as most do."""
    return change.only_ends and change.job.schedule_id is None and not change.is_removal


def _claimed(rows: list[Row], ask: Exchange, now: int) -> list[Job]:
    """The jobs in the server's reply, the best first."""
    rows = [row for row in rows if row[0] is not None]  # else: a state row whose job was deleted by hand
    rows.sort(key=_SEQ)
    if len(set(map(_PRIORITY, rows))) > 1:
        rows.sort(key=_PRIORITY, reverse=True)
    return [claimed_job(row, ask.holder, now, now + ask.lease_for) for row in rows]
