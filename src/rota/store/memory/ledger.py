"""The memory store's ledger: ranges of occurrences whose jobs are gone or never were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.occurrence import fold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rota.model.occurrence import Occurrence
    from rota.store.contract import Retention


class Ledger:
    """Lines per schedule."""

    def __init__(self) -> None:
        self._lines: dict[str, list[Occurrence]] = {}

    def of(self, schedule_id: str) -> list[Occurrence]:
        return self._lines.get(schedule_id, [])

    def record(self, line: Occurrence) -> None:
        """Keep a line, joined to the ranges that it touches without a break."""
        lines = self.of(line.schedule_id)
        joined, replaced = fold(line, *lines)
        self._lines[line.schedule_id] = [other for other in lines if other not in replaced] + [joined]

    def erase(self, schedule_id: str, ends: Sequence[int]) -> None:
        """Drop the lines that end at these times."""
        if ends:
            self._lines[schedule_id] = [line for line in self.of(schedule_id) if line.through_at not in ends]

    def load(self, line: Occurrence) -> bool:
        """Keep a line as it is; False where there is one already."""
        lines = self._lines.setdefault(line.schedule_id, [])
        if any(other.through_at == line.through_at for other in lines):
            return False
        lines.append(line)
        return True

    def __iter__(self) -> Iterator[Occurrence]:
        """All lines of all schedules."""
        for lines in self._lines.values():
            yield from lines

    def forget(self, schedule_id: str) -> None:
        self._lines.pop(schedule_id, None)

    def prune(self, retention: Retention, now: int) -> int:
        """Drop what is too old, and what is too much per schedule; how many lines went."""
        removed = 0
        for schedule_id, lines in self._lines.items():
            lines.sort(key=lambda line: line.through_at)
            recent = [line for line in lines if line.through_at > now - retention.occurrences_for]
            kept = recent[max(0, len(recent) - retention.most_occurrences) :]
            removed += len(lines) - len(kept)
            self._lines[schedule_id] = kept
        return removed
