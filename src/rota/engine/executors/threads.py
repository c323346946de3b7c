"""Threads: plain functions, each slot a thread that takes the next run from one shared line."""

from __future__ import annotations

import os

from rota.engine.executors.runner import run_here
from rota.engine.executors.slots import Slots


class ThreadExecutor(Slots):
    """Runs tasks in its slots' own threads."""

    thread_name = "rota-run"

    def _work(self) -> None:
        worker = os.getpid()
        while (run := self._queue.take()) is not None:
            if not run.is_over:
                self._begin(run)
                outcome = run_here(run)
                if os.getpid() != worker:
                    os._exit(0)  # a child that the task forked and let return here: the job is the parent's to end
                self._end()
                run.finish(outcome)
