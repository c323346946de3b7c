"""Prunes records whose retention is over, and recounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.shared.sql_upkeep import SqlUpkeep
from rota.store.sqlite.codec import state_of
from rota.store.sqlite.transaction import Transaction

if TYPE_CHECKING:
    from rota.store.contract import Pruned, Retention
    from rota.store.sqlite.changing import Changer
    from rota.store.sqlite.ledger import Ledger
    from rota.store.sqlite.operations import Operations
    from rota.store.sqlite.records import Records
    from rota.store.sqlite.transaction import Transactions


class Upkeep(SqlUpkeep[Transaction]):
    """Keeps one namespace small and its counters exact."""

    ended = (
        "SELECT finished_at, seq, id FROM {ns}.job WHERE finished_at IS NOT NULL AND state = ? "
        "AND finished_at <= ? AND key_until <= ? ORDER BY finished_at, seq LIMIT ?"
    )

    def __init__(
        self, transactions: Transactions, changer: Changer, ledger: Ledger, operations: Operations, records: Records
    ) -> None:
        super().__init__(changer, ledger, records)
        self._transactions = transactions
        self._operations = operations

    def prune(self, retention: Retention, limit: int, now: int | None) -> Pruned:
        with self._transactions.work("prune", now) as tx:
            pruned = self.prune_some(tx, retention, limit, tx.now, self._operations.counters(tx.connection).ended())
            if pruned.jobs:
                tx.blocks.forget(tx.connection)
            return pruned

    def recount(self) -> dict[str, int]:
        with self._transactions.write("recount") as tx:  # a write, so that nothing changes in between
            jobs = tx.rows("SELECT queue, state FROM {ns}.job")
            counts = self._operations.counters(tx.connection)
            return counts.differences((queue, state_of(state)) for queue, state in jobs)
