"""Upkeep: what was kept long enough goes, a bounded batch at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.state import FINAL
from rota.store.contract import Pruned

if TYPE_CHECKING:
    from rota.store.contract import Retention
    from rota.store.postgres.changing import Changer
    from rota.store.postgres.ledger import Ledger
    from rota.store.postgres.operations import Nodes, Queues
    from rota.store.postgres.records import Notes
    from rota.store.postgres.transaction import Transaction

_ENDED = (
    "SELECT j.id, f.finished_at FROM {ns}.finished f JOIN {ns}.job j ON j.seq = f.seq "
    "WHERE f.state = %s AND f.finished_at <= %s AND j.key_until <= %s ORDER BY f.finished_at, f.seq LIMIT %s"
)
_EVER = 2**62


class Upkeep:
    """One namespace's pruner; many may run at once."""

    def __init__(self, changer: Changer, ledger: Ledger, queues: Queues, nodes: Nodes, notes: Notes) -> None:
        self._changer = changer
        self._ledger = ledger
        self._queues = queues
        self._nodes = nodes
        self._notes = notes

    def prune(self, tx: Transaction, retention: Retention, limit: int, now: int) -> Pruned:
        ids: list[str] = []
        for state in sorted(FINAL):
            room = limit - len(ids)
            ids += [job_id for job_id, _ in tx.rows(_ENDED, (state.value, now - retention.kept_for(state), now, room))]
        surplus = min(self._queues.ended(tx) - retention.most_finished, limit)
        if surplus > len(ids):  # the oldest may be stale ones that are among the ids already
            ids = list(dict.fromkeys([*ids, *self._oldest(tx, now, surplus + len(ids))]))[:surplus]
        removed = self._changer.remove_ended(tx, ids)
        lines = self._ledger.prune(tx, retention, now, limit)
        nodes = self._nodes.prune(tx, now - retention.nodes_for)
        notes = self._notes.prune(tx, now - retention.audit_for, limit)
        self._queues.fold(tx)
        return Pruned(len(removed), lines, nodes, notes)

    def _oldest(self, tx: Transaction, now: int, limit: int) -> list[str]:
        """The oldest of all that ended: the heads of three lines, each by its index."""
        found = [row for state in sorted(FINAL) for row in tx.rows(_ENDED, (state.value, _EVER, now, limit))]
        found.sort(key=lambda row: row[1])
        return [job_id for job_id, _ in found[:limit]]
