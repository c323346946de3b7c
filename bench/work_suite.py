"""Jobs that do something: sleeping threads, waiting coroutines, CPU in worker processes, beside the best peers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median

import redis

from bench.crews import CELERY, DRAMATIQ, ROTA, Crew
from bench.environments import FILES, Entrant, environment, packages
from bench.measure import Figure, compare, turns, yardstick
from bench.stores import STORES, on_redis

BEST_PEER_MUST = 1.0
TWO_MUST = 1.6  # of the pace of one process, with CPU-bound jobs …
TWO_STORES = ("redis", "postgres")  # … on these
NOOP_MUST = 0.8  # of the pace of one process, with jobs that do nothing
BURN = 0.002  # CPU seconds


@dataclass(frozen=True)
class Kind:
    """One kind of work: how many at once, how long each takes, and who else does it."""

    name: str
    at_once: int
    pause: float
    setting: str
    count: int
    quick_count: int
    peers: Mapping[str, tuple[str, str]]  # name -> script, environment

    def entrant(self, script: str, peer: str | None, url: str) -> Entrant:
        settings = {"BENCH_AT_ONCE": str(self.at_once), self.setting: str(self.pause)}
        return Entrant(script, peer, (url,), settings)


KINDS = (
    Kind(
        name="sleeping 5 ms in 16 threads",
        at_once=16,
        pause=0.005,
        setting="BENCH_THREAD_PAUSE",
        count=6_400,
        quick_count=1_600,
        peers={"Huey": ("huey_redis.py", "huey"), "Dramatiq": ("dramatiq_redis.py", "dramatiq")},
    ),
    Kind(
        name="awaiting 50 ms, 1,000 coroutines",
        at_once=1_000,
        pause=0.05,
        setting="BENCH_COROUTINE_PAUSE",
        count=20_000,
        quick_count=5_000,
        peers={"SAQ": ("saq_queue.py", "saq"), "Taskiq": ("taskiq_redis_list.py", "taskiq")},
    ),
)
CREWS = {"Celery prefork": CELERY, "Dramatiq": DRAMATIQ}


def facts() -> dict[str, str]:
    names = ("huey", "dramatiq", "saq", "taskiq", "celery")
    return {**{name: packages(environment(name))[name] for name in names}, "files in": str(FILES)}


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    figures: list[Figure] = []
    with on_redis() as url:
        for kind in KINDS:
            figures += waiting_figures(kind, url, rounds, kind.quick_count if quick else kind.count)
        figures += crew_figures(url, rounds, 1_000 if quick else 4_000)
    for name, serving in STORES.items():
        with serving() as url:
            figures += growing_figures(name, url, rounds, quick)
    return [*figures, yardstick(rounds)]


def waiting_figures(kind: Kind, url: str, rounds: int, count: int) -> list[Figure]:
    print(f"{kind.name}: {count:,} jobs a trial ...", flush=True)
    entrants = {"Rota": kind.entrant("rota_store.py", None, url)}
    entrants |= {name: kind.entrant(script, peer, url) for name, (script, peer) in kind.peers.items()}
    trials = {name: partial(drained, entrant, url, count) for name, entrant in entrants.items()}
    times = in_turns(trials, rounds)
    ideal = [kind.pause / kind.at_once] * rounds
    return [
        *beside_best(f"{kind.name} vs", times),
        compare(f"{kind.name}, share of the ideal", times["Rota"], ideal, note="no time but the waiting itself"),
    ]


def drained(entrant: Entrant, url: str, count: int) -> float:
    redis.Redis.from_url(url).flushall()
    return entrant.trial("drain", count)["seconds"]


def crew_figures(url: str, rounds: int, count: int) -> list[Figure]:
    """CPU-bound jobs in two processes."""
    print(f"2 ms of CPU: {count:,} jobs a trial ...", flush=True)
    crews: dict[str, Crew] = {"Rota": ROTA, **CREWS}
    times = in_turns({name: partial(worked, crew, url, count) for name, crew in crews.items()}, rounds)
    ideal = [BURN / 2] * rounds
    return [
        *beside_best("2 ms of CPU in 2 processes vs", times),
        compare("2 ms of CPU in 2 processes, share of the ideal", times["Rota"], ideal, note="two whole cores"),
    ]


def worked(crew: Crew, url: str, count: int) -> float:
    redis.Redis.from_url(url).flushall()
    return crew.pace(url, 2, count, BURN)


def beside_best(what: str, times: Mapping[str, list[float]]) -> list[Figure]:
    """A line per peer, the best first: that one must be reached."""
    peers = sorted((name for name in times if name != "Rota"), key=lambda name: median(times[name]))
    return [
        compare(f"{what} {name}", times["Rota"], times[name], BEST_PEER_MUST if place == 0 else None)
        for place, name in enumerate(peers)
    ]


def growing_figures(kind: str, url: str, rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    """What a second process brings where jobs need CPU, and what it costs where they need none."""
    print(f"one and two processes on {kind} ...", flush=True)
    figures: list[Figure] = []
    if kind in TWO_STORES:
        times = in_turns(one_and_two(url, 1_000 if quick else 4_000, BURN), rounds)
        figures.append(compare(f"{kind}: 2 ms of CPU, 2 processes vs 1", times["two"], times["one"], TWO_MUST))
    times = in_turns(one_and_two(url, 10_000 if quick else 40_000, 0.0), rounds)
    return [*figures, compare(f"{kind}: no-ops, 2 processes vs 1", times["two"], times["one"], NOOP_MUST)]


def one_and_two(url: str, count: int, burn: float) -> dict[str, Callable[[], float]]:
    return {"one": partial(ROTA.pace, url, 1, count, burn), "two": partial(ROTA.pace, url, 2, count, burn)}


def in_turns(trials: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in trials}
    for name in turns(trials, rounds):
        times[name].append(trials[name]())
    return times
