"""The occurrence ledger: ranges of occurrences whose jobs were deleted or never existed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.occurrence import Occurrence, fold, of_job
from rota.store.postgres.codec import (
    JOB_COLUMNS,
    OCCURRENCE_COLUMNS,
    OCCURRENCE_TYPES,
    jobs_from,
    occurrence_from,
    occurrence_row,
)
from rota.store.shared.matching import check_cursor
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.contract import Page, Retention
    from rota.store.postgres.connection import Database
    from rota.store.postgres.transaction import Transaction

_REPLACE = (
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
    """One namespace's occurrences. A transaction that writes here has locked the schedules first."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._checked = ""  # the schedule that upkeep has checked last

    def page(self, schedule_id: str, start: int, end: int, cursor: str | None, limit: int) -> Page[Occurrence]:
        check_cursor(cursor)
        after = int(cursor) if cursor else start - 1
        return self._database.read(lambda tx: _page(tx, schedule_id, after, end, limit))

    def record(self, tx: Transaction, entries: Sequence[Occurrence]) -> None:
        """Write entries, each joined to the ranges that it touches: one query and one write for all."""
        if not entries:
            return
        kept = _neighbours(tx, entries)
        replaced: set[tuple[str, int]] = set()
        written: dict[tuple[str, int], Occurrence] = {}
        for entry in sorted(entries, key=lambda entry: entry.through_at):
            joined, others = fold(entry, *_beside(entry, kept))
            for other in others:
                key = (other.schedule_id, other.through_at)
                kept.pop(key)
                written.pop(key, None)
                replaced.add(key)
            kept[joined.schedule_id, joined.through_at] = written[joined.schedule_id, joined.through_at] = joined
        tx.run_many(
            "DELETE FROM {ns}.occurrence WHERE schedule_id = %s AND through_at = %s", sorted(replaced - written.keys())
        )
        tx.insert("occurrence", OCCURRENCE_TYPES, map(occurrence_row, written.values()), _REPLACE)

    def erase(self, tx: Transaction, schedule_id: str, ends: Sequence[int]) -> None:
        """Delete the entries that end at these times."""
        if ends:
            tx.run(
                "DELETE FROM {ns}.occurrence WHERE schedule_id = %s AND through_at = ANY(%s)", (schedule_id, list(ends))
            )

    def forget(self, tx: Transaction, schedule_id: str) -> None:
        tx.run("DELETE FROM {ns}.occurrence WHERE schedule_id = %s", (schedule_id,))

    def prune(self, tx: Transaction, retention: Retention, now: int, limit: int) -> int:
        """Delete what is too old, and what is too much per schedule, of a bounded number of schedules at a time."""
        old = tx.run(
            "DELETE FROM {ns}.occurrence WHERE (schedule_id, through_at) IN "
            "(SELECT schedule_id, through_at FROM {ns}.occurrence WHERE through_at <= %s LIMIT %s)",
            (now - retention.occurrences_for, limit),
        )
        rows = tx.rows(
            "SELECT DISTINCT schedule_id FROM {ns}.occurrence WHERE schedule_id > %s ORDER BY schedule_id LIMIT %s",
            (self._checked, limit),
        )
        self._checked = rows[-1][0] if len(rows) == limit else ""  # the next call goes on, or starts again
        surplus = tx.run(
            "DELETE FROM {ns}.occurrence o USING (SELECT w.id, (SELECT c.through_at FROM {ns}.occurrence c "
            "WHERE c.schedule_id = w.id ORDER BY c.through_at DESC LIMIT 1 OFFSET %s) AS cut "
            "FROM unnest(%s::text[]) AS w (id)) x WHERE o.schedule_id = x.id AND o.through_at <= x.cut",
            (retention.most_occurrences, [name for (name,) in rows]),
        )
        return old + surplus


def _page(tx: Transaction, schedule_id: str, after: int, end: int, limit: int) -> Page[Occurrence]:
    """Ranges and kept jobs together, oldest first, as they are at one instant."""
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
    entries = [*map(occurrence_from, ranges), *map(of_job, jobs_from(kept))]
    entries.sort(key=lambda entry: entry.through_at)
    return page_of(entries, limit, lambda entry: str(entry.through_at))


def _neighbours(tx: Transaction, entries: Sequence[Occurrence]) -> dict[tuple[str, int], Occurrence]:
    """Of each entry, the range that ends where it begins, and the first that ends after it."""
    names, starts = [entry.schedule_id for entry in entries], [entry.after_at for entry in entries]
    rows = tx.rows(_NEIGHBOURS, (names, starts, [entry.through_at for entry in entries]))
    return {(entry.schedule_id, entry.through_at): entry for entry in map(occurrence_from, rows)}


def _beside(entry: Occurrence, kept: dict[tuple[str, int], Occurrence]) -> list[Occurrence]:
    before = kept.get((entry.schedule_id, entry.after_at))
    later = [other for (name, at), other in kept.items() if name == entry.schedule_id and at > entry.through_at]
    after = min(later, key=lambda other: other.through_at, default=None)
    return [other for other in (before, after) if other is not None]
