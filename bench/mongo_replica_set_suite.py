"""Jobs on a MongoDB replica set of one member, the deployment that teams use: it has transactions.

The URL asks for a direct connection. Otherwise the driver would learn the member's own address from the server and pass
by the proxy that counts round trips.
"""

from bench.jobs import Lineup, Musts
from bench.measure import Figure
from bench.mongo_suite import PEERS, run_on
from rota.testing.servers.mongo import MongoReplicaSet

LINEUP = Lineup(
    limit="limit_mongo.py",
    peers=PEERS,
    # Celery waits for one member's memory, Rota for the journals of a majority: their single enqueues are only shown.
    musts=Musts(drain_peer=3, drain_limit=0.25, single_peer=None, bulk_limit=0.4, latency_limit=1 / 2.5, cpu=0.07),
)


def facts() -> dict[str, str]:
    return LINEUP.facts("MongoDB 6.0 replica set of one member, majority writes")


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    return run_on(MongoReplicaSet, "?directConnection=true", LINEUP, rounds, quick=quick)
