"""Many schedules: Rota beside Celery beat and APScheduler, each in a process of its own, interleaved; and locks."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rota
from bench.environments import FILES, Disk, Entrant, environment, packages, scratch
from bench.measure import Figure, again, alone, compare, point, race, turns, yardstick

FLAT_MUST = 1 / 3  # what a wake-up with the most schedules may cost, beside one with the fewest


@dataclass(frozen=True)
class Scheduler:
    """One contender, how many schedules it is asked to bear, and what a reader must know to compare."""

    entrant: Entrant
    sizes: tuple[int, ...]
    quick_sizes: tuple[int, ...]
    note: str = ""


OURS = Scheduler(Entrant("rota_schedules.py"), (100, 1_000, 10_000, 100_000, 1_000_000), (100, 1_000, 10_000, 100_000))
PEERS = {
    "Celery beat": Scheduler(
        Entrant("celery_beat.py", "celery"),
        (100, 1_000, 10_000, 100_000),
        (100, 1_000, 10_000),
        "its default scheduler and shelve; fires into memory",
    ),
    "APScheduler": Scheduler(
        Entrant("apscheduler_schedules.py", "apscheduler"),
        (100, 1_000, 10_000, 100_000),
        (100, 1_000, 10_000),
        "SQLAlchemy store on SQLite; fires into an executor that does nothing",
    ),
}
FIRED, FIRED_QUICK = 1_000, 200
BULK, BULK_QUICK = 50_000, 10_000

Trials = dict[str, list[dict[str, float]]]


def facts() -> dict[str, str]:
    versions = {name: packages(environment(name))[name] for name in ("celery", "apscheduler")}
    return {**versions, "sqlite": sqlite3.sqlite_version, "files in": str(FILES)}


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    disk, seconds = Disk(), 0.2 if quick else 1.0
    disk.ask()
    figures = [
        *idle_figures(rounds, quick),
        *firing_figures(rounds, FIRED_QUICK if quick else FIRED),
        bulk_figure(rounds, BULK_QUICK if quick else BULK),
        lock_figure(rounds, seconds),
    ]
    disk.ask()
    return [*figures, disk.figure(), yardstick(rounds)]


def trials(scenario: str, entrants: dict[str, Entrant], count: int, rounds: int) -> Trials:
    print(f"{scenario}: {count:,} schedules ...", flush=True)
    samples: Trials = {name: [] for name in entrants}
    for name in turns(entrants, rounds):
        samples[name].append(entrants[name].trial(scenario, count))
    return samples


def seconds_in(samples: list[dict[str, float]], field: str = "seconds") -> list[float]:
    return [sample[field] for sample in samples]


def idle_figures(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    """Every contender at every size that it is asked for; the largest that all have is where they are compared."""
    everyone = {"Rota": OURS, **PEERS}
    sizes = {name: one.quick_sizes if quick else one.sizes for name, one in everyone.items()}
    found: dict[int, Trials] = {}
    for size in sorted({size for own in sizes.values() for size in own}):
        entrants = {name: one.entrant for name, one in everyone.items() if size in sizes[name]}
        found[size] = trials("idle", entrants, size, rounds)
    return [*versus(found, max(set.intersection(*map(set, sizes.values())))), flat(found), *lines(found)]


def versus(found: dict[int, Trials], size: int) -> list[Figure]:
    """What a wake-up and an addition cost beside peers, at one size."""
    samples = found[size]
    return [
        compare(
            f"{what}, {size:,} schedules vs {name}",
            seconds_in(samples["Rota"], field),
            seconds_in(samples[name], field),
            note=PEERS[name].note,
        )
        for field, what in (("seconds", "wake-up, none due"), ("add", "adding one of 200"))
        for name in PEERS
    ]


def flat(found: dict[int, Trials]) -> Figure:
    few, many = 1_000, max(found)
    ours, theirs = (seconds_in(found[size]["Rota"]) for size in (many, few))
    return compare(f"wake-up, none due, {many:,} schedules vs {few:,}", ours, theirs, FLAT_MUST)


def lines(found: dict[int, Trials]) -> list[Figure]:
    """The points of a chart: each contender's wake-up by the number of schedules."""
    return [
        point(f"{name}: wake-up, none due", size, seconds_in(samples[name]), "us")
        for name in ("Rota", *PEERS)
        for size, samples in found.items()
        if name in samples
    ]


def firing_figures(rounds: int, count: int) -> list[Figure]:
    entrants = {"Rota": OURS.entrant, **{name: one.entrant for name, one in PEERS.items()}}
    samples = trials("firing", entrants, count, rounds)
    ours = seconds_in(samples["Rota"])
    return [
        compare(f"firing, {count:,} due at once vs {name}", ours, seconds_in(samples[name]), note=peer.note)
        for name, peer in PEERS.items()
    ]


def bulk_figure(rounds: int, count: int) -> Figure:
    """Schedules beside bare rows, both many at a time into a SQLite file."""
    samples = trials("bulk", {"Rota": OURS.entrant, "limit": Entrant("limit_sqlite.py")}, count, rounds)
    ours, limit = seconds_in(samples["Rota"]), seconds_in(samples["limit"])
    return compare(f"adding {count:,} schedules, share of the bulk limit", ours, limit)


def lock_figure(rounds: int, seconds: float) -> Figure:
    with scratch() as folder:
        app = rota.App(f"sqlite:///{Path(folder) / 'rota.db'}")

        def take_and_give() -> Any:
            with app.lock("bench"):
                pass

        times = race({"lock": again(take_and_give)}, rounds, seconds)["lock"]
        app.close()
    return alone("lock, acquired and released", times, "us", note="two durable writes on SQLite")
