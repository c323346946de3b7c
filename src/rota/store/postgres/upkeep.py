"""Prunes what was kept for its retention, a bounded batch at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.series import first_kept, last_kept
from rota.store.contract import Pruned
from rota.store.postgres.fast import block_index
from rota.store.postgres.operations import count_differences, counters, merge_counters, prune_series
from rota.store.shared.pruning import Ended, jobs_to_prune

if TYPE_CHECKING:
    from rota.model.jobs.job import State
    from rota.store.contract import Retention
    from rota.store.postgres.changing import Changer
    from rota.store.postgres.connection import Database
    from rota.store.postgres.ledger import Ledger
    from rota.store.postgres.records import Records
    from rota.store.postgres.transaction import Transaction

_ENDED = (
    "SELECT f.finished_at, f.seq, j.id FROM {ns}.finished f JOIN {ns}.job j ON j.seq = f.seq "
    "WHERE f.state = %s AND f.finished_at <= %s AND j.key_until <= %s ORDER BY f.finished_at, f.seq LIMIT %s"
)


class Upkeep:
    """One namespace's pruner; many may run at once."""

    def __init__(self, database: Database, changer: Changer, ledger: Ledger, records: Records) -> None:
        self._database = database
        self._changer = changer
        self._ledger = ledger
        self._records = records

    def recount(self) -> dict[str, int]:
        """How far the counters are from a fresh count; both are read at one instant."""
        return self._database.read(count_differences)

    def prune(self, retention: Retention, limit: int, now: int | None) -> Pruned:
        pruned = self._database.write("prune", lambda tx, at: self._prune(tx, retention, limit, at), now)
        self._database.transact("", block_index.prune)  # on its own: it must read the sequence before it has an id
        return pruned

    def _prune(self, tx: Transaction, retention: Retention, limit: int, now: int) -> Pruned:
        ids = jobs_to_prune(retention, limit, now, counters(tx).ended(), lambda *asked: _ended(tx, now, *asked))
        removed = self._changer.remove_ended(tx, ids)
        entries = self._ledger.prune(tx, retention, now, limit)
        nodes = tx.run("DELETE FROM {ns}.node WHERE beat_at <= %s", (now - retention.nodes_for,))
        records = self._records.prune(tx, now - retention.audit_for, limit)
        prune_series(tx, first_kept(now), last_kept(now), now)
        merge_counters(tx)
        return Pruned(jobs=len(removed), occurrences=entries, nodes=nodes, audit_records=records)


def _ended(tx: Transaction, now: int, state: State, through: int, limit: int) -> list[Ended]:
    """By the index of ended jobs."""
    rows = tx.rows(_ENDED, (state.value, through, now, limit))
    return [Ended(finished_at=finished_at, seq=seq, id=job_id) for finished_at, seq, job_id in rows]
