"""Counts a process's own work. Adding is cheap, and the number of names is bounded."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

OTHER = "other"  # the name for all names beyond the bound

MOST_QUEUES = 100
MOST_TASKS = 200
MOST_SCHEDULES = 1_000


def _anyone(_name: str) -> bool:
    return True


class Counts:
    """Numbers by a name and a word of a few; at most so many names, the rest is counted as `other`."""

    def __init__(self, most: int, accepts: Callable[[str], bool] = _anyone) -> None:
        self._most = most
        self._accepts = accepts  # whether a name that is new may be one of its own
        self._names: set[str] = set()
        self._counts: dict[tuple[str, str], int] = {}

    def add(self, name: str, word: str = "", number: int = 1) -> None:
        key = (name, word)
        count = self._counts.get(key)
        if count is None:
            key = (self._kept(name), word)
            count = self._counts.get(key, 0)
        self._counts[key] = count + number

    def items(self, names: Iterable[str] = (), words: Iterable[str] = ("",)) -> Iterator[tuple[tuple[str, str], int]]:
        """Every count; known names that were not counted yet, with each of these words, are zero."""
        counts = self._counts
        yield from counts.items()
        kept = [*self._known(names)]
        yield from (((name, word), 0) for name in kept for word in words if (name, word) not in counts)

    def _known(self, names: Iterable[str]) -> Iterator[str]:
        """Names that have numbers of their own, and as many new ones as the bound allows: the rest is `other`."""
        room = self._most - len(self._names)
        for name in names:
            if name in self._names:
                yield name
            elif room > 0 and self._accepts(name):
                room -= 1
                yield name

    def _kept(self, name: str) -> str:
        if name in self._names:
            return name
        if len(self._names) >= self._most or not self._accepts(name):
            return OTHER
        self._names.add(name)
        return name


class Cell:
    """The observations of one name."""

    __slots__ = ("counts", "total")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * buckets
        self.total = 0.0


class Histograms:
    """Observations by name, in buckets; at most so many names, the rest is observed as `other`."""

    def __init__(self, bounds: tuple[float, ...], most: int, accepts: Callable[[str], bool] = _anyone) -> None:
        self.bounds = bounds
        self._most = most
        self._accepts = accepts
        self._cells: dict[str, Cell] = {}

    def observe(self, name: str, seconds: float) -> None:
        cell = self._cells.get(name) or self._cell(name)
        cell.counts[bisect_left(self.bounds, seconds)] += 1
        cell.total += seconds

    def items(self) -> Iterator[tuple[str, Cell]]:
        yield from self._cells.items()

    def _cell(self, name: str) -> Cell:
        own = len(self._cells) - (OTHER in self._cells)
        kept = name if own < self._most and self._accepts(name) else OTHER
        return self._cells.setdefault(kept, Cell(len(self.bounds) + 1))


class FirstIds:
    """The schedules that have numbers of their own: the first 1,000 by id, as far as the store was last read."""

    def __init__(self) -> None:
        self.last: str | None = None  # the last of them; None: there are fewer
        self.known: tuple[str, ...] = ()  # their counters begin at zero, so that a first failure is an increase

    def note(self, ids: list[str], *, is_all: bool) -> None:
        """Take over the result of a reading of the schedules."""
        self.known = tuple(ids)
        self.last = None if is_all or not ids else ids[-1]

    def __call__(self, schedule_id: str) -> bool:
        return self.last is None or schedule_id <= self.last
