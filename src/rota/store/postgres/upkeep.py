"""Upkeep: what was kept long enough goes, a bounded batch at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.contract import Pruned
from rota.store.shared.pruning import Ended, jobs_to_prune

if TYPE_CHECKING:
    from rota.model.state import State
    from rota.store.contract import Retention
    from rota.store.postgres.changing import Changer
    from rota.store.postgres.ledger import Ledger
    from rota.store.postgres.operations import Nodes, Queues
    from rota.store.postgres.records import Notes
    from rota.store.postgres.transaction import Transaction

_ENDED = (
    "SELECT f.finished_at, f.seq, j.id FROM {ns}.finished f JOIN {ns}.job j ON j.seq = f.seq "
    "WHERE f.state = %s AND f.finished_at <= %s AND j.key_until <= %s ORDER BY f.finished_at, f.seq LIMIT %s"
)


class Upkeep:
    """One namespace's pruner; many may run at once."""

    def __init__(self, changer: Changer, ledger: Ledger, queues: Queues, nodes: Nodes, notes: Notes) -> None:
        self._changer = changer
        self._ledger = ledger
        self._queues = queues
        self._nodes = nodes
        self._notes = notes

    def prune(self, tx: Transaction, retention: Retention, limit: int, now: int) -> Pruned:
        ids = jobs_to_prune(retention, limit, now, self._queues.ended(tx), lambda *asked: _ended(tx, now, *asked))
        removed = self._changer.remove_ended(tx, ids)
        lines = self._ledger.prune(tx, retention, now, limit)
        nodes = self._nodes.prune(tx, now - retention.nodes_for)
        notes = self._notes.prune(tx, now - retention.audit_for, limit)
        self._queues.fold(tx)
        return Pruned(len(removed), lines, nodes, notes)


def _ended(tx: Transaction, now: int, state: State, through: int, limit: int) -> list[Ended]:
    """By the index of ended jobs."""
    rows = tx.rows(_ENDED, (state.value, through, now, limit))
    return [Ended(finished_at, seq, job_id) for finished_at, seq, job_id in rows]
