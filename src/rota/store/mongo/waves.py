"""Waves: what one call wants of several things, in its order, in batches that name each thing once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

Item = TypeVar("Item")


def waves(items: Sequence[Item], key: Callable[[Item], Hashable]) -> Iterator[list[Item]]:
    """The items in order, in batches in which each key comes once."""
    wave: list[Item] = []
    names: set[Hashable] = set()
    for item in items:
        if key(item) in names:
            yield wave
            wave, names = [], set()
        wave.append(item)
        names.add(key(item))
    if wave:
        yield wave
