"""Jobs on MongoDB: one private standalone server with its journal, a fresh database for each trial."""

from functools import partial

from pymongo import MongoClient

from bench.environments import FILES
from bench.jobs import Lineup, Musts
from bench.measure import Figure
from rota.testing.servers.mongo import MongoServer

PEERS = {"Celery": ("celery_queue.py", "celery", "solo pool, polls every 10 ms; w:1; at most once here", 0.25)}
LINEUP = Lineup(
    limit="limit_mongo.py",
    peers=PEERS,
    # Celery waits for the server's memory, Rota for its journal: their single enqueues are only shown.
    musts=Musts(drain_peer=4, drain_limit=0.35, single_peer=None, bulk_limit=0.3, latency_limit=1 / 2, cpu=0.05),
)


def facts() -> dict[str, str]:
    return LINEUP.facts("MongoDB 6.0 standalone, majority writes")


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    return run_on(MongoServer, "", LINEUP, rounds, quick=quick)


def run_on(kind: type[MongoServer], options: str, lineup: Lineup, rounds: int, *, quick: bool) -> list[Figure]:
    """A lineup on a private server of this kind; `options` end the URL."""
    FILES.mkdir(exist_ok=True)
    with kind(FILES) as server:
        url = f"mongodb://127.0.0.1:{server.port}/bench{options}"
        return lineup.run(url, partial(MongoClient(url).drop_database, "bench"), rounds, quick)
