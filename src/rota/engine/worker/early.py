"""EarlyRuns: where runs wait whose jobs were claimed a moment before their time, so that they begin on time."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.engine.executors.run import Run


class EarlyRuns:
    """Runs by the time that they may begin. Any thread may put one; the worker's own loop takes them out."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, Run]] = []
        self._numbers = count()  # of two with one time, the first to come begins first

    @property
    def next_at(self) -> int | None:
        """When the first of them may begin."""
        return self._waiting[0][0] if self._waiting else None

    def put(self, run: Run) -> None:
        heappush(self._waiting, (run.job.run_at, next(self._numbers), run))

    def released(self, now: int) -> list[Run]:
        """Those whose time has come, and that nobody has ended meanwhile."""
        runs = []
        while self._waiting and self._waiting[0][0] <= now:
            runs.append(heappop(self._waiting)[2])
        return [run for run in runs if not run.is_over]
