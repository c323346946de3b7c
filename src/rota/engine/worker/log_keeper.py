"""Writes the log lines and progress of running jobs to the store, four times a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.engine.service import Service
from rota.store.contract import LARGEST_BATCH, LogLine

if TYPE_CHECKING:
    from rota.engine.events import Events
    from rota.engine.executors.run import Run
    from rota.engine.store_clock import StoreClock
    from rota.engine.worker.capacity import HeldRuns
    from rota.store.contract import Store

PAUSE = 0.25  # seconds of log that a killed worker may lose; nothing is written while no job prints


class LogKeeper(Service):
    """The lines of one job stay in order: one thread takes them from its log, in order."""

    name = "log keeper"

    def __init__(self, store: Store, runs: HeldRuns, events: Events, clock: StoreClock, *, holder: str) -> None:
        super().__init__(events, clock)
        self._store = store
        self._runs = runs
        self._holder = holder

    def turn(self) -> float:
        runs = [run for run in list(self._runs.values()) if not run.is_over]
        for run in runs:
            flush_lines(self._store, run)
        flush_progress(self._store, self._holder, runs)
        return PAUSE


def flush_progress(store: Store, holder: str, runs: list[Run]) -> None:
    """Write the progress of runs that have reported some since the last call."""
    notes = []
    for run in runs:
        text, run.progress = run.progress, None
        if text is not None:
            notes.append((run.job.id, run.job.lease_no, text))
    if notes:
        store.record_progress(holder, notes)


def flush_lines(store: Store, run: Run, *, is_over: bool = False) -> None:
    """Write a run's lines. If the store cannot take them now, they stay for the next call."""
    if run.log is None:
        return
    with run.log.flushing:  # the thread that ends the run waits for lines in transit
        taken = run.log.take(is_over=is_over)
        lines = [LogLine(job_id=run.job.id, at=at, level=level, text=text) for at, level, text in taken]
        for start in range(0, len(lines), LARGEST_BATCH):
            try:
                store.append_logs(lines[start : start + LARGEST_BATCH])
            except BaseException:
                run.log.put_back(taken[start:])
                raise
        run.log.kept()
