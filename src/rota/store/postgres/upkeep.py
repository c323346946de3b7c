"""Prunes records whose retention is over, a bounded batch at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.series import minute_of
from rota.store.postgres.fast import block_index
from rota.store.postgres.operations import MERGE_SERIES, count_differences, counters, merge_counters
from rota.store.shared.sql_upkeep import SqlUpkeep

if TYPE_CHECKING:
    from rota.store.contract import Pruned, Retention
    from rota.store.postgres.changing import Changer
    from rota.store.postgres.connection import Database
    from rota.store.postgres.ledger import Ledger
    from rota.store.postgres.records import Records
    from rota.store.postgres.transaction import Transaction


class Upkeep(SqlUpkeep["Transaction"]):
    """One namespace's pruner; many may run at once."""

    ended = (
        "SELECT f.finished_at, f.seq, j.id FROM {ns}.finished f JOIN {ns}.job j ON j.seq = f.seq "
        "WHERE f.state = ? AND f.finished_at <= ? AND j.key_until <= ? ORDER BY f.finished_at, f.seq LIMIT ?"
    )

    def __init__(self, database: Database, changer: Changer, ledger: Ledger, records: Records) -> None:
        super().__init__(changer, ledger, records)
        self._database = database

    def recount(self) -> dict[str, int]:
        """How far the counters are from a fresh count; both are read at one instant."""
        return self._database.read(count_differences)

    def prune(self, retention: Retention, limit: int, now: int | None) -> Pruned:
        def prune(tx: Transaction, at: int) -> Pruned:
            pruned = self.prune_some(tx, retention, limit, at, counters(tx).ended())
            tx.rows(MERGE_SERIES, (minute_of(at) - 1,))
            merge_counters(tx)
            return pruned

        pruned = self._database.write("prune", prune, now)
        # On its own: it must read the sequence before it has an id.
        self._database.transact("block_index", block_index.prune)
        return pruned
