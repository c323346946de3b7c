"""Processes that a test starts, watches and kills; and the ground on which they work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forked_python import ForkedPython
from freezing import freeze
from killable_app import LEASE, NAMESPACE, PATIENCE, STORE, build, note

from rota.app import internals
from rota.inspector.reading import all_schedules
from rota.model.jobs.job import FINAL, State
from rota.store.contract import JobFilter
from rota.testing.simulation.history import all_jobs

if TYPE_CHECKING:
    from collections.abc import Callable

    from every_store import Place
    from rota.store.contract import Store

HANG_LIMIT = 120.0  # seconds; only what is broken waits this long
HERE = Path(__file__).parent
LIVE = tuple(state for state in State if state not in FINAL)


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Look again and again until something is true; less often where it takes long, for a look takes CPU."""
    began = time.monotonic()
    pause = threading.Event()
    while not condition():
        waited = time.monotonic() - began
        assert waited < HANG_LIMIT, f"waited {HANG_LIMIT:g} s for {what}"
        pause.wait(min(0.01 + waited / 10, 0.1))


def children_of(pid: int) -> list[int]:
    """The processes that it has started and that are still there."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def fresh_python(words: list[str], *, cwd: Path, env: dict[str, str]) -> subprocess.Popen[str]:
    """A process that imports everything by itself, for tests of how a command starts, what it starts, and its size."""
    return subprocess.Popen(
        [sys.executable, *words], cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


class Child:
    """A process of our own, with its lines collected as they come."""

    def __init__(
        self,
        words: list[str],
        folder: Path,
        lease: str,
        settings: dict[str, str] | None = None,
        *,
        start: Callable[..., ForkedPython | subprocess.Popen[str]] = ForkedPython,
    ) -> None:
        self._process = start(words, cwd=folder, env={**os.environ, LEASE: lease, **(settings or {})})
        self.pid = self._process.pid
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def is_stopped(self) -> bool:
        return "State:\tT" in Path(f"/proc/{self.pid}/status").read_text()

    def has_said(self, *texts: str) -> bool:
        return any(text in line for line in list(self.lines) for text in texts)

    def wait_for(self, *texts: str) -> None:
        """Wait for a line with one of these texts."""
        wait_until(lambda: self.has_said(*texts) or not self.is_alive, f"{texts} from process {self.pid}")
        self._reader.join(0 if self.is_alive else HANG_LIMIT)
        assert self.has_said(*texts), f"it ended without {texts}:\n{self.output}"

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self) -> int:
        """Wait for its end: the exit code, or minus the signal that killed it."""
        try:
            code = self._process.wait(HANG_LIMIT)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGUSR1)  # it tells where its threads are
            wait_until(lambda: self.has_said("most recent call first"), "its traceback")
            raise AssertionError(f"process {self.pid} does not end:\n{self.output}") from None
        self._reader.join(HANG_LIMIT)
        return code

    def close(self) -> None:
        """With its own children: they keep its output open."""
        children = children_of(self.pid)
        self._process.kill()
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def _read(self) -> None:
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))


class Ground:
    """One folder, one store, and the processes that share them."""

    def __init__(
        self,
        folder: Path,
        place: Place,
        lease: str = "1s",
        *,
        seen_at: str | None = None,
        patience: float | None = None,
    ) -> None:
        self.folder = folder
        self.place = place
        self.lease = lease
        self.seen_at = seen_at or place.url  # where the processes look for the store: perhaps behind a proxy
        self._settings = {STORE: self.seen_at, NAMESPACE: place.namespace}
        if patience is not None:
            self._settings[PATIENCE] = str(patience)
        self.app = build(folder, lease, place.url, place.namespace)
        self.store: Store = self.app.open()
        self.children: list[Child] = []

    # Processes.

    def start(self, role: str, **options: object) -> Child:
        """A process with a role of killed_child.py: start("worker", die_at="run.before")."""
        words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        return self._start([str(HERE / "killed_child.py"), role, *words])

    def start_rota(self, *words: str) -> Child:
        """`python -m rota …`, with {app} standing for the app's file."""
        words = ("-m", "rota", *(word.format(app=HERE / "killable_app.py") for word in words))
        return self._start(list(words), start=fresh_python)

    def finish(self) -> None:
        """A fresh process does whatever is left, and stops when told to."""
        last = self.start("node", concurrency=8)
        last.wait_for("node.started")
        wait_until(lambda: self.is_done() or not last.is_alive, "the end of all work")
        last.signal(signal.SIGTERM)
        assert last.end() == 0, last.output

    def finish_here(self) -> None:
        """Do whatever is left in this process: a node like any other, and sooner there than a fresh one."""
        with self.app.running(concurrency=8):
            wait_until(self.is_done, "the end of all work")

    def freeze(self, child: Child) -> None:
        freeze(child.pid, self.store.path if self.place.kind == "sqlite" else None)

    def close(self) -> None:
        for child in self.children:
            child.close()
        self.app.close()

    def _start(self, words: list[str], **options: Any) -> Child:
        child = Child(words, self.folder, self.lease, self._settings, **options)
        self.children.append(child)
        return child

    # Work.

    def enqueue(self, task: str, *args: object, count: int = 1, **options: object) -> list[str]:
        requests = [internals(self.app).registry.find(task).using(**options).job(*args) for _ in range(count)]
        ids = [job.id for job in self.app.enqueue_many(requests)]
        for job_id in ids:
            note(self.folder, "accepted", job_id)
        return ids

    def job(self, job_id: str):
        (found,) = self.store.get_jobs([job_id])
        return found

    def states(self, ids: list[str]) -> list[str]:
        return [job.state.value for job in self.store.get_jobs(ids)]

    def count(self, *states: str) -> int:
        return sum(job.state in states for job in all_jobs(self.store))

    def is_done(self) -> bool:
        """Whether every job has ended and no schedule will make another. (By its jobs: counters may be behind.)"""
        is_quiet = all(schedule.due_at is None for schedule in all_schedules(self.store))
        return is_quiet and not self.store.list_jobs(JobFilter(states=LIVE), limit=1).items

    # What was written down.

    def noted(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def runs(self) -> list[tuple[str, int]]:
        """Every execution that began: the job and the number of its lease."""
        return [(job_id, int(lease_no)) for job_id, lease_no in map(str.split, self.noted("ran"))]

    def runs_of(self, job_id: str) -> list[int]:
        return [lease_no for of, lease_no in self.runs() if of == job_id]

    def open_gate(self, name: str = "gate") -> None:
        (self.folder / name).touch()
