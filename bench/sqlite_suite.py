"""Jobs on one SQLite file: Rota beside Huey and beside a bare loop, each trial in a process and a file of its own."""

import sqlite3
from functools import partial
from statistics import median

from bench.environments import FILES, Disk, Entrant, environment, packages
from bench.measure import Figure, compare, turns, within, yardstick

ENTRANTS = {
    "rota": Entrant("rota_sqlite.py"),
    "limit": Entrant("limit_sqlite.py"),
    "huey": Entrant("huey_sqlite.py", "huey", ("fsync",)),
    "huey nosync": Entrant("huey_sqlite.py", "huey", ("nosync",)),
}
COUNTS = {"drain": 20_000, "single": 2_000, "bulk": 50_000, "latency": 200}
QUICK_COUNTS = {"drain": 5_000, "single": 500, "bulk": 10_000, "latency": 50}
CPU_LIMIT = 0.03  # seconds of a worker per 1,000 no-op jobs

Samples = dict[str, list[dict[str, float]]]

informs = partial(compare, is_binding=False)


def facts() -> dict[str, str]:
    return {
        "huey": packages(environment("huey"))["huey"],
        "sqlite": sqlite3.sqlite_version,
        "files in": str(FILES),
    }


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    counts = QUICK_COUNTS if quick else COUNTS
    disk = Disk()
    samples = {scenario: trials(scenario, count, rounds, disk) for scenario, count in counts.items()}
    return [
        *drain_figures(samples["drain"]),
        *single_figures(samples["single"]),
        *bulk_figures(samples["bulk"]),
        *latency_figures(samples["latency"]),
        disk.figure(),
        yardstick(rounds),
    ]


def trials(scenario: str, count: int, rounds: int, disk: Disk) -> Samples:
    print(f"{scenario}: {count:,} jobs a trial ...", flush=True)
    samples: Samples = {name: [] for name in ENTRANTS}
    for name in turns(ENTRANTS, rounds):
        disk.ask()
        samples[name].append(ENTRANTS[name].trial(scenario, count))
    return samples


def drain_figures(samples: Samples) -> list[Figure]:
    ours = seconds(samples, "rota")
    cpu = [1_000 * sample["cpu"] for sample in samples["rota"]]
    return [
        informs("drain vs Huey", ours, seconds(samples, "huey"), 5, note="2 threads, synchronous=FULL; at most once"),
        informs("drain vs Huey without fsync", ours, seconds(samples, "huey nosync"), note="may lose what it took"),
        informs("drain, share of the limit", ours, seconds(samples, "limit"), 0.18, note="batches of 100"),
        within("drain, worker CPU per 1,000 jobs", median(cpu), cpu, CPU_LIMIT, "ms", is_binding=False),
    ]


def single_figures(samples: Samples) -> list[Figure]:
    ours = seconds(samples, "rota")
    return [
        informs("single enqueue vs Huey", ours, seconds(samples, "huey"), 0.9),
        informs("single enqueue vs Huey without fsync", ours, seconds(samples, "huey nosync")),
        informs("single enqueue, share of the limit", ours, seconds(samples, "limit")),
    ]


def bulk_figures(samples: Samples) -> list[Figure]:
    ours = seconds(samples, "rota")
    return [
        informs("bulk enqueue vs Huey", ours, seconds(samples, "huey"), note="a group: one commit each"),
        informs("bulk enqueue, share of the limit", ours, seconds(samples, "limit"), 0.25, note="batches of 1,000"),
    ]


def latency_figures(samples: Samples) -> list[Figure]:
    ours = seconds(samples, "rota")
    return [
        informs("idle to running, p50, vs Huey", ours, seconds(samples, "huey"), note="polls every 5 ms"),
        informs("idle to running, p50, share of the limit", ours, seconds(samples, "limit"), 1 / 2),
    ]


def seconds(samples: Samples, name: str) -> list[float]:
    return [sample["seconds"] for sample in samples[name]]
