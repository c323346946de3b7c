"""Joins new entries of occurrence ledgers to the ranges that they touch, by the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rota.model.schedules.occurrence import fold

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.model.schedules.occurrence import Occurrence

Key = tuple[str, int]  # what names an entry: its schedule, and its last time


class Folded(NamedTuple):
    """What a ledger loses and gets."""

    gone: set[Key]
    written: dict[Key, Occurrence]


def key_of(entry: Occurrence) -> Key:
    return entry.schedule_id, entry.through_at


def fold_all(entries: Iterable[Occurrence], near: Iterable[Occurrence]) -> Folded:
    """Join entries to those near them: of each, the one that ends where it begins, and the first that ends after it."""
    kept = {key_of(entry): entry for entry in near}
    gone: set[Key] = set()
    written: dict[Key, Occurrence] = {}
    for entry in sorted(entries, key=lambda entry: entry.through_at):
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
    after = min(later, key=lambda other: other.through_at, default=None)
    return [other for other in (before, after) if other is not None]
