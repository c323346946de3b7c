"""Prunes what was kept long enough, and recounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.series import first_kept, last_kept
from rota.store.contract import Pruned
from rota.store.shared.pruning import Ended, jobs_to_prune
from rota.store.sqlite.codec import state_of

if TYPE_CHECKING:
    from rota.model.jobs.job import State
    from rota.store.contract import Retention
    from rota.store.sqlite.changing import Changer
    from rota.store.sqlite.ledger import Ledger
    from rota.store.sqlite.operations import Operations
    from rota.store.sqlite.records import Records
    from rota.store.sqlite.transaction import Transaction, Transactions


class Upkeep:
    """Keeps one namespace small and its counters exact."""

    def __init__(
        self,
        namespace: str,
        transactions: Transactions,
        changer: Changer,
        ledger: Ledger,
        operations: Operations,
        records: Records,
    ) -> None:
        self._transactions = transactions
        self._changer = changer
        self._ledger = ledger
        self._operations = operations
        self._records = records
        self._namespace = namespace
        self._jobs = f"{namespace}_job"

    def prune(self, retention: Retention, limit: int, now: int | None) -> Pruned:
        with self._transactions.work("prune", now) as tx:
            ended = self._operations.counters(tx.connection).ended()
            ids = jobs_to_prune(retention, limit, tx.now, ended, lambda *asked: self._ended(tx, *asked))
            removed = self._changer.remove_ended(tx, ids)
            if removed:
                tx.blocks.forget(tx.connection)
            minutes = (first_kept(tx.now), last_kept(tx.now))
            tx.connection.execute(f"DELETE FROM {self._namespace}_series WHERE minute < ? OR minute > ?", minutes)
            return Pruned(
                jobs=len(removed),
                occurrences=self._ledger.prune(tx, retention, tx.now, limit),
                nodes=self._operations.prune_nodes(tx.connection, tx.now - retention.nodes_for),
                audit_records=self._records.prune(tx, tx.now - retention.audit_for, limit),
            )

    def _ended(self, tx: Transaction, state: State, through: int, limit: int) -> list[Ended]:
        """By the index of ended jobs."""
        rows = tx.connection.execute(
            f"SELECT finished_at, seq, id FROM {self._jobs} WHERE finished_at IS NOT NULL AND state = ? "
            "AND finished_at <= ? AND key_until <= ? ORDER BY finished_at, seq LIMIT ?",
            (state.value, through, tx.now, limit),
        )
        return [Ended(finished_at, seq, job_id) for finished_at, seq, job_id in rows]

    def recount(self) -> dict[str, int]:
        with self._transactions.write("recount") as tx:  # a write, so that nothing changes in between
            jobs = tx.connection.execute(f"SELECT queue, state FROM {self._jobs}").fetchall()
            counts = self._operations.counters(tx.connection)
            return counts.differences((queue, state_of(state)) for queue, state in jobs)
