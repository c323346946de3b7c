"""Jobs on Redis: one private server with its AOF on (everysec), flushed before each trial."""

import redis

from bench.environments import FILES
from bench.jobs import Lineup, Musts
from bench.measure import Figure
from rota.testing.servers.redis import RedisServer

LINEUP = Lineup(
    limit="limit_redis.py",
    peers={
        "Huey": ("huey_redis.py", "huey", "2 threads, blocking pop; at most once, keeps nothing", 1.0),
        "Dramatiq": ("dramatiq_redis.py", "dramatiq", "8 threads; at least once, keeps nothing", 1.0),
        "Taskiq": ("taskiq_redis_list.py", "taskiq", "list broker, uvloop, 100 at once; at most once", 1.0),
        "SAQ": ("saq_queue.py", "saq", "100 at once; at least once by its sweep, keeps results", 0.5),
        "Celery": ("celery_queue.py", "celery", "solo pool, late acknowledgement; at least once", 0.25),
        "RQ": ("rq_queue.py", "rq", "no fork per job; keeps results", 0.1),
    },
    musts=Musts(drain_peer=8, drain_limit=0.25, single_peer=1.2, bulk_limit=0.1, latency_limit=1 / 2.2),
)


def facts() -> dict[str, str]:
    return LINEUP.facts("redis 6.2, appendfsync everysec")


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    FILES.mkdir(exist_ok=True)
    with RedisServer(FILES) as server:
        return LINEUP.run(server.url(), redis.Redis.from_url(server.url()).flushall, rounds, quick)
