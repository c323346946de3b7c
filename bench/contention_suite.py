"""What each job costs as more workers share one store: counted by the servers and the system, not timed.

`rota worker --until-empty`, 1 to 16 processes at once. The same number of workers runs on an empty queue first. What
that takes is subtracted, so that the cost of the jobs remains.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.asrun_suite import on_mongo
from bench.environments import FILES, SCRIPTS, output, scratch
from bench.held_back import server_cpu
from bench.measure import Figure, point
from bench.stores import on_postgres, on_redis, on_sqlite

WORKERS = (1, 2, 4, 8, 16)
JOBS, QUICK_JOBS = 60_000, 20_000
REPORTED = 1.2  # seconds after which a PostgreSQL session that has ended or is idle has sent its numbers

Counts = dict[str, float]
Count = Callable[[], Counts]


def facts() -> dict[str, str]:
    return {"command": "rota worker --until-empty --log-level warning", "files in": str(FILES)}


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: ARG001, FBT001 - counts need no rounds
    jobs = QUICK_JOBS if quick else JOBS
    return [figure for kind in PLACES for figure in figures_of(kind, jobs)]


def figures_of(kind: str, jobs: int) -> list[Figure]:
    figures: list[Figure] = []
    for workers in WORKERS:
        print(f"{workers} on {kind} ...", flush=True)
        with PLACES[kind]() as (url, count):
            started = spent(url, count, workers, 0)
            drained = spent(url, count, workers, jobs)
        for name, number in drained.items():
            each = (number - started[name]) / jobs
            unit = "us" if name.endswith("CPU") else "per job"
            figures.append(point(f"{kind}: {name}", workers, [each], unit))
    return figures


def spent(url: str, count: Count, workers: int, jobs: int) -> Counts:
    """What so many workers take from their start until the queue is empty."""
    settings = {"BENCH_URL": url, "BENCH_COUNT": "-1"}
    with scratch() as folder:
        script = SCRIPTS / "asrun_rota.py"
        output([sys.executable, script, "fill", str(jobs)], settings) if jobs else None
        before = count()
        command = [sys.executable, "-m", "rota", "worker", script, "--until-empty", "--log-level", "warning"]
        began = [
            subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, **settings},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for _ in range(workers)
        ]
        used = [os.wait4(process.pid, 0) for process in began]
        if any(status for _, status, _ in used):
            raise RuntimeError("a worker failed")
        after = count()
    return {
        **{name: after[name] - before[name] for name in after},
        "worker CPU": sum(usage.ru_utime + usage.ru_stime for _, _, usage in used),
        "waits of workers": float(sum(usage.ru_nvcsw for _, _, usage in used)),
    }


@contextmanager
def sqlite_place() -> Iterator[tuple[str, Count]]:
    with on_sqlite() as url:
        yield url, dict


@contextmanager
def redis_place() -> Iterator[tuple[str, Count]]:
    import redis  # noqa: PLC0415

    with on_redis() as url, redis.Redis.from_url(url) as client:

        def count() -> Counts:
            info = client.info()
            return {
                "commands": info["total_commands_processed"],
                "bytes sent": info["total_net_output_bytes"],
                "server CPU": info["used_cpu_user"] + info["used_cpu_sys"],
            }

        yield url, count


@contextmanager
def postgres_place() -> Iterator[tuple[str, Count]]:
    import psycopg  # noqa: PLC0415

    query = (
        "SELECT xact_commit, xact_rollback, tup_returned + tup_fetched, deadlocks FROM pg_stat_database "
        "WHERE datname = current_database()"
    )
    with on_postgres() as url, psycopg.connect(url, autocommit=True) as owner:

        def count() -> Counts:
            time.sleep(REPORTED)
            commits, rollbacks, rows, deadlocks = map(float, owner.execute(query).fetchone() or ())
            return {
                "transactions": commits + rollbacks,
                "rolled back": rollbacks,
                "rows read": rows,
                "deadlocks": deadlocks,
                "server CPU": server_cpu(owner),
            }

        yield url, count


@contextmanager
def mongo_place() -> Iterator[tuple[str, Count]]:
    import pymongo  # noqa: PLC0415

    with on_mongo() as (url, _), pymongo.MongoClient[dict[str, object]](url) as client:

        def count() -> Counts:
            status = client.admin.command("serverStatus")
            cpu = status["extra_info"]
            return {
                "requests": status["network"]["numRequests"],
                "write conflicts": status["metrics"]["operation"]["writeConflicts"],
                "documents read": status["metrics"]["queryExecutor"]["scannedObjects"],
                "server CPU": (cpu["user_time_us"] + cpu["system_time_us"]) / 1e6,
            }

        yield url, count


PLACES = {"sqlite": sqlite_place, "redis": redis_place, "postgres": postgres_place, "mongo": mongo_place}
