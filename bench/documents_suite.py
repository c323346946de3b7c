"""Document queues on a MongoDB replica set: throughput beside a loop of single calls, the cost of a poll, and idleness.

The loop gives the same guarantees one document at a time: a lock with an owner and an end by the server's clock, oldest
first, written by a majority, and a fenced update after the handler.
"""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pymongo
from pymongo.collection import Collection

from bench.documents_idle import watched
from bench.environments import FILES
from bench.measure import Contender, Figure, compare, race, within, yardstick
from rota.documents import DocumentQueue, MongoSource
from rota.documents.contract import Update
from rota.testing.servers.mongo import MongoReplicaSet

Documents = Collection[dict[str, Any]]

CONCURRENCY = 100
ALL, ALL_QUICK = 4_000, 600  # documents that both work off
SMALL, LARGE, LARGE_QUICK = 1_000, 1_000_000, 50_000
DUE = 10
QUERIES_LIMIT, CPU_LIMIT = 1.05, 0.003  # a second, with 5 % for the edges of the window; share of a core
WATCH, WATCH_QUICK = 30.0, 8.0
LOCK = 600_000  # ms


def facts() -> dict[str, str]:
    return {"server": "MongoDB 6.0 replica set of one member, majority writes", "concurrency": str(CONCURRENCY)}


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    FILES.mkdir(exist_ok=True)
    with MongoReplicaSet(FILES) as server, pymongo.MongoClient(server.url()) as client:
        database = client["bench"]
        return [
            throughput(database["orders"], rounds, ALL_QUICK if quick else ALL),
            polls(database["few"], database["many"], rounds, LARGE_QUICK if quick else LARGE),
            *idleness(server.url(), WATCH_QUICK if quick else WATCH),
            yardstick(rounds),
        ]


def throughput(orders: Documents, rounds: int, number: int) -> Figure:
    source = MongoSource(orders)
    source.prepare()
    mine = orders.with_options(write_concern=pymongo.WriteConcern("majority"))

    def contender(work: Callable[[], None]) -> Contender:
        def prepare() -> Callable[[], None]:
            fill(orders, number)
            return work

        return Contender(prepare, steps=number)

    contenders = {"queue": contender(lambda: by_queue(source, number)), "loop": contender(lambda: by_loop(mine))}
    times = race(contenders, rounds, 0.1)
    return compare(f"{number:,} documents, each", times["queue"], times["loop"], must=5)


def fill(orders: Documents, number: int) -> None:
    orders.delete_many({})
    due = datetime.now(UTC) - timedelta(hours=1)
    orders.insert_many([{"_id": one, "sleepUntil": due + timedelta(milliseconds=one)} for one in range(number)])


def by_queue(source: MongoSource, number: int) -> None:
    done, all_done = iter(range(1, number + 1)), threading.Event()

    def work(_document: object) -> None:
        if next(done) == number:
            all_done.set()

    with DocumentQueue(source, work, concurrency=CONCURRENCY):
        all_done.wait()


def by_loop(orders: Documents) -> None:
    """What a careful author writes without batches."""
    number = 0
    while True:
        number += 1
        token = f"loop:{number}"
        found = orders.find_one_and_update(
            {
                "sleepUntil": {"$type": "date", "$lte": datetime.now(UTC)},
                "$expr": {
                    "$and": [{"$lte": ["$sleepUntil", "$$NOW"]}, {"$lte": ["$lockedUntil", "$$NOW"]}],
                },
            },
            [{"$set": {"lockedUntil": {"$add": ["$$NOW", LOCK]}, "lockedBy": token}}],
            sort=[("sleepUntil", 1)],
        )
        if found is None:
            return
        orders.update_one(
            {"_id": found["_id"], "lockedBy": token},
            {"$set": {"sleepUntil": None}, "$unset": {"lockedUntil": "", "lockedBy": ""}},
        )


def polls(few: Documents, many: Documents, rounds: int, number: int) -> Figure:
    contenders = {}
    for documents, count in ((few, SMALL), (many, number)):
        source = MongoSource(documents)
        source.prepare()
        later = datetime.now(UTC) + timedelta(days=1)
        for start in range(0, count - DUE, 10_000):
            batch = range(start, min(start + 10_000, count - DUE))
            documents.insert_many([{"sleepUntil": later + timedelta(seconds=one)} for one in batch])
        documents.insert_many([{"sleepUntil": datetime.now(UTC) - timedelta(hours=1)} for _ in range(DUE)])
        contenders[documents.name] = Contender(Poll(source).prepare)
    times = race(contenders, rounds, 0.2)
    return compare(f"a poll that locks {DUE} of {number:,}, beside {SMALL:,}", times["many"], times["few"], must=1 / 3)


class Poll:
    """Locks the due documents, and gives back outside of the timed part what the last poll locked."""

    def __init__(self, source: MongoSource) -> None:
        self._source = source
        self._locked: list[Any] = []

    def prepare(self) -> Callable[[], object]:
        self._source.update([Update(locked=one, sleep_until=one.terms.sleep_until) for one in self._locked])
        return self._poll

    def _poll(self) -> None:
        self._locked = self._source.lock_next(DUE, LOCK * 1000, 1_000_000).documents
        assert len(self._locked) == DUE  # noqa: S101 - otherwise nothing was measured


def idleness(url: str, seconds: float) -> list[Figure]:
    queries, cpu = watched(url, seconds)
    return [
        within("idle: queries a second", queries, [queries], QUERIES_LIMIT, "trips"),
        within("idle: share of a core", cpu, [cpu], CPU_LIMIT, "%"),
    ]
