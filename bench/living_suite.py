"""Living with Rota: how soon `rota dev` is at work, what keeping logs costs, and what an idle worker weighs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median

from bench.environments import FILES, output, scratch
from bench.measure import Figure, again, alone, compare, race, turns, within, yardstick
from rota.store.contract import Store
from rota.store.sqlite import SqliteStore

START_LIMIT = 1.0  # seconds from the command to the scheduler's first look
CAPTURE_MUST = 0.95  # of the pace without capture
WORKER_LIMIT, PARENT_LIMIT = 60_000_000, 25_000_000  # bytes
PATIENCE = 30.0
REST = 2.0  # seconds after which a worker is idle
COUNT, COUNT_QUICK = 20_000, 5_000

STARTING = """
import os, time
from rota import App, every
from rota.store.sqlite import SqliteStore

class Told(SqliteStore):
    def due_schedules(self, limit, **more):
        with open("looked", "w") as pipe:
            pipe.write(str(time.monotonic()))
        return super().due_schedules(limit, **more)

app = App(Told(os.path.abspath("dev.db")))

@app.schedule(every("1h"))
def tick(): ...
"""
IDLE = """
from rota import App

app = App("sqlite:///idle.db")

@app.task
def work(): ...
"""


def facts() -> dict[str, str]:
    return {"files in": str(FILES)}


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    return [
        *start_figures(rounds),
        *capture_figures(rounds, COUNT_QUICK if quick else COUNT),
        *memory_figures(rounds),
        yardstick(rounds),
    ]


def start_figures(rounds: int) -> list[Figure]:
    """Each round in a folder of its own, so that each start makes its store."""
    starts, bare = list[float](), list[float]()
    for name in turns(["dev", "bare"], rounds):
        if name == "dev":
            starts.append(first_look())
        else:
            bare += race({"bare": again(partial(output, [sys.executable, "-c", "pass"]))}, 1, 0.2)["bare"]
    title = "rota dev, from the command to the scheduler's first look"
    note = "with a new SQLite file"
    return [
        within(title, median(starts), starts, START_LIMIT, "ms", note=note),
        alone("yardstick: python -c pass", bare, "ms"),
    ]


def first_look() -> float:
    with scratch() as folder:
        (Path(folder) / "jobs_here.py").write_text(STARTING)
        os.mkfifo(Path(folder) / "looked")
        begun = time.monotonic()
        with started(folder, "dev", "jobs_here.py"):
            return float((Path(folder) / "looked").read_text()) - begun


def capture_figures(rounds: int, count: int) -> list[Figure]:
    """No-op jobs from a file in memory, where a cost per job shows most; each trial in a process of its own."""
    print(f"capture: {count:,} jobs a trial ...", flush=True)
    times: dict[str, list[float]] = {"on": [], "off": []}
    for name in turns(times, 3 * rounds):  # short trials, so more of them
        times[name].append(float(output([sys.executable, "-m", "bench.captured", name, str(count)])))
    return [
        compare("drain that captures output vs one that does not", times["on"], times["off"], CAPTURE_MUST,
                note="nothing is printed; no-op jobs, a SQLite file in memory"),
    ]  # fmt: skip


def memory_figures(rounds: int) -> list[Figure]:
    weights = [idle_weights() for _ in range(rounds)]
    workers, parents = [worker for worker, _ in weights], [parent for _, parent in weights if parent]
    figures = [within("idle worker, resident", median(workers), workers, WORKER_LIMIT, "MB", note="one SQLite file")]
    if parents:
        figures.append(within("its parent, resident", median(parents), parents, PARENT_LIMIT, "MB"))
    return figures


def idle_weights() -> tuple[float, float | None]:
    """The bytes of a worker that has nothing to do, and of the process that watches it, where there is one."""
    with scratch() as folder:
        (Path(folder) / "jobs_here.py").write_text(IDLE)
        with started(folder, "worker", "jobs_here.py") as parent:
            store = SqliteStore(Path(folder) / "idle.db")
            worker = node_in(store)
            time.sleep(REST)
            return resident(worker), resident(parent) if parent != worker else None


def node_in(store: Store) -> int:
    """The process that has signed in."""
    deadline = time.monotonic() + PATIENCE
    store.open()
    try:
        while not (nodes := store.list_nodes()):
            if time.monotonic() > deadline:
                raise TimeoutError("no worker has signed in")
            time.sleep(0.05)
        return nodes[0].pid
    finally:
        store.close()


def resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


@contextmanager
def started(folder: str, *words: str) -> Iterator[int]:
    """A command in a folder, stopped at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rota", *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        process.kill()
        process.wait()
