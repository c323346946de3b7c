"""Quarantine: a job whose next death parks it runs alone, so that the death is its own and its neighbours are unharmed.

Every job that a dying worker held is charged with the death, because nobody can tell which of them caused it. After two
deaths a job is under suspicion: its worker lets the others end, claims nothing meanwhile, and runs it by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.retry import MAX_DEATHS

if TYPE_CHECKING:
    from rota.engine.executors.run import Run
    from rota.model.job import Job

FEW_DEATHS = MAX_DEATHS - 1  # the next one is one too many


class Quarantine:
    """At most one suspect per worker."""

    def __init__(self) -> None:
        self._suspect: Run | None = None
        self._has_begun = False
        self.is_careful = False  # the last claim brought a suspect: take one job at a time

    def look_at(self, jobs: list[Job]) -> None:
        """Hear what a claim brought."""
        if jobs:
            self.is_careful = max(job.deaths for job in jobs) >= FEW_DEATHS

    def limit(self, want: int) -> int:
        """How many jobs may be claimed beside what is here."""
        if self._suspect is not None:
            return 0
        return min(want, 1) if self.is_careful else want

    def takes(self, run: Run) -> bool:
        """Keep a suspect until it is alone; False where there is one already."""
        if self._suspect is not None:
            return False
        self._suspect, self._has_begun = run, False
        return True

    def release(self, held: int) -> Run | None:
        """The suspect, once, when it is the only run that is left."""
        if self._suspect is None or self._has_begun or self._suspect.is_over or held > 1:
            return None
        self._has_begun = True
        return self._suspect

    def release_suspect(self, run: Run) -> None:
        if run is self._suspect:
            self._suspect = None


def is_suspect(job: Job) -> bool:
    return job.deaths >= FEW_DEATHS
