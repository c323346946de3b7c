"""Shrinks a sequence of operations to fewer that still show the same difference."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.testing.differential.comparison import Difference
    from rota.testing.differential.operation import Operation

    Replay = Callable[[Sequence[Operation]], Difference | None]


def shrunk(
    operations: Sequence[Operation], replay: Replay, *, seconds: float = 20.0, enough: int = 1
) -> tuple[list[Operation], Difference | None]:
    """Drop chunks, then smaller ones, while the same difference shows, time is left and more than `enough` are left.

    Each try is a fresh replay. None if the operations show no difference when they are done again.
    """
    until = time.monotonic() + seconds
    found = replay(operations)
    if found is None:
        return list(operations), None
    kept = list(operations[: found.step])
    kept, found = _without_reads(kept, found, replay)
    before = len(kept) + 1
    while len(kept) < before and len(kept) > enough and time.monotonic() < until:  # what went may have needed another
        before, size = len(kept), max(1, len(kept) // 2)
        while size and len(kept) > enough and time.monotonic() < until:
            kept, found = _without_chunks(kept, found, size, replay, until)
            size //= 2
    return kept, found


def _without_reads(kept: list[Operation], found: Difference, replay: Replay) -> tuple[list[Operation], Difference]:
    """The operations without reads, except the last operation, which may be the read that shows the difference."""
    fewer = [operation for operation in kept[:-1] if not operation.is_read] + kept[-1:]
    still = replay(fewer)
    return (fewer[: still.step], still) if still is not None and still.kind == found.kind else (kept, found)


def _without_chunks(
    kept: list[Operation], found: Difference, size: int, replay: Replay, until: float
) -> tuple[list[Operation], Difference]:
    start = 0
    while start < len(kept) and time.monotonic() < until:
        fewer = kept[:start] + kept[start + size :]
        still = replay(fewer)
        if still is not None and still.kind == found.kind:
            kept, found = fewer[: still.step], still
        else:
            start += size
    return kept, found
