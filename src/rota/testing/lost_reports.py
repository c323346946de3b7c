"""Lost reports: runs that do their work and die before they can say so, to prove that doing it twice harms nobody."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rota.engine.executors.run import Run


class LostReports(ABC):
    """A rule about one task's runs. It holds until the kit ends, or for the length of a `with` block."""

    def __init__(self, rules: list[LostReports], task: str) -> None:
        self._rules = rules
        self._task = task
        rules.append(self)

    def loses(self, run: Run) -> bool:
        """Whether this run's report never arrives."""
        return run.job.task == self._task and self._applies(run)

    @abstractmethod
    def _applies(self, run: Run) -> bool:
        """Whether the rule covers this run of its task."""

    def stop(self) -> None:
        """Let reports arrive again."""
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
