"""Jobs on PostgreSQL: one private server that syncs each commit, a fresh database for each trial."""

from functools import partial

from bench.environments import FILES
from bench.jobs import Lineup, Musts
from bench.measure import Figure
from rota.testing.servers.postgres import PostgresServer

LINEUP = Lineup(
    limit="limit_postgres.py",
    peers={
        "PgQueuer": ("pgqueuer_queue.py", "pgqueuer", "asyncpg, uvloop, batches of 100; at least once", 1.0),
        "Procrastinate": ("procrastinate_queue.py", "procrastinate", "10 at once; at least once, keeps jobs", 0.1),
        "SAQ": ("saq_queue.py", "saq", "100 at once; at least once by its sweep", 0.1),
    },
    musts=Musts(drain_peer=1.8, drain_limit=0.35, single_peer=1.3, bulk_limit=0.35, latency_limit=1 / 1.4),
)


def facts() -> dict[str, str]:
    return LINEUP.facts("PostgreSQL 18, synchronous_commit on")


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    FILES.mkdir(exist_ok=True)
    with PostgresServer(FILES, is_durable=True) as server:
        return LINEUP.run(server.url("bench"), partial(fresh, server), rounds, quick)


def fresh(server: PostgresServer) -> None:
    server.run_sql("DROP DATABASE IF EXISTS bench WITH (FORCE)", database="postgres")
    server.run_sql("CREATE DATABASE bench", database="postgres")
    server.run_sql("CHECKPOINT", database="postgres")  # nobody pays for what came before
