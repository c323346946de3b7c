"""Exchanges jobs with workers: settles those that they report and claims those that they request, in a transaction."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from rota.model.jobs.job import State
from rota.model.jobs.settle import claim_order, due_order, open_queues
from rota.store.contract import MOST_PROMOTED, Exchange, Exchanged
from rota.store.shared.matching import is_held_by
from rota.store.sqlite import clock
from rota.store.sqlite.codec import (
    BARE_END,
    FRESH_COLUMNS,
    IS_AHEAD,
    IS_FRESH,
    JOB_COLUMNS,
    SET_CHANGE,
    fresh_job_of,
    jobs_of,
    row_of_change,
    row_of_end,
)
from rota.store.sqlite.transaction import Update, all_or_none

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change
    from rota.store.contract import Refusal
    from rota.store.sqlite.changing import Changer
    from rota.store.sqlite.listing import Listing
    from rota.store.sqlite.lookahead import LookaheadDecider
    from rota.store.sqlite.transaction import Transaction, Transactions


class Exchanger:
    """One namespace's exchange with workers."""

    def __init__(
        self,
        namespace: str,
        transactions: Transactions,
        listing: Listing,
        changer: Changer,
        lookahead: LookaheadDecider,
    ) -> None:
        self._transactions = transactions
        self._listing = listing
        self._changer = changer
        self._lookahead = lookahead
        self._name = f"{namespace}_job"
        self._queues = f"{namespace}_queue"
        fence = "seq = ? AND id = ? AND state = 'running' AND lease_no = ? AND holder = ?"
        self._end = f"UPDATE {self._name} SET {SET_CHANGE} WHERE {fence}"
        self._end_barely = Update(
            self._name,
            BARE_END,
            "lease_until = NULL, lease_boot = NULL",
            ("seq", "id", "lease_no", "holder"),
            f"{self._name}.state = 'running'",
        )

    def exchange(self, ask: Exchange, now: int | None) -> Exchanged:
        if not ask.settled:
            idle = self._if_idle(ask, clock.at(now))
            if idle is not None:
                return idle
        begin = self._transactions.work if ask.want > 0 else self._transactions.write
        with begin("exchange", now) as tx:
            refused = self._settle(tx, ask.holder, ask.settled)
            queues = self._open_queues(tx.connection, ask.queues)
            claimed: list[Job] = []
            if ask.want > 0 and queues:
                self._decide_due(tx, queues)
                self._promote(tx, queues, ask.ahead)
                claimed = self._claim(tx, ask, queues, clock.lease_now(now))
            next_due = self._next_due(tx.connection, queues)
            if tx.counts.grew(State.QUEUED, State.SCHEDULED):
                tx.notify("jobs")  # other workers have something to do
        return Exchanged(now=tx.now, refused=refused, claimed=claimed, next_due_at=next_due)

    def settle_in(self, transaction: object, holder: str, change: Change) -> bool:
        """End a job within the caller's own transaction; False if the lease was lost."""
        with self._transactions.guest(transaction, is_work=False) as tx:
            return not self._settle(tx, holder, [change])

    def _if_idle(self, ask: Exchange, now: int) -> Exchanged | None:
        """The answer if there is nothing to claim, without a write; None if there is something."""
        with self._transactions.read() as connection:
            if ask.want > 0:
                self._transactions.check_open(connection)
            queues = self._open_queues(connection, ask.queues)
            if queues and ask.want > 0 and self._has_work(connection, queues, now + ask.ahead):
                return None
            return Exchanged(now=now, next_due_at=self._next_due(connection, queues))

    # Settling.

    def _settle(self, tx: Transaction, holder: str, changes: Sequence[Change]) -> list[Refusal]:
        if not changes or self._end_all(tx, holder, changes):
            return []
        return self._changer.settle(tx, changes, partial(is_held_by, holder))

    def _end_all(self, tx: Transaction, holder: str, changes: Sequence[Change]) -> bool:
        """End jobs whose leases the holder has, all of them; False, with nothing changed, if one must be looked at.

        What a worker reports is mostly this: one fenced statement each, and nothing is read first.
        """
        if not all(change.state.is_final for change in changes):
            return False
        fences = [(change.job.seq, change.id, change.job.lease_no, holder) for change in changes]
        if all(change.can_use_fast_path for change in changes):
            rows = [(*row_of_end(change), *fence) for change, fence in zip(changes, fences, strict=True)]
            are_over = all_or_none(tx.connection, lambda: self._end_barely.write(tx.connection, rows), len(rows))
        else:
            rows = [(*row_of_change(change), *fence) for change, fence in zip(changes, fences, strict=True)]
            are_over = all_or_none(
                tx.connection, lambda: tx.connection.executemany(self._end, rows).rowcount, len(rows)
            )
        if are_over:
            self._changer.follow(tx, changes, tx.now)
        return are_over

    # Claiming.

    def _open_queues(self, connection: sqlite3.Connection, queues: Sequence[str]) -> list[str]:
        paused = {name for (name,) in connection.execute(f"SELECT name FROM {self._queues} WHERE is_paused")}
        return open_queues(queues, paused)

    def _decide_due(self, tx: Transaction, queues: Sequence[str]) -> None:
        """Decide about due jobs that were created ahead, a bounded number of them, in the order of their times."""
        due, values = self._due(queues, IS_AHEAD, tx.now)
        found = tx.connection.execute(f"SELECT {JOB_COLUMNS} FROM {self._name} WHERE seq IN ({due})", values).fetchall()
        if found:
            self._lookahead.decide(tx, sorted(jobs_of(found), key=due_order))

    def _promote(self, tx: Transaction, queues: Sequence[str], ahead: int) -> None:
        """Make jobs of these queues ready that are due, or will be within `ahead`; a bounded number of them."""
        due, values = self._due(queues, f"({IS_AHEAD}) IS NOT TRUE", tx.now + ahead)
        promoted = tx.connection.execute(
            f"UPDATE {self._name} SET state = 'queued', queued_at = max(?, run_at) "
            f"WHERE seq IN ({due}) RETURNING queue",
            (tx.now, *values),
        )
        tx.counts.move_all((queue, State.SCHEDULED, State.QUEUED) for (queue,) in promoted.fetchall())

    def _due(self, queues: Sequence[str], kind: str, through: int) -> tuple[str, list[Any]]:
        """The positions of the earliest due jobs of some queues, as a query."""
        each = (
            f"SELECT seq, run_at FROM {self._name} WHERE state = 'scheduled' AND {kind} "
            "AND queue = ? AND run_at <= ? ORDER BY run_at, seq LIMIT ?"
        )
        values = [value for queue in queues for value in (queue, through, MOST_PROMOTED)]
        return _first_of(each, "run_at", len(queues)), [*values, MOST_PROMOTED]

    def _claim(self, tx: Transaction, ask: Exchange, queues: Sequence[str], lease: tuple[int, str]) -> list[Job]:
        """Claim the best ready jobs of these queues, in one merged order."""
        best, values = self._best(queues, ask.want)
        lease_at, boot = lease
        until = lease_at + ask.lease_for
        rows = tx.connection.execute(
            f"UPDATE {self._name} SET state = 'running', started_at = max(?, ifnull(queued_at, 0)), "
            "progress = NULL, lease_no = lease_no + 1, holder = ?, "
            f"lease_until = ?, lease_boot = ? WHERE seq IN ({best}) RETURNING {FRESH_COLUMNS}, {IS_FRESH}",
            (tx.now, ask.holder, until, boot, *values),
        ).fetchall()
        claimed = [fresh_job_of(row, tx.now, ask.holder, until) for row in rows if row[-1]]
        if len(claimed) < len(rows):
            claimed += self._listing.at(tx.connection, [row[1] for row in rows if not row[-1]])
        claimed.sort(key=claim_order)
        tx.counts.move_all((job.queue, State.QUEUED, State.RUNNING) for job in claimed)
        return claimed

    def _has_work(self, connection: sqlite3.Connection, queues: Sequence[str], now: int) -> bool:
        """Whether a claim would find anything: a look that takes no write lock."""
        first = self._next_due(connection, queues)
        if first is not None and first <= now:
            return True
        best, values = self._best(queues, 1)
        return connection.execute(best, values).fetchone() is not None

    def _best(self, queues: Sequence[str], want: int) -> tuple[str, list[Any]]:
        each = (
            f"SELECT seq, priority FROM {self._name} WHERE state = 'queued' AND queue = ? "
            "ORDER BY priority DESC, seq LIMIT ?"
        )
        values = [value for queue in queues for value in (queue, want)]
        return _first_of(each, "priority DESC", len(queues)), [*values, want]

    def _next_due(self, connection: sqlite3.Connection, queues: Sequence[str]) -> int | None:
        """When the first scheduled job of these queues is due."""
        query = f"SELECT min(run_at) FROM {self._name} WHERE state = 'scheduled' AND queue = ?"
        found = [connection.execute(query, (queue,)).fetchone()[0] for queue in queues]
        return min((run_at for run_at in found if run_at is not None), default=None)


def _first_of(each: str, order: str, number: int) -> str:
    """The positions that come first in one order, of what a query finds for each of so many queues."""
    merged = " UNION ALL ".join([f"SELECT * FROM ({each})"] * number)
    return f"SELECT seq FROM ({merged}) ORDER BY {order}, seq LIMIT ?"
