"""Slots: threads that take runs from one shared line, as many as there is work for, up to a number."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.engine.run import Run


class Slots(ABC):
    """Each slot is a daemon thread, so that none delays an exit; what a slot does with a run is its executor's."""

    thread_name = "rota-slot"

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._line: SimpleQueue[Run | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._current: dict[int, Run] = {}  # what each slot runs, by its thread
        self._lock = threading.Lock()

    @abstractmethod
    def _work(self) -> None:
        """The life of a slot: take runs from the line until there is a None, and say _free() after each."""

    def submit(self, run: Run) -> None:
        with self._lock:
            if self._idle:
                self._idle -= 1
            elif len(self._threads) < self._slots:
                self._add_thread()
        self._line.put(run)

    @property
    def stuck(self) -> int:
        """Slots that still run what was given up already (a timeout, a lost lease)."""
        return sum(run.is_over for run in list(self._current.values()))

    def stop(self) -> None:
        for _ in self._threads:
            self._line.put(None)

    def _begin(self, run: Run) -> None:
        self._current[threading.get_ident()] = run

    def _end(self) -> None:
        """Said before the run is finished: this slot is free, not stuck."""
        del self._current[threading.get_ident()]

    def _free(self) -> None:
        with self._lock:
            self._idle += 1

    def _add_thread(self) -> None:
        name = f"{self.thread_name}-{len(self._threads)}"
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
