"""Threads: plain functions, each slot a thread that takes the next run from one shared line."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

from rota.engine.runner import run_here

if TYPE_CHECKING:
    from rota.engine.run import Run


class ThreadExecutor:
    """Grows to as many threads as there is work for, up to its slots; they are daemons, so none delays an exit."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._line: SimpleQueue[Run | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._current: dict[int, Run] = {}
        self._lock = threading.Lock()

    def submit(self, run: Run) -> None:
        with self._lock:
            if self._idle:
                self._idle -= 1
            elif len(self._threads) < self._slots:
                self._add_thread()
        self._line.put(run)

    @property
    def stuck(self) -> int:
        """Threads that still run what was given up already (a timeout, a lost lease)."""
        return sum(run.is_over for run in list(self._current.values()))

    def stop(self) -> None:
        for _ in self._threads:
            self._line.put(None)

    def _add_thread(self) -> None:
        thread = threading.Thread(target=self._work, name=f"rota-run-{len(self._threads)}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (run := self._line.get()) is not None:
            if not run.is_over:
                self._current[threading.get_ident()] = run
                outcome = run_here(run)
                del self._current[threading.get_ident()]  # before it is told: this thread is free, not stuck
                run.finish(outcome)
            with self._lock:
                self._idle += 1
