"""Holds the logs of the memory store: the lines of each job, numbered within the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.store.contract import LogLine


class Logs:
    """Lines per job."""

    def __init__(self) -> None:
        self._lines: dict[str, list[LogLine]] = {}

    def of(self, job_id: str) -> list[LogLine]:
        return self._lines.get(job_id, [])

    def append(self, line: LogLine) -> None:
        self.load(msgspec.structs.replace(line, number=self._last(line.job_id) + 1))

    def load(self, line: LogLine) -> bool:
        """Keep a line that has its number; False if that is there already."""
        if line.number <= self._last(line.job_id):
            return False
        self._lines.setdefault(line.job_id, []).append(line)
        return True

    def forget(self, job_id: str) -> None:
        self._lines.pop(job_id, None)

    def __iter__(self) -> Iterator[LogLine]:
        """All of them, job by job."""
        for job_id in sorted(self._lines):
            yield from self._lines[job_id]

    def _last(self, job_id: str) -> int:
        lines = self.of(job_id)
        return lines[-1].number if lines else 0
