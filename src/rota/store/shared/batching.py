"""Cuts items into batches in which no name occurs twice: what one item writes, the next must find. Groups items."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from rota.model.schedules.firing import Firing

Item = TypeVar("Item")
Key = TypeVar("Key")

FEW_DUE = 32  # schedules that a look for what is due reads first: as a rule no more are


def grouped(items: Iterable[Item], key_of: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items by their keys, in order."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key_of(item), []).append(item)
    return groups


def batches(
    items: Iterable[Item], names_of: Callable[[Item], Sequence[Hashable]], most: int | None = None
) -> Iterator[list[Item]]:
    """The items in order, in batches in which each name occurs once, of at most so many."""
    batch: list[Item] = []
    names: set[Hashable] = set()
    for item in items:
        mine = names_of(item)
        if len(batch) == most or not names.isdisjoint(mine):
            yield batch
            batch, names = [], set()
        batch.append(item)
        names.update(mine)
    if batch:
        yield batch


def names_of_firing(firing: Firing) -> list[Hashable]:
    """What a batch of firings may contain once: a schedule, and a key, whose holder must exist before the next job."""
    return [firing.schedule.id, *(("key", key) for key in firing.keys)]


def number_plain(firings: Sequence[Firing]) -> int:
    """How many of the first make one job each and do nothing else, and share no schedule and no key."""
    plain = takewhile(lambda firing: firing.can_use_fast_path, firings)
    return len(next(batches(plain, names_of_firing), []))
