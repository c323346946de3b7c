"""What people run: each worker by its own command with its default logging into a file, a producer beside it.

Jobs have two arguments and a result. MongoDB is a replica set, for the peer too.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median

import redis
from pymongo import MongoClient

from bench import asrun
from bench.asrun import QUIET, ROTA, SCENARIOS, Runner
from bench.environments import FILES, Disk, environment, packages
from bench.measure import Figure, compare, turns, within, yardstick
from bench.postgres_suite import fresh
from rota.testing.servers.mongo import MongoReplicaSet
from rota.testing.servers.postgres import PostgresServer
from rota.testing.servers.redis import RedisServer

COUNTS = {"drain": 100_000, "single": 2_000, "latency": 200}
QUICK_COUNTS = {"drain": 20_000, "single": 500, "latency": 30}
QUICK_SHARE = 0.1  # contenders that drain less than this share of the jobs are left out of a quick run
OURS = "Rota"
UNLOGGED = "Rota without job lines"

Samples = dict[str, list[dict[str, float]]]
Place = tuple[str, Callable[[], object]]  # a URL, and what empties the store there


@contextmanager
def on_sqlite() -> Iterator[Place]:
    yield "sqlite:///rota.db", lambda: None  # each trial has a folder of its own


@contextmanager
def on_redis() -> Iterator[Place]:
    with RedisServer(FILES) as server:
        yield server.url(), redis.Redis.from_url(server.url()).flushall


@contextmanager
def on_postgres() -> Iterator[Place]:
    with PostgresServer(FILES, is_durable=True) as server:
        yield server.url("bench"), partial(fresh, server)


@contextmanager
def on_mongo() -> Iterator[Place]:
    with MongoReplicaSet(FILES) as server:
        url = f"mongodb://127.0.0.1:{server.port}/bench?replicaSet=rota"
        client: MongoClient[dict[str, object]] = MongoClient(url)
        yield url, partial(client.drop_database, "bench")


@dataclass(frozen=True)
class Course:
    """One store: where it is, who runs there beside Rota, and what Rota has to reach."""

    serving: Callable[[], AbstractContextManager[Place]]
    peers: Mapping[str, Runner]
    drain_peer: float | None
    cpu: float  # seconds of the worker per 1,000 jobs
    single_peer: float
    latency_peer: float = 1.1
    logged: float = 0.85  # the drain with default logging, as a share of that without job lines

    def rivals(self, quick: bool) -> dict[str, Runner]:  # noqa: FBT001
        return {name: peer for name, peer in self.peers.items() if not quick or peer.share >= QUICK_SHARE}


COURSES = {
    "sqlite": Course(on_sqlite, {"Huey": asrun.HUEY_SQLITE}, drain_peer=8, cpu=0.03, single_peer=1.0),
    "redis": Course(
        on_redis,
        {
            "Huey": asrun.HUEY_REDIS,
            "Dramatiq": asrun.DRAMATIQ,
            "Taskiq": asrun.TASKIQ,
            "Celery": asrun.CELERY,
            "RQ": asrun.RQ,
        },
        drain_peer=12,
        cpu=0.02,
        single_peer=1.1,
    ),
    "postgres": Course(
        on_postgres,
        {"PgQueuer": asrun.PGQUEUER, "Procrastinate": asrun.PROCRASTINATE},
        drain_peer=2.5,
        cpu=0.02,
        single_peer=1.1,
    ),
    "mongo": Course(on_mongo, {"Celery": asrun.CELERY}, drain_peer=None, cpu=0.045, single_peer=1.1),
}


def facts() -> dict[str, str]:
    names = sorted({peer.peer for course in COURSES.values() for peer in course.peers.values() if peer.peer})
    servers = (
        "redis 6.2, appendfsync everysec; PostgreSQL 18, synchronous_commit on; MongoDB 6.0 replica set of one member"
    )
    return {**{name: packages(environment(name))[name] for name in names}, "server": servers, "files in": str(FILES)}


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    FILES.mkdir(exist_ok=True)
    disk, figures = Disk(), list[Figure]()
    for kind, course in COURSES.items():
        disk.ask()
        with course.serving() as place:
            figures += figures_of(kind, course, place, rounds, quick=quick)
        disk.ask()
    return [*figures, disk.figure(), yardstick(rounds)]


def figures_of(kind: str, course: Course, place: Place, rounds: int, *, quick: bool) -> list[Figure]:
    counts = QUICK_COUNTS if quick else COUNTS
    rivals = course.rivals(quick)
    samples = {name: trials(kind, name, rivals, place, rounds, count) for name, count in counts.items()}
    drain = samples["drain"]
    cpu = [1_000 * sample["cpu"] for sample in drain[OURS]]

    def unlogged(title: str, what: str, must: float | None = None) -> Figure:
        return compare(f"{kind}: drain, {title}", of(drain, OURS, what), of(drain, UNLOGGED, what), must)

    return [
        *beside(f"{kind}: drain", drain, rivals, course.drain_peer),
        unlogged("share of that without job lines", "seconds", course.logged),
        unlogged("CPU beside that without job lines", "cpu"),
        within(f"{kind}: drain, worker CPU per 1,000 jobs", median(cpu), cpu, course.cpu, "ms"),
        *beside(f"{kind}: single enqueue", samples["single"], rivals, course.single_peer),
        *beside(f"{kind}: idle to running, p50", samples["latency"], rivals, course.latency_peer),
    ]


def trials(kind: str, scenario: str, rivals: Mapping[str, Runner], place: Place, rounds: int, count: int) -> Samples:
    print(f"{kind}, {scenario}: {count:,} jobs a trial ...", flush=True)
    runners = {OURS: ROTA, **({UNLOGGED: QUIET} if scenario == "drain" else {}), **rivals}
    samples: Samples = {name: [] for name in runners}
    url, clear = place
    for name in turns(runners, rounds):
        clear()
        samples[name].append(SCENARIOS[scenario](runners[name], url, count))
    return samples


def beside(what: str, samples: Samples, rivals: Mapping[str, Runner], must: float | None) -> list[Figure]:
    """A line per peer, the best first: that is the one to beat."""
    names = sorted(rivals, key=lambda name: median(seconds(samples, name)))
    ours = seconds(samples, OURS)
    return [
        compare(f"{what} vs {name}", ours, seconds(samples, name), must if place == 0 else None, note=rivals[name].note)
        for place, name in enumerate(names)
    ]


def seconds(samples: Samples, name: str) -> list[float]:
    return of(samples, name, "seconds")


def of(samples: Samples, name: str, what: str) -> list[float]:
    return [sample[what] for sample in samples[name]]
