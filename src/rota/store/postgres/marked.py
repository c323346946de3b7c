"""What one connection knows to be marked, so that a call which adds jobs of the usual kinds need not look."""

from __future__ import annotations

Kind = tuple[str, str]  # queue and task


class Marked:
    """The kinds that are marked in the newest block that a connection has written to, all of it committed."""

    def __init__(self) -> None:
        self._block = -1
        self._kinds: set[Kind] = set()

    def block_with(self, kinds: set[Kind]) -> int | None:
        """That block, if all these are marked in it."""
        return self._block if kinds <= self._kinds else None

    def note(self, block: int, kinds: set[Kind]) -> None:
        if block > self._block:
            self._block, self._kinds = block, set()
        if block == self._block:
            self._kinds |= kinds
