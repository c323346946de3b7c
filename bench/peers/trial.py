"""What every contender is asked to do, each time in a process of its own and on a fresh file or server.

A contender's script calls main() with its class and prints, as JSON, the seconds (and CPU seconds) that a step took.
Interpreters of other environments import this, so the standard library must do.
"""

import itertools
import json
import os
import random
import signal
import struct
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

PATIENCE = 600  # seconds for one trial
TOLD_ENQUEUES = 20

# What a suite may ask for beyond jobs that do nothing.
AT_ONCE = int(os.environ.get("BENCH_AT_ONCE", "0"))  # jobs at a time; 0: what suits the contender best
THREAD_PAUSE = float(os.environ.get("BENCH_THREAD_PAUSE", "0"))  # seconds that a job sleeps in its thread
COROUTINE_PAUSE = float(os.environ.get("BENCH_COROUTINE_PAUSE", "0"))  # seconds that a coroutine awaits

Ran = Callable[[], object]  # what a job does: it says that it ran
Make = Callable[..., "Contender"]  # given what jobs do, and the options that the suite gave


class Contender(ABC):
    """A line of jobs in the current folder, and a worker for it."""

    @abstractmethod
    def enqueue(self) -> None:
        """Add one job."""

    @abstractmethod
    def enqueue_many(self, count: int) -> None:
        """Add many jobs, the fastest way there is."""

    @abstractmethod
    def work(self) -> None:
        """Start one worker in threads of this process."""

    @abstractmethod
    def settle(self) -> None:
        """All jobs have run: wait until that is written down."""

    @abstractmethod
    def left(self) -> int:
        """How many jobs are not known to be done."""

    @abstractmethod
    def close(self) -> None: ...

    def fill(self, count: int) -> None:
        """Add many jobs, untimed."""
        self.enqueue_many(count)


def main(make: Make) -> None:
    scenario, folder, count, *options = sys.argv[1:]
    os.chdir(folder)
    print(json.dumps(SCENARIOS[scenario](lambda ran: make(ran, *options), int(count))), flush=True)
    os._exit(0)  # some leave threads and loops behind that would not end, or not in silence


def drain(make: Make, count: int) -> dict[str, float]:
    """From a worker's start to the last job's end, with all jobs waiting at first."""
    filler = make(nothing)
    filler.fill(count)
    filler.close()
    numbers, done = itertools.count(1), threading.Event()
    contender = make(paused(lambda: next(numbers) == count and done.set()))
    begun, cpu = time.perf_counter(), time.process_time()
    contender.work()
    if not done.wait(PATIENCE):
        raise TimeoutError(f"{contender.left()} of {count} jobs are left after {PATIENCE} s")
    contender.settle()
    result = {"seconds": (time.perf_counter() - begun) / count, "cpu": (time.process_time() - cpu) / count}
    if left := contender.left():
        raise AssertionError(f"{left} of {count} jobs ran, but are not done")
    contender.close()
    return result


def paused(ran: Ran) -> Ran:
    """A job that first sleeps, if that is asked for."""
    if not THREAD_PAUSE:
        return ran

    def sleep_and_say() -> None:
        time.sleep(THREAD_PAUSE)
        ran()

    return sleep_and_say


def single(make: Make, count: int) -> dict[str, float]:
    """One job after the other."""
    contender = make(nothing)
    contender.enqueue()
    begun = time.perf_counter()
    for _ in range(count):
        contender.enqueue()
    return {"seconds": (time.perf_counter() - begun) / count}


def bulk(make: Make, count: int) -> dict[str, float]:
    """Many jobs at once."""
    contender = make(nothing)
    contender.enqueue()
    begun = time.perf_counter()
    contender.enqueue_many(count)
    return {"seconds": (time.perf_counter() - begun) / count}


def latency(make: Make, count: int) -> dict[str, float]:
    """From one process's call to the job's first line in another, which was idle: the median."""
    make(nothing).close()  # makes the file
    reader, writer = os.pipe()
    worker = os.fork()
    if worker == 0:
        make(lambda: os.write(writer, struct.pack("q", time.monotonic_ns()))).work()
        signal.pause()
    os.close(writer)  # so that a worker which dies ends the reading
    contender = make(nothing)
    try:
        samples = [_one_latency(contender, reader) for _ in range(count + 5)]
    finally:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
    return {"seconds": median(samples[5:])}


def _one_latency(contender: Contender, reader: int) -> float:
    time.sleep(random.uniform(0.01, 0.03))  # in no rhythm with anyone's polling
    begun = time.monotonic_ns()
    contender.enqueue()
    (ran,) = struct.unpack("q", os.read(reader, 8))
    return float(ran - begun) / 1e9


def trips(make: Make, count: int) -> dict[str, float]:
    """Says when which part begins and ends, and waits for leave: another process counts the trips."""
    filler = make(nothing)
    filler.enqueue()
    with _told("enqueue"):
        for _ in range(TOLD_ENQUEUES):
            filler.enqueue()
    filler.fill(count - TOLD_ENQUEUES - 1)
    numbers, done = itertools.count(1), threading.Event()
    contender = make(lambda: next(numbers) == count and done.set())
    with _told("drain"):
        contender.work()
        if not done.wait(PATIENCE):
            raise TimeoutError(f"{contender.left()} of {count} jobs are left after {PATIENCE} s")
    return {"enqueue": TOLD_ENQUEUES, "drain": count}


@contextmanager
def _told(part: str) -> Iterator[None]:
    _tell(part)
    yield
    _tell(part)


def _tell(part: str) -> None:
    print(part, flush=True)
    sys.stdin.readline()


def nothing() -> None:
    """What a job does where nobody waits for it."""


SCENARIOS = {"drain": drain, "single": single, "bulk": bulk, "latency": latency, "trips": trips}
