"""Holds the ledger of the memory store: ranges of occurrences whose jobs were deleted or never existed."""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING

from rota.model.schedules.occurrence import fold
from rota.store.shared.ledger import end_of, kept_entries

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rota.model.schedules.occurrence import Occurrence
    from rota.store.contract import Retention


class Ledger:
    """Entries per schedule, in the order of their ends."""

    def __init__(self) -> None:
        self._entries: dict[str, list[Occurrence]] = {}

    def of(self, schedule_id: str) -> list[Occurrence]:
        return self._entries.get(schedule_id, [])

    def record(self, entry: Occurrence) -> None:
        """Record an entry, joined to the ranges that it touches without a break."""
        entries = self.of(entry.schedule_id)
        joined, replaced = fold(entry, *entries)
        kept = [other for other in entries if other not in replaced]
        insort(kept, joined, key=end_of)
        self._entries[entry.schedule_id] = kept

    def erase(self, schedule_id: str, ends: Sequence[int]) -> None:
        """Drop the entries that end at these times."""
        if ends:
            self._entries[schedule_id] = [entry for entry in self.of(schedule_id) if entry.through_at not in ends]

    def load(self, entry: Occurrence) -> bool:
        """Record an entry as it is; False if there is one already."""
        entries = self._entries.setdefault(entry.schedule_id, [])
        if any(other.through_at == entry.through_at for other in entries):
            return False
        insort(entries, entry, key=end_of)
        return True

    def __iter__(self) -> Iterator[Occurrence]:
        """All entries of all schedules."""
        for entries in self._entries.values():
            yield from entries

    def forget(self, schedule_id: str) -> None:
        self._entries.pop(schedule_id, None)

    def prune(self, retention: Retention, now: int) -> int:
        """Delete entries that are too old or too many for their schedule; return how many."""
        removed = 0
        for schedule_id, entries in self._entries.items():
            kept = kept_entries(entries, retention, now)
            removed += len(entries) - len(kept)
            self._entries[schedule_id] = kept
        return removed
