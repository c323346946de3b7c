"""LogKeeper: brings what running jobs have written to the store, twice a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.engine.service import Service
from rota.store.contract import LARGEST_BATCH, LogLine

if TYPE_CHECKING:
    from rota.engine.events import Events
    from rota.engine.run import Run
    from rota.engine.store_clock import StoreClock
    from rota.engine.worker import Worker
    from rota.store.contract import Store

PAUSE = 0.5  # seconds of log that a killed worker may lose


class LogKeeper(Service):
    """Lines of one job keep their order: they leave its log in order, and one thread takes them."""

    name = "log keeper"

    def __init__(self, store: Store, worker: Worker, events: Events, clock: StoreClock) -> None:
        super().__init__(events, clock)
        self._store = store
        self._worker = worker

    def turn(self) -> float:
        for run in list(self._worker.runs.values()):
            if not run.is_over:
                keep_lines(self._store, run)
        return PAUSE


def keep_lines(store: Store, run: Run, *, is_over: bool = False) -> None:
    """Write a run's lines; where the store cannot take them now, they stay for the next try."""
    if run.log is None:
        return
    with run.log.flushing:  # whoever ends the run waits for lines that are on their way
        taken = run.log.take(is_over=is_over)
        lines = [LogLine(job_id=run.job.id, at=at, level=level, text=text) for at, level, text in taken]
        for start in range(0, len(lines), LARGEST_BATCH):
            try:
                store.append_logs(lines[start : start + LARGEST_BATCH])
            except BaseException:
                run.log.put_back(taken[start:])
                raise
        run.log.kept()
