"""Drains no-op jobs with output captured or not: `python -m bench.captured on|off COUNT` prints the seconds of a job.

Its file is in memory where the system has room there: a disk's noise would hide what is measured.
"""

import itertools
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from rota import App
from rota.engine.executors.capture import Capture

PATIENCE = 120
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder is made in it


def main(name: str, count: int) -> float:
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        return drain(name, count, f"sqlite:///{folder}/rota.db")


def drain(name: str, count: int, url: str) -> float:
    if name == "off":
        Capture.begin = Capture.end = lambda _capture: None  # type: ignore[method-assign]
    app, numbers, done = App(url), itertools.count(1), threading.Event()

    @app.task(name="noop")
    def noop() -> None:
        if next(numbers) == count:
            done.set()

    app.enqueue_many([noop.job() for _ in range(count)])
    plain = sys.stdout
    begun = time.perf_counter()
    node = app.start(scheduler=False)
    if (sys.stdout is plain) is (name == "on"):
        raise AssertionError(f"output is captured: {sys.stdout is not plain}; wanted: {name}")
    if not done.wait(PATIENCE) or node.worker is None or not node.worker.is_idle.wait(PATIENCE):
        raise TimeoutError(f"{count} jobs take longer than {PATIENCE} s")
    took = (time.perf_counter() - begun) / count
    app.close()
    return took


if __name__ == "__main__":
    print(main(sys.argv[1], int(sys.argv[2])))
