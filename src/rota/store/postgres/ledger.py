"""The ledger: ranges of occurrences whose jobs are gone or never were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.occurrence import Occurrence, fold, of_job
from rota.store.contract import Page
from rota.store.postgres.codec import JOB_COLUMNS, OCCURRENCE_COLUMNS, jobs_of, occurrence_of, row_of_occurrence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.contract import Retention
    from rota.store.postgres.transaction import Transaction

_WRITE = (
    f"INSERT INTO {{ns}}.occurrence ({OCCURRENCE_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s) "
    "ON CONFLICT (schedule_id, through_at) DO UPDATE SET after_at = excluded.after_at, count = excluded.count, "
    "outcome = excluded.outcome, reason = excluded.reason"
)
_NEIGHBOURS = (
    "SELECT n.* FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) AS w (id, after_at, through_at) "
    "CROSS JOIN LATERAL ("
    f"SELECT {OCCURRENCE_COLUMNS} FROM {{ns}}.occurrence o WHERE o.schedule_id = w.id AND o.through_at = w.after_at "
    f"UNION ALL (SELECT {OCCURRENCE_COLUMNS} FROM {{ns}}.occurrence o "
    "WHERE o.schedule_id = w.id AND o.through_at > w.through_at ORDER BY o.through_at LIMIT 1)) n"
)


class Ledger:
    """One namespace's occurrences. Whoever records has locked the schedules first."""

    def __init__(self) -> None:
        self._looked_at = ""  # how far upkeep has come in its round

    def record(self, tx: Transaction, lines: Sequence[Occurrence]) -> None:
        """Write lines, each joined to the ranges that it touches without a break: one look and one write for all."""
        if not lines:
            return
        kept = self._neighbours(tx, lines)
        replaced: set[tuple[str, int]] = set()
        written: dict[tuple[str, int], Occurrence] = {}
        for line in sorted(lines, key=lambda line: line.through_at):
            joined, others = fold(line, *_beside(line, kept))
            for other in others:
                place = (other.schedule_id, other.through_at)
                kept.pop(place)
                written.pop(place, None)
                replaced.add(place)
            kept[joined.schedule_id, joined.through_at] = written[joined.schedule_id, joined.through_at] = joined
        tx.run_many(
            "DELETE FROM {ns}.occurrence WHERE schedule_id = %s AND through_at = %s", sorted(replaced - written.keys())
        )
        tx.run_many(_WRITE, [row_of_occurrence(line) for line in written.values()])

    def erase(self, tx: Transaction, schedule_id: str, ends: Sequence[int]) -> None:
        """Drop the lines that end at these times."""
        if ends:
            tx.run(
                "DELETE FROM {ns}.occurrence WHERE schedule_id = %s AND through_at = ANY(%s)", (schedule_id, list(ends))
            )

    def forget(self, tx: Transaction, schedule_id: str) -> None:
        tx.run("DELETE FROM {ns}.occurrence WHERE schedule_id = %s", (schedule_id,))

    def page(
        self, tx: Transaction, schedule_id: str, start: int, end: int, cursor: str | None, limit: int
    ) -> Page[Occurrence]:
        """Ranges and kept jobs together, oldest first, as they are at one instant."""
        after = int(cursor) if cursor else start - 1
        ranges = tx.rows(
            f"SELECT {OCCURRENCE_COLUMNS} FROM {{ns}}.occurrence WHERE schedule_id = %s AND through_at > %s "
            "AND CASE WHEN count = 1 THEN through_at ELSE after_at + 1 END < %s ORDER BY through_at LIMIT %s",
            (schedule_id, after, end, limit + 1),
        )
        kept = tx.rows(
            f"SELECT {JOB_COLUMNS} FROM {{ns}}.jobs WHERE schedule_id = %s AND fire_at < %s AND fire_at > %s "
            "AND created_at >= coalesce((SELECT s.created_at FROM {ns}.schedule s WHERE s.id = %s), 0) "
            "ORDER BY fire_at LIMIT %s",
            (schedule_id, end, after, schedule_id, limit + 1),
        )
        lines = [*map(occurrence_of, ranges), *map(of_job, jobs_of(kept))]
        lines.sort(key=lambda line: line.through_at)
        shown = lines[:limit]
        return Page(shown, str(shown[-1].through_at) if len(lines) > limit else None)

    def prune(self, tx: Transaction, retention: Retention, now: int, limit: int) -> int:
        """Drop what is too old, and what is too much per schedule; a bounded number of schedules at a time."""
        old = tx.run(
            "DELETE FROM {ns}.occurrence WHERE (schedule_id, through_at) IN "
            "(SELECT schedule_id, through_at FROM {ns}.occurrence WHERE through_at <= %s LIMIT %s)",
            (now - retention.occurrences_for, limit),
        )
        names = self._next(tx, limit)
        return old + (self._thin(tx, names, retention.most_occurrences) if names else 0)

    def _next(self, tx: Transaction, limit: int) -> list[str]:
        """The schedules whose turn it is: upkeep goes round them all, call by call."""
        rows = tx.rows(
            "SELECT DISTINCT schedule_id FROM {ns}.occurrence WHERE schedule_id > %s ORDER BY schedule_id LIMIT %s",
            (self._looked_at, limit),
        )
        self._looked_at = rows[-1][0] if len(rows) == limit else ""
        return [name for (name,) in rows]

    def _thin(self, tx: Transaction, names: Sequence[str], most: int) -> int:
        return tx.run(
            "DELETE FROM {ns}.occurrence o USING (SELECT w.id, (SELECT c.through_at FROM {ns}.occurrence c "
            "WHERE c.schedule_id = w.id ORDER BY c.through_at DESC LIMIT 1 OFFSET %s) AS cut "
            "FROM unnest(%s::text[]) AS w (id)) x WHERE o.schedule_id = x.id AND o.through_at <= x.cut",
            (most, list(names)),
        )

    def _neighbours(self, tx: Transaction, lines: Sequence[Occurrence]) -> dict[tuple[str, int], Occurrence]:
        """Of each line, the range that ends where it begins, and the first that ends after it."""
        rows = tx.rows(
            _NEIGHBOURS,
            (
                [line.schedule_id for line in lines],
                [line.after_at for line in lines],
                [line.through_at for line in lines],
            ),
        )
        return {(line.schedule_id, line.through_at): line for line in map(occurrence_of, rows)}


def _beside(line: Occurrence, kept: dict[tuple[str, int], Occurrence]) -> list[Occurrence]:
    before = kept.get((line.schedule_id, line.after_at))
    later = [other for (name, at), other in kept.items() if name == line.schedule_id and at > line.through_at]
    after = min(later, key=lambda other: other.through_at, default=None)
    return [other for other in (before, after) if other is not None]
