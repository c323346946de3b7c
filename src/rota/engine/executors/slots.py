"""Slots: threads that take runs from one shared line, as many as there is work for, up to a number."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rota.engine.executors.run_queue import RunQueue

if TYPE_CHECKING:
    from rota.engine.executors.run import Run


class Slots(ABC):
    """Each slot is a daemon thread, so that none delays an exit; what a slot does with a run is its executor's."""

    thread_name = "rota-slot"

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._queue = RunQueue(self._add_thread)
        self._threads: list[threading.Thread] = []
        self._current: dict[int, Run] = {}  # what each slot runs, by its thread

    @abstractmethod
    def _work(self) -> None:
        """The life of a slot: take runs from the line until it is closed."""

    def submit(self, *runs: Run) -> None:
        self._queue.put(*runs)

    @property
    def stuck(self) -> int:
        """Slots that still run what was given up already (a timeout, a lost lease)."""
        return sum(run.is_over for run in list(self._current.values()))

    def stop(self) -> None:
        self._queue.close()

    def _begin(self, run: Run) -> None:
        self._current[threading.get_ident()] = run

    def _end(self) -> None:
        """Called before the run is finished: this slot is free, not stuck."""
        del self._current[threading.get_ident()]

    def _add_thread(self) -> bool:
        if len(self._threads) >= self._slots:
            return False
        name = f"{self.thread_name}-{len(self._threads)}"
        thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return True

    def _live(self) -> None:
        self._queue.join()
        self._work()
