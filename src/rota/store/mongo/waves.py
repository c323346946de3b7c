"""Waves: what one call wants of several things, in its order, in batches that name each thing once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

Item = TypeVar("Item")


def waves(items: Sequence[Item], names_of: Callable[[Item], Sequence[Hashable]]) -> Iterator[list[Item]]:
    """The items in order, in batches in which each name comes once."""
    wave: list[Item] = []
    names: set[Hashable] = set()
    for item in items:
        mine = names_of(item)
        if not names.isdisjoint(mine):
            yield wave
            wave, names = [], set()
        wave.append(item)
        names.update(mine)
    if wave:
        yield wave
