"""Runs tasks on threads, on an event loop or in child processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rota.engine.executors.run import Run


class Executor(Protocol):
    """Runs jobs, and calls finish() of each run when it has ended."""

    @property
    def stuck(self) -> int:
        """Slots that are lost: they still run an abandoned job (a timeout, a lost lease), or are blocked."""

    def submit(self, *runs: Run) -> None: ...

    def stop(self) -> None: ...
