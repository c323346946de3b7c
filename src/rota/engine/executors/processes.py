"""Runs plain functions in child processes: each slot is a thread with one child, which is reused and replaced in time.

A child may hold its interpreter, leak, crash or hang: the worker's threads continue, and kill the child if needed.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from msgspec import Struct

from rota.engine.executors.attempt import Attempt
from rota.engine.executors.child_process import ChildProcess
from rota.engine.executors.run import describe
from rota.engine.executors.threads import Slots
from rota.model.jobs.outcome import Died, Failed

if TYPE_CHECKING:
    from rota.engine.executors.run import Run

log = logging.getLogger("rota.worker")

CHECK = 5.0  # seconds between two checks of an idle child
STOP_FOR = 3.0  # seconds that stop() waits for children to end


class Recycling(Struct, frozen=True, kw_only=True):
    """When a child is replaced: after so many jobs, at an age, or when it has grown."""

    jobs: int = 1_000
    age: float = 3_600.0
    memory: int = 512 * 1024**2

    def is_due(self, child: ChildProcess) -> bool:
        if child.jobs >= self.jobs or time.monotonic() >= child.started_at + self.age:
            return True
        return child.measure_memory() > self.memory


class ProcessExecutor(Slots["Run"]):
    """Starts as many children as there is work for, up to its slots; a stuck one is about to be killed."""

    thread_name = "rota-process"

    def __init__(self, slots: int, recycling: Recycling | None = None) -> None:
        super().__init__(slots)
        self._recycling = recycling or Recycling()
        self._stopping = threading.Event()

    def submit(self, *runs: Run) -> None:
        for run in runs:
            run.is_watched = True
        super().submit(*runs)

    def stop(self) -> None:
        """Kill running children, end idle ones, and wait until all have been reaped."""
        self._stopping.set()
        super().stop()
        until = time.monotonic() + STOP_FOR
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _work(self) -> None:
        child: ChildProcess | None = None
        while not self._stopping.is_set():
            run = self._queue.take(CHECK)
            if run is None:
                child = self._kept(child)
            elif not run.is_over:
                child = self._do(run, child)
        if child is not None:
            child.end()

    def _do(self, run: Run, child: ChildProcess | None) -> ChildProcess | None:
        """Run a job in this child or a new one; return the child to keep."""
        self._begin(run)
        try:
            child = self._fit(run, child)
            outcome = Attempt(run, child, self._stopping.is_set).outcome()
        except Exception as err:
            log.exception("job %s could not be run in a process", run.job.id)
            outcome = Failed(f"no process could run it: {describe(err)}")
            if child is not None:
                child.kill()
        if isinstance(outcome, Died):
            log.warning("job %s (%s): %s", run.job.id, run.job.task, outcome.reason)
        self._end()
        run.finish(outcome)
        return self._kept(child)

    def _fit(self, run: Run, child: ChildProcess | None) -> ChildProcess:
        """A living child in which this job can use at least half of its memory limit."""
        cap = run.task.options.memory if run.task is not None else None
        if child is not None and (
            child.exit_code is not None or (cap is not None and child.measure_memory() > cap / 2)
        ):
            child.end()
            child = None
        return child or ChildProcess()

    def _kept(self, child: ChildProcess | None) -> ChildProcess | None:
        if child is None:
            return None
        if child.exit_code is not None or child.is_disconnected or self._recycling.is_due(child):
            child.end()
            return None
        return child
