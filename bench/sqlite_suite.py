"""Jobs on one SQLite file, each trial on a file of its own."""

import sqlite3

from bench.environments import FILES, Entrant, environment, packages
from bench.jobs import Field, Musts, Peer
from bench.measure import Figure

FIELD = Field(
    rota=Entrant("rota_store.py", options=("sqlite:///rota.db",)),
    limit=Entrant("limit_sqlite.py"),
    peers={
        "Huey": Peer(Entrant("huey_sqlite.py", "huey", ("fsync",)), "2 threads, synchronous=FULL; at most once"),
        "Huey without fsync": Peer(
            Entrant("huey_sqlite.py", "huey", ("nosync",)), "may lose what it took", is_rival=False
        ),
    },
    musts=Musts(drain_peer=5, drain_limit=0.18, single_peer=0.9, bulk_limit=0.25, latency_limit=1 / 2),
)


def facts() -> dict[str, str]:
    return {
        "huey": packages(environment("huey"))["huey"],
        "sqlite": sqlite3.sqlite_version,
        "files in": str(FILES),
    }


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    return FIELD.run(rounds, quick)
