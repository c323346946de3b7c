"""What a worker costs that has nothing to do, on each store: its memory, its parent's, and its share of a core."""

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.environments import FILES, scratch
from bench.measure import Figure, within, yardstick
from bench.processes import cpu_of, node_in, resident, started
from bench.stores import STORES
from rota.store.urls import store_from_url

WORKER_LIMIT, PARENT_LIMIT = 60_000_000, 25_000_000  # bytes
CPU_LIMIT = 0.01  # of a core
REST = 3.0  # seconds after which a worker is idle
WATCH, WATCH_QUICK = 20.0, 5.0  # seconds that its share of a core is taken from

APP = """
from rota import App

app = App()

@app.task
def work(): ...
"""


@dataclass(frozen=True)
class Idle:
    """One idle worker: bytes, and CPU seconds per second."""

    worker: float
    parent: float
    cpu: float


def facts() -> dict[str, str]:
    return {"command": "rota worker, one process under its parent", "files in": str(FILES)}


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    figures: list[Figure] = []
    for kind, serving in STORES.items():
        print(f"idle worker on {kind} ...", flush=True)
        with serving() as url:
            figures += figures_of(kind, [watched(url, WATCH_QUICK if quick else WATCH) for _ in range(rounds)])
    return [*figures, yardstick(rounds)]


def figures_of(kind: str, seen: list[Idle]) -> list[Figure]:
    worker, parent, cpu = ([getattr(idle, field) for idle in seen] for field in ("worker", "parent", "cpu"))
    return [
        within(f"{kind}: idle worker, resident", median(worker), worker, WORKER_LIMIT, "MB"),
        within(f"{kind}: its parent, resident", median(parent), parent, PARENT_LIMIT, "MB"),
        within(f"{kind}: both, share of a core", median(cpu), cpu, CPU_LIMIT, "%"),
    ]


def watched(url: str, seconds: float) -> Idle:
    with scratch() as folder:
        (Path(folder) / "jobs_here.py").write_text(APP)
        with started(folder, "worker", "jobs_here.py", "--store", url) as parent:
            worker = node_in(store_from_url(url))
            time.sleep(REST)
            before, begun = cpu_of([worker, parent]), time.monotonic()
            time.sleep(seconds)
            share = (cpu_of([worker, parent]) - before) / (time.monotonic() - begun)
            return Idle(resident(worker), resident(parent), share)
