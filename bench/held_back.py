"""What a claim on PostgreSQL reads while a long transaction holds back vacuum: counted by the server, not timed.

    python -m bench.held_back [jobs]

One connection drains the jobs in exchanges of 300. A second one has a REPEATABLE READ transaction open, which has read
something. The figures are of each fifth of the drain: entries that index scans of the table `ready` returned (live and
dead) for one job, pages that they touched, and CPU of the server's processes.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg

from bench.stores import on_postgres
from rota import App
from rota.model.jobs.job import Job
from rota.model.jobs.outcome import Succeeded
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import Change, settle
from rota.store.contract import Exchange

BATCH, BULK = 300, 10_000
PARTS = 5
_READ = """
    SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = %(name)s AND relname = 'ready'),
           (SELECT sum(idx_blks_hit + idx_blks_read) FROM pg_statio_user_indexes
            WHERE schemaname = %(name)s AND relname = 'ready')
"""


class Cost(NamedTuple):
    """Of one job."""

    entries: float
    pages: float
    cpu: float  # microseconds


class Line:
    """A store with so many jobs waiting, and what was claimed of them."""

    def __init__(self, url: str, namespace: str, waiting: int) -> None:
        self.app = App(url, namespace=namespace)
        self.store = self.app.open()
        self.claimed = list[Job]()
        task = self.app.task(name="noop")(lambda: None)
        for start in range(0, waiting, BULK):
            self.app.enqueue_many([task.job() for _ in range(min(BULK, waiting - start))])

    def changes(self) -> list[Change]:
        at = self.store.now()
        return [settle(job, Succeeded(), RetryPolicy(), at, 0.5) for job in self.claimed]

    def close(self) -> None:
        self.app.close()


def main() -> None:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    with on_postgres() as url:
        for is_held in (False, True):
            for cost in drain(url, f"held_{is_held}".lower(), jobs, is_held=is_held):
                print(
                    f"{'held back' if is_held else 'free':10} entries/job {cost.entries:8.1f}  "
                    f"pages/job {cost.pages:7.2f}  server CPU {cost.cpu:6.1f} us/job",
                    flush=True,
                )


def drain(url: str, namespace: str, jobs: int, *, is_held: bool) -> Iterator[Cost]:
    line = Line(url, namespace, jobs)
    try:
        with held_back(url, namespace) if is_held else no_transaction(), psycopg.connect(url, autocommit=True) as owner:
            for _ in range(PARTS):
                before = counted(line, owner, namespace)
                exchange(line, jobs // PARTS // BATCH)
                after = counted(line, owner, namespace)
                number = jobs // PARTS // BATCH * BATCH
                yield Cost(*((new - old) / number for new, old in zip(after, before, strict=True)))
    finally:
        line.close()


def exchange(line: Line, times: int) -> None:
    for _ in range(times):
        reply = line.store.exchange(Exchange(holder="bench", settled=line.changes(), want=BATCH))
        if len(reply.claimed) != BATCH:
            raise AssertionError(f"{len(reply.claimed)} claimed")
        line.claimed = reply.claimed


def counted(line: Line, owner: psycopg.Connection, namespace: str) -> tuple[float, float, float]:
    """The server's counters, after the sessions of the store have sent theirs; and the CPU of its processes."""
    line.store._database.call(lambda tx: tx.rows("SELECT pg_stat_force_next_flush()"))  # noqa: SLF001
    line.store.now()
    entries, pages = owner.execute(_READ, {"name": namespace}).fetchone() or (0, 0)
    return float(entries), float(pages), 1e6 * server_cpu(owner)


def server_cpu(owner: psycopg.Connection) -> float:
    """Seconds of all processes of this server."""
    (parent,) = owner.execute("SELECT pg_read_file('postmaster.pid')").fetchone() or ("0",)
    own = int(parent.split()[0])
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == own or stat.parent.name == str(own):
            ticks += sum(map(int, fields[11 : 15 if stat.parent.name == str(own) else 13]))
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def held_back(url: str, namespace: str) -> Iterator[None]:
    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute(f"SELECT count(*) FROM {namespace}.entry")  # noqa: S608 - the bench's own name
        yield


@contextmanager
def no_transaction() -> Iterator[None]:
    yield


if __name__ == "__main__":
    main()
