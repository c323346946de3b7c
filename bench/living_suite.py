"""Living with Rota: how soon `rota dev` is at work and what keeping logs costs."""

import os
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median

from bench.environments import FILES, output, scratch
from bench.measure import Figure, again, alone, compare, race, turns, within, yardstick
from bench.processes import started

START_LIMIT = 1.0  # seconds from the command to the scheduler's first look
CAPTURE_MUST = 0.95  # of the pace without capture
COUNT, COUNT_QUICK = 20_000, 5_000

STARTING = """
import os, time
from rota import App, every
from rota.store.sqlite import SqliteStore

class Exposition(SqliteStore):
    def due_schedules(self, limit, **more):
        with open("looked", "w") as pipe:
            pipe.write(str(time.monotonic()))
        return super().due_schedules(limit, **more)

app = App(Exposition(os.path.abspath("dev.db")))

@app.schedule(every("1h"))
def tick(): ...
"""


def facts() -> dict[str, str]:
    return {"files in": str(FILES)}


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    return [
        *start_figures(rounds),
        *capture_figures(rounds, COUNT_QUICK if quick else COUNT),
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
