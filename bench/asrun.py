"""Contenders as people run them: a worker by its own command, its log in a file, and a producer in another process."""

import json
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from subprocess import Popen

from bench.crews import inside, path_with, running
from bench.environments import SCRIPTS, environment, output, scratch

PATIENCE = 300.0
RECORD = struct.Struct("qq")  # nanoseconds: the monotonic clock, the CPU time of the worker process
RECORDS = Path("ran")
WARM_UP = 5  # first jobs of a latency trial, while the worker starts


@dataclass(frozen=True)
class Runner:
    """One contender: a script in peers/, and the words after the interpreter that start one worker process of it."""

    script: str
    words: tuple[str, ...]  # {url} is the store's
    note: str
    peer: str | None = None  # its environment; None: this very one
    share: float = 1.0  # of the jobs of a drain, for those that would take for ever

    def drain(self, url: str, count: int) -> dict[str, float]:
        """Seconds and CPU seconds of the worker per job, from its first job to its last; all jobs wait at first."""
        count = max(200, int(count * self.share))
        with self._on_the_spot(url, count) as settings:
            self._produce(settings, "fill", count)
            with running(self._command(url), settings) as worker:
                records = wait_for_records(2, worker)
        return pace_of(records, count)

    def single(self, url: str, count: int) -> dict[str, float]:
        """Seconds of one call that enqueues, while no worker runs."""
        with self._on_the_spot(url, 0) as settings:
            return {"seconds": json.loads(self._produce(settings, "single", count))["seconds"]}

    def latency(self, url: str, count: int) -> dict[str, float]:
        """Seconds from a call to the first line of its job, in a worker that was idle: the median."""
        with self._on_the_spot(url, 0) as settings:
            self._produce(settings, "fill", 0)  # makes tables, before two processes try to at once
            with running(self._command(url), settings):
                told = json.loads(self._produce(settings, "latency", count + WARM_UP))["seconds"]
        return {"seconds": median(told[WARM_UP:])}

    @contextmanager
    def _on_the_spot(self, url: str, count: int) -> Iterator[dict[str, str]]:
        """In a folder of its own; what the processes find in their environment."""
        with scratch() as folder, inside(folder):
            yield {"BENCH_URL": url, "BENCH_COUNT": str(count), "PYTHONPATH": path_with(SCRIPTS)}

    def _produce(self, settings: dict[str, str], scenario: str, count: int) -> str:
        return output([self._python, SCRIPTS / self.script, scenario, str(count)], settings)

    def _command(self, url: str) -> list[str | Path]:
        return [self._python, *(word.format(url=url) for word in self.words)]

    @property
    def _python(self) -> str | Path:
        return sys.executable if self.peer is None else environment(self.peer)


def wait_for_records(number: int, worker: Popen[bytes]) -> list[tuple[int, int]]:
    """What jobs have recorded in this folder, once there are so many."""
    deadline = time.monotonic() + PATIENCE
    while not RECORDS.exists() or os.path.getsize(RECORDS) < number * RECORD.size:  # noqa: PTH202 - no object per look
        if time.monotonic() > deadline:
            raise TimeoutError(f"the jobs take longer than {PATIENCE} s")
        if worker.poll() is not None:
            raise AssertionError(f"the worker has ended with code {worker.returncode}")
        time.sleep(0.02)
    return list(RECORD.iter_unpack(RECORDS.read_bytes()))


def pace_of(records: list[tuple[int, int]], count: int) -> dict[str, float]:
    """Per job: the first one began the clock, so it does not count."""
    (first, first_cpu), (last, last_cpu) = records
    return {"seconds": (last - first) / 1e9 / (count - 1), "cpu": (last_cpu - first_cpu) / 1e9 / (count - 1)}


Trial = Callable[[Runner, str, int], dict[str, float]]
SCENARIOS: dict[str, Trial] = {"drain": Runner.drain, "single": Runner.single, "latency": Runner.latency}

ROTA = Runner(script="asrun_rota.py", words=("-m", "rota", "worker", "asrun_rota:app"), note="all defaults")
QUIET = replace(ROTA, words=(*ROTA.words, "--log-level", "warning"), note="no line per job")
HUEY_REDIS = Runner(
    script="asrun_huey.py",
    words=("-m", "huey.bin.huey_consumer", "asrun_huey.huey", "-w", "2"),
    note="2 threads, 2 lines per job; at most once",
    peer="huey",
    share=0.5,
)
HUEY_SQLITE = replace(
    HUEY_REDIS,
    words=(*HUEY_REDIS.words, "-d", "0.005", "-m", "0.005", "-b", "1"),
    note="2 threads, polls every 5 ms, 2 lines per job; at most once",
    share=0.25,
)
DRAMATIQ = Runner(
    script="asrun_dramatiq.py",
    words=("-m", "dramatiq", "asrun_dramatiq", "-p", "1", "-t", "8"),
    note="8 threads, no line per job; at least once",
    peer="dramatiq",
    share=0.25,
)
TASKIQ = Runner(
    script="asrun_taskiq.py",
    words=("-m", "taskiq", "worker", "asrun_taskiq:broker", "-w", "1", "--max-async-tasks", "100"),
    note="100 at once, 1 line per job; at most once",
    peer="taskiq",
    share=0.25,
)
CELERY = Runner(
    script="asrun_celery.py",
    words=("-m", "celery", "-A", "asrun_celery", "worker", "-P", "solo"),
    note="solo pool, no line per job",
    peer="celery",
    share=0.1,
)
RQ = Runner(
    script="asrun_rq.py",
    words=("-m", "rq.cli", "worker", "-w", "rq.SimpleWorker", "-u", "{url}", "bench"),
    note="no fork per job, 4 lines per job",
    peer="rq",
    share=0.05,
)
PGQUEUER = Runner(
    script="asrun_pgqueuer.py",
    words=("-m", "pgqueuer", "run", "asrun_pgqueuer:make", "--batch-size", "100"),
    note="batches of 100, no line per job; at least once",
    peer="pgqueuer",
    share=0.5,
)
PROCRASTINATE = Runner(
    script="asrun_procrastinate.py",
    words=("-m", "procrastinate", "--app", "asrun_procrastinate.app", "worker", "-c", "10"),
    note="10 at once, 2 lines per job; at least once",
    peer="procrastinate",
    share=0.05,
)
