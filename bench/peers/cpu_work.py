"""Jobs for worker processes: each burns so much CPU, then says who it ran in and when, on a line of a file.

Every contender's script makes a task of work() at its top and calls main() with what enqueues so many. The standard
library must do, as interpreters of other environments import this.
"""

import os
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

URL = os.environ["BENCH_URL"]
BURN = float(os.environ["BENCH_BURN"])  # CPU seconds of a job; 0: a no-op
_told = os.open("ran", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
_open = threading.Event()


def work() -> None:
    if not _open.is_set():
        wait_for_leave()
    until = time.thread_time() + BURN
    while BURN and time.thread_time() < until:
        pass
    os.write(_told, struct.pack("qq", os.getpid(), time.monotonic_ns()))


def wait_for_leave() -> None:
    """The first jobs of each process wait until all processes have some, so that they begin together."""
    Path(f"ready-{os.getpid()}").touch()
    while not Path("go").exists():
        time.sleep(0.001)
    _open.set()


def main(enqueue: Callable[[int], object]) -> None:
    enqueue(int(sys.argv[1]))
