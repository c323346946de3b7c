"""The job of the suite `asrun`, and a producer: a process that enqueues for a worker that was started by its command.

Every contender's script makes a task of work() at its top and calls main(). The job has two arguments and a result.
Interpreters of other environments import this, so the standard library must do.
"""

import itertools
import json
import os
import random
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

URL = os.environ["BENCH_URL"]
COUNT = int(os.environ.get("BENCH_COUNT", "0"))  # jobs of a drain; 0: every job records when it ran
RECORD = struct.Struct("qq")  # nanoseconds: the monotonic clock, the CPU time of the process
RECORDS = "ran"
PATIENCE = 60.0

Enqueue = Callable[[int, str], object]
EnqueueMany = Callable[[int], object]

_numbers = itertools.count(1)


def work(number: int, word: str) -> str:
    """Note the first and the last job of a drain, or each of few."""
    if not COUNT or next(_numbers) in (1, COUNT):
        record()
    return f"{word} {number}"


def record() -> None:
    told = os.open(RECORDS, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(told, RECORD.pack(time.monotonic_ns(), time.process_time_ns()))
    os.close(told)


def main(enqueue: Enqueue, enqueue_many: EnqueueMany | None = None) -> None:
    scenario, count = sys.argv[1], int(sys.argv[2])
    if scenario == "fill":
        fill(enqueue, enqueue_many, count)
    else:
        print(json.dumps({"seconds": PRODUCERS[scenario](enqueue, count)}), flush=True)
    os._exit(0)  # some leave threads and loops behind that would not end, or not in silence


def fill(enqueue: Enqueue, enqueue_many: EnqueueMany | None, count: int) -> None:
    if enqueue_many is not None:
        enqueue_many(count)
        return
    for number in range(count):
        enqueue(number, "word")


def single(enqueue: Enqueue, count: int) -> float:
    """Seconds that one call takes, one after the other."""
    enqueue(0, "word")
    begun = time.perf_counter()
    for number in range(count):
        enqueue(number, "word")
    return (time.perf_counter() - begun) / count


def latency(enqueue: Enqueue, count: int) -> list[float]:
    """Seconds from each call to the first line of its job, in a worker that was idle."""
    return [one_latency(enqueue, place) for place in range(count)]


def one_latency(enqueue: Enqueue, place: int) -> float:
    time.sleep(random.uniform(0.01, 0.03))  # in no rhythm with the polling of any contender
    begun = time.monotonic_ns()
    enqueue(place, "word")
    deadline = time.monotonic() + PATIENCE
    while size_of(RECORDS) < (place + 1) * RECORD.size:
        if time.monotonic() > deadline:
            raise TimeoutError(f"job {place} did not run in {PATIENCE} s")
        time.sleep(0.002)
    at, _ = RECORD.unpack_from(Path(RECORDS).read_bytes(), place * RECORD.size)
    return float(at - begun) / 1e9


def size_of(file: str) -> int:
    return Path(file).stat().st_size if Path(file).exists() else 0


PRODUCERS = {"single": single, "latency": latency}
