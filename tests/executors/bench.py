"""A bench for the process executor: runs as a worker makes them, and what they came to."""

from __future__ import annotations

import threading
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amounts import PATIENCE
from executors import deeds
from rota.app import internals
from rota.clock import utc_micros
from rota.engine.executors.processes import ProcessExecutor
from rota.engine.executors.run import Host, Run
from rota.model.jobs.job import NewJob, accept
from rota.model.jobs.settle import claim

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.jobs.outcome import Outcome
    from rota.tasks.task import Registry, Request

_numbers = count(1)


class Doing:
    """A run on its way."""

    def __init__(self, request: Request, registry: Registry, **fields: Any) -> None:
        self._ended = threading.Event()
        self._outcome: Outcome | None = None
        new = NewJob(id=f"job-{next(_numbers)}", task=request.task, payload=request.payload, **fields)
        job = claim(accept(new, utc_micros(), 1), "worker-1", utc_micros(), utc_micros())
        self.run = Run(job, Host(self._end))
        assert self.run.prepare(registry) is None

    def outcome(self) -> Any:
        assert self._ended.wait(PATIENCE), "the run never ended"
        return self._outcome

    def lines(self) -> list[tuple[str, str]]:
        self.outcome()
        taken = self.run.log.take(is_over=True) if self.run.log else []
        return [(level, text) for _, level, text in taken]

    def _end(self, _run: Run, outcome: Outcome) -> None:
        self._outcome = outcome
        self._ended.set()


class Bench:
    """An executor and the tasks of one app."""

    def __init__(self, slots: int = 2, registry: Registry | None = None, **options: Any) -> None:
        self.executor = ProcessExecutor(slots, **options)
        self._registry = internals(deeds.app).registry if registry is None else registry

    def begin(self, request: Request, **fields: Any) -> Doing:
        doing = Doing(request, self._registry, **fields)
        self.executor.submit(doing.run)
        return doing

    def do(self, request: Request, **fields: Any) -> Any:
        return self.begin(request, **fields).outcome()

    def result(self, request: Request) -> bytes:
        return self.do(request).result

    def stop(self) -> None:
        self.executor.stop()


def until(is_true: Callable[[], object]) -> None:
    """Wait for a fact of another process, which can signal nothing here."""
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < deadline, "that never came true"
        time.sleep(0.005)


def pid_in(path: Path) -> int:
    """The pid that a task left as its word that it is on."""
    until(path.exists)
    return int(path.read_text())


def is_alive(pid: int) -> bool:
    """Whether there is such a process, and not just its zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def exists(pid: int) -> bool:
    """Whether the process table has it, a zombie included."""
    return Path(f"/proc/{pid}").exists()
