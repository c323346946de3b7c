"""Joins new entries of occurrence ledgers to the ranges that they touch: by the batch, or in one schedule's list."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from rota.model.schedules.occurrence import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.schedules.occurrence import Occurrence
    from rota.store.contract import Retention

Key = tuple[str, int]  # what names an entry: its schedule, and its last time


class Folded(NamedTuple):
    """What a ledger loses and gets."""

    gone: set[Key]
    written: dict[Key, Occurrence]


def key_of(entry: Occurrence) -> Key:
    return entry.schedule_id, entry.through_at


def end_of(entry: Occurrence) -> int:
    return entry.through_at


def fold_all(entries: Iterable[Occurrence], near: Iterable[Occurrence]) -> Folded:
    """Join entries to those near them: of each, the one that ends where it begins, and the first that ends after it."""
    kept = {key_of(entry): entry for entry in near}
    gone: set[Key] = set()
    written: dict[Key, Occurrence] = {}
    for entry in sorted(entries, key=end_of):
        joined, replaced = fold(entry, *_beside(entry, kept))
        for key in map(key_of, replaced):
            kept.pop(key)
            written.pop(key, None)
            gone.add(key)
        kept[key_of(joined)] = written[key_of(joined)] = joined
    return Folded(gone - written.keys(), written)


def _beside(entry: Occurrence, kept: dict[Key, Occurrence]) -> list[Occurrence]:
    before = kept.get((entry.schedule_id, entry.after_at))
    later = [other for (name, at), other in kept.items() if name == entry.schedule_id and at > entry.through_at]
    after = min(later, key=end_of, default=None)
    return [other for other in (before, after) if other is not None]


# A store may keep the entries of a schedule as one list, in the order of their ends.


def covering(entries: Sequence[Occurrence], time: int) -> Occurrence | None:
    """The entry that covers a time."""
    at = bisect_left(entries, time, key=end_of)
    return entries[at] if at < len(entries) and entries[at].after_at < time else None


def has_recorded(entries: Sequence[Occurrence], entry: Occurrence) -> bool:
    """Whether an entry is among them, maybe joined to others of its outcome. A range of skips may cover the time of
    a job, too, if the job was made ahead and ended before that time."""
    covers = covering(entries, entry.through_at)
    return covers is not None and (covers.outcome, covers.reason) == (entry.outcome, entry.reason)


def join(entries: list[Occurrence], entry: Occurrence) -> None:
    """Insert an entry in order, joined to the neighbours that it touches. One that is recorded changes nothing."""
    if has_recorded(entries, entry):
        return
    at = bisect_left(entries, entry.through_at, key=end_of)
    neighbours = entries[max(0, at - 1) : at + 1]
    joined, replaced = fold(entry, *neighbours)
    rest = [other for other in neighbours if other not in replaced]
    entries[max(0, at - 1) : at + 1] = sorted([joined, *rest], key=end_of)


def kept_entries(entries: Sequence[Occurrence], retention: Retention, now: int) -> list[Occurrence]:
    """The entries that are neither too old nor too many."""
    recent = [entry for entry in entries if entry.through_at > now - retention.occurrences_for]
    return recent[max(0, len(recent) - retention.most_occurrences) :]
