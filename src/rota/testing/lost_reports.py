"""Loses the reports of runs that have done their work, so that a test can prove that a second run does no harm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rota.engine.executors.run import Run


class LostReports(ABC):
    """A rule for the runs of one task. It applies until the kit ends, or within a `with` block."""

    def __init__(self, rules: list[LostReports], task: str) -> None:
        self._rules = rules
        self._task = task
        rules.append(self)

    def loses(self, run: Run) -> bool:
        """Whether the report of this run is lost."""
        return run.job.task == self._task and self._applies(run)

    @abstractmethod
    def _applies(self, run: Run) -> bool:
        """Whether the rule covers this run of its task."""

    def stop(self) -> None:
        """Lose no more reports."""
        if self in self._rules:
            self._rules.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


class DeliveredTwice(LostReports):
    """Every job's first report is lost."""

    def __init__(self, rules: list[LostReports], task: str) -> None:
        super().__init__(rules, task)
        self._ran: set[str] = set()

    def _applies(self, run: Run) -> bool:
        is_first = run.job.id not in self._ran
        self._ran.add(run.job.id)
        return is_first


class CrashedAfter(LostReports):
    """The first n runs' reports are lost."""

    def __init__(self, rules: list[LostReports], task: str, n: int) -> None:
        super().__init__(rules, task)
        self._left = n

    def _applies(self, run: Run) -> bool:
        del run
        self._left -= 1
        return self._left >= 0
