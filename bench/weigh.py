"""Drains part of a queue: `python -m bench.weigh URL NAMESPACE QUEUE COUNT` prints seconds and growth of a job."""

import itertools
import json
import os
import sys
import threading
import time
from pathlib import Path

from bench.wakeup import memory
from rota import App
from rota.model.micros import SECOND
from rota.store.contract import Retention

PATIENCE = 300
LONG = 400 * 86_400 * SECOND
KEEP_ALL = Retention(succeeded_for=LONG, failed_for=LONG, cancelled_for=LONG, most_finished=100_000_000)


def main(url: str, namespace: str, queue: str, count: str) -> dict[str, float]:
    # A worker's node prunes, too: the large system would delete its past during the drain.
    app, wanted = App(url, namespace=namespace, retention=KEEP_ALL), int(count)
    numbers, done = itertools.count(1), threading.Event()

    @app.task(name="noop")
    def noop() -> None:
        if next(numbers) == wanted:
            done.set()

    app.open()
    Path("/proc/self/clear_refs").write_text("5")  # the highest point is forgotten
    before, begun = memory("VmRSS"), time.perf_counter()
    app.start(scheduler=False, queues=[queue])
    if not done.wait(PATIENCE):
        raise TimeoutError(f"{count} jobs take longer than {PATIENCE} s")
    took = time.perf_counter() - begun
    grown = max(1, memory("VmHWM") - before)
    app.stop()
    return {"seconds": took / wanted, "growth": grown}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])), flush=True)
    os._exit(0)
