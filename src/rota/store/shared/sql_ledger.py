"""The occurrence ledger of the stores that keep tables: ranges of occurrences whose jobs are gone or never existed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rota.store.shared.ledger import fold_all
from rota.store.shared.sql_codec import OCCURRENCE_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.schedules.occurrence import Occurrence
    from rota.store.contract import Retention
    from rota.store.shared.sql import Tables
    from rota.store.shared.sql_codec import SqlCodec

_REPLACE = (
    "ON CONFLICT (schedule_id, through_at) DO UPDATE SET after_at = excluded.after_at, count = excluded.count, "
    "outcome = excluded.outcome, reason = excluded.reason"
)
_PRUNE_OLD = (
    "DELETE FROM {ns}.occurrence WHERE (schedule_id, through_at) IN "
    "(SELECT schedule_id, through_at FROM {ns}.occurrence WHERE through_at <= ? ORDER BY through_at LIMIT ?)"
)
# The next schedules, and of each the last entry that is too much.
_SURPLUS = (
    "SELECT w.id, (SELECT c.through_at FROM {ns}.occurrence c WHERE c.schedule_id = w.id "
    "ORDER BY c.through_at DESC LIMIT 1 OFFSET ?) "
    "FROM (SELECT DISTINCT schedule_id AS id FROM {ns}.occurrence WHERE schedule_id > ? "
    "ORDER BY schedule_id LIMIT ?) w ORDER BY w.id"
)


class SqlLedger(ABC):
    """One namespace's occurrences. A store says how it finds the neighbours of entries."""

    def __init__(self, codec: SqlCodec) -> None:
        self._codec = codec
        self._checked = ""  # the schedule that upkeep has checked last

    @abstractmethod
    def neighbours(self, tx: Tables, entries: Sequence[Occurrence]) -> Iterable[Occurrence]:
        """Of each entry, the range that ends where it begins, and the first that ends after it."""

    def record(self, tx: Tables, entries: Sequence[Occurrence]) -> None:
        """Write entries, each joined to the ranges that it touches."""
        if not entries:
            return
        gone, written = fold_all(entries, self.neighbours(tx, entries))
        tx.run_many("DELETE FROM {ns}.occurrence WHERE schedule_id = ? AND through_at = ?", sorted(gone))
        tx.insert("occurrence", OCCURRENCE_TYPES, map(self._codec.occurrence_row, written.values()), _REPLACE)

    def erase(self, tx: Tables, schedule_id: str, ends: Sequence[int]) -> None:
        """Delete the entries that end at these times."""
        if ends:
            query = "DELETE FROM {ns}.occurrence WHERE schedule_id = ? AND through_at = ANY(?)"
            tx.run(query, (schedule_id, list(ends)))

    def forget(self, tx: Tables, schedule_id: str) -> None:
        tx.run("DELETE FROM {ns}.occurrence WHERE schedule_id = ?", (schedule_id,))

    def prune(self, tx: Tables, retention: Retention, now: int, limit: int) -> int:
        """Delete what is too old, and what is too much per schedule, of a bounded number of schedules at a time."""
        old = tx.run(_PRUNE_OLD, (now - retention.occurrences_for, limit))
        found = tx.rows(_SURPLUS, (retention.most_occurrences, self._checked, limit))
        self._checked = found[-1][0] if len(found) == limit else ""  # the next call goes on, or starts again
        cut = "DELETE FROM {ns}.occurrence WHERE schedule_id = ? AND through_at <= ?"
        return old + tx.run_many(cut, [row for row in found if row[1] is not None])
