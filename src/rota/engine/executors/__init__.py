"""Executors: where tasks run. A worker has one of each kind that its jobs ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rota.engine.executors.run import Run


class Executor(Protocol):
    """Takes runs, and calls their finish() when they have ended."""

    @property
    def stuck(self) -> int:
        """Slots that do not come back: they run what was given up already (a timeout, a lost lease), or stand still."""

    def submit(self, *runs: Run) -> None: ...

    def stop(self) -> None: ...
