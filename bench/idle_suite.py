"""What a worker, and `rota run`, cost that have nothing to do, on each store: memory, CPU, wake-ups, queries."""

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.contention_suite import PLACES, Count
from bench.environments import FILES, scratch
from bench.measure import Figure, alone, within, yardstick
from bench.processes import cpu_of, node_in, resident, started, wakeups_of
from rota.store.urls import store_from_url

WORKER_LIMIT, PARENT_LIMIT = 60_000_000, 25_000_000  # bytes
CPU_LIMIT = 0.01  # of a core
REST = 3.0  # seconds after which a worker is idle
WATCH, WATCH_QUICK = 20.0, 5.0  # seconds that its share of a core is taken from
QUERIES = {"commands", "transactions", "requests"}

APP = """
from rota import App

app = App()

@app.task
def work(): ...
"""


@dataclass(frozen=True)
class Idle:
    """One idle worker: bytes; CPU seconds, wake-ups of its threads and its parent, and queries, each per second."""

    worker: float
    parent: float
    cpu: float
    wakeups: float
    queries: float | None  # as the server counts them: commands, transactions or requests; None: there is no server


def facts() -> dict[str, str]:
    return {"command": "rota worker and rota run, one process under its parent", "files in": str(FILES)}


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    figures: list[Figure] = []
    for kind, serving in PLACES.items():
        print(f"idle on {kind} ...", flush=True)
        with serving() as (url, count):
            for command in ("worker", "run"):
                seen = [watched(url, count, command, WATCH_QUICK if quick else WATCH) for _ in range(rounds)]
                figures += figures_of(f"{kind}: idle {command}", seen)
    return [*figures, yardstick(rounds)]


def figures_of(name: str, seen: list[Idle]) -> list[Figure]:
    worker, parent, cpu = ([getattr(idle, field) for idle in seen] for field in ("worker", "parent", "cpu"))
    queries = [idle.queries for idle in seen if idle.queries is not None]
    return [
        within(f"{name}, resident", median(worker), worker, WORKER_LIMIT, "MB"),
        within(f"{name}, its parent, resident", median(parent), parent, PARENT_LIMIT, "MB"),
        within(f"{name}, both, share of a core", median(cpu), cpu, CPU_LIMIT, "%"),
        alone(f"{name}, both, wake-ups", [idle.wakeups for idle in seen], "a second"),
        *([alone(f"{name}, queries", queries, "a second")] if queries else []),
    ]


def watched(url: str, count: Count, command: str, seconds: float) -> Idle:
    with scratch() as folder:
        (Path(folder) / "jobs_here.py").write_text(APP)
        with started(folder, command, "jobs_here.py", "--store", url) as parent:
            worker = node_in(store_from_url(url))
            time.sleep(REST)
            asked = queries_in(count)
            begun, cpu, woken = time.monotonic(), cpu_of([worker, parent]), wakeups_of([worker, parent])
            time.sleep(seconds)
            passed = time.monotonic() - begun
            cpu, woken = cpu_of([worker, parent]) - cpu, wakeups_of([worker, parent]) - woken
            last = queries_in(count)
            queries = None if last is None or asked is None else (last - asked) / (time.monotonic() - begun)
            return Idle(resident(worker), resident(parent), cpu / passed, woken / passed, queries)


def queries_in(count: Count) -> float | None:
    """What the server was asked so far, with the few questions of this count."""
    return next((number for name, number in count().items() if name in QUERIES), None)
