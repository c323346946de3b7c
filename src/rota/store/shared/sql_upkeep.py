"""Upkeep of the stores that keep tables: prunes what was kept for its retention, a bounded batch at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from rota.model.jobs.series import first_kept, last_kept
from rota.store.contract import Pruned
from rota.store.shared.pruning import Ended, jobs_to_prune
from rota.store.shared.sql import Tables

if TYPE_CHECKING:
    from rota.model.jobs.job import State
    from rota.store.contract import Retention
    from rota.store.shared.sql_changing import SqlChanger
    from rota.store.shared.sql_ledger import SqlLedger
    from rota.store.shared.sql_records import SqlRecords

Tx = TypeVar("Tx", bound=Tables)


class SqlUpkeep(Generic[Tx]):
    """One namespace's pruner; many may run at once."""

    ended = ""  # the query for the time, position and id of ended jobs in a state, whose key does not hold any more

    def __init__(self, changer: SqlChanger[Tx], ledger: SqlLedger, records: SqlRecords) -> None:
        self._changer = changer
        self._ledger = ledger
        self._records = records

    def prune_some(self, tx: Tx, retention: Retention, limit: int, now: int, ended: int) -> Pruned:
        """A batch; `ended`: how many ended jobs are kept."""

        def find(state: State, through: int, most: int) -> list[Ended]:
            rows = tx.rows(self.ended, (state.value, through, now, most))
            return [Ended(finished_at=finished_at, seq=seq, id=job_id) for finished_at, seq, job_id in rows]

        removed = self._changer.remove_ended(tx, jobs_to_prune(retention, limit, now, ended, find))
        minutes = (first_kept(now), last_kept(now))
        tx.run("DELETE FROM {ns}.series WHERE minute < ? OR minute > ?", minutes)
        return Pruned(
            jobs=len(removed),
            occurrences=self._ledger.prune(tx, retention, now, limit),
            nodes=tx.run("DELETE FROM {ns}.node WHERE beat_at <= ?", (now - retention.nodes_for,)),
            audit_records=self._records.prune(tx, now - retention.audit_for, limit),
        )
