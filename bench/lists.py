"""The lists and counts that a page shows, on a store with so many ended jobs of ten days."""

import sys
import time
from collections.abc import Callable
from functools import partial
from random import Random
from statistics import median

import psycopg
from msgspec.structs import replace

from rota import App
from rota.model.jobs.job import NewJob, State, new_id
from rota.model.jobs.outcome import Failed, Succeeded
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import settle
from rota.model.micros import SECOND
from rota.store.contract import Exchange, JobFilter, Store

DAY = 86_400 * SECOND
BATCH, BULK = 1_000, 10_000
SLICE = 600 * SECOND
FAILED_EVERY, REPEATED_EVERY, OF_SCHEDULE_EVERY, WAITING = 100, 80, 50, 200
SCHEDULE, KEY = "s-7", "only-once"
TASKS, QUEUES = ("mail.send", "mail.sort", "pay", "ship"), ("default", "mail")
FINISHED = (State.SUCCEEDED, State.FAILED, State.CANCELLED)


class Archive:
    """A store with so many jobs that ended within ten days, and some that wait."""

    def __init__(self, url: str, namespace: str, size: int) -> None:
        self.app, self.url, self.size = App(url, namespace=namespace), url, size
        self.store: Store = self.app.open()
        self._random = Random()
        self.end = self.store.now()
        self.start = self.end - 10 * DAY
        rare = partial(self._job, at=self.start, task="rare.one", queue="rare")
        self._end([rare(number) for number in range(-20, 0)], self.start)
        for first in range(0, size, BATCH):
            at = self._time_of(first)
            self._end([self._job(number, at) for number in range(first, min(first + BATCH, size))], at)
        self.store.add_jobs([self._job(number, self.end) for number in range(size, size + WAITING)])
        if self.store.features.kind == "mongo":
            self._date_positions()

    def _date_positions(self) -> None:
        """Give jobs the positions that they would have got then: on MongoDB these are the server's times of adding."""
        from bson.timestamp import Timestamp  # noqa: PLC0415
        from pymongo import UpdateOne  # noqa: PLC0415

        raw = self.store._connection.db.raw  # type: ignore[attr-defined] # noqa: SLF001 - no verb changes a position
        slices: dict[int, list[Timestamp]] = {}
        jobs = [(one["created_at"], one["_id"]) for one in raw["job"].find({}, {"created_at": 1})]
        updates = []
        for number, (at, job_id) in enumerate(sorted(jobs)):
            position = Timestamp(at // SECOND, number)
            slices.setdefault(at // SLICE, []).append(position)
            updates.append(UpdateOne({"_id": job_id}, {"$set": {"seq": position}}))
        for first in range(0, len(updates), BULK):
            raw["job"].bulk_write(updates[first : first + BULK], ordered=False)
        raw["meta"].delete_many({"_id": {"$regex": "^slice:"}})
        marks = [{"_id": f"slice:{one:012d}", "first": min(at), "last": max(at)} for one, at in slices.items()]
        raw["meta"].insert_many(marks)

    def _end(self, jobs: list[NewJob], at: int) -> None:
        """Jobs of one time: created, claimed and ended then."""
        self.store.add_jobs(jobs, now=at)
        ask = Exchange(holder="bench", want=len(jobs), queues=(*QUEUES, "rare"))
        claimed = self.store.exchange(ask, now=at).claimed
        boom = Failed("ValueError: order 17\nTraceback (most recent call last):\n", may_retry=False)
        ends = [boom if n % FAILED_EVERY == 0 else Succeeded() for n in range(len(claimed))]
        changes = [settle(job, end, RetryPolicy(), at, 0.5) for job, end in zip(claimed, ends, strict=True)]
        repeated = (2 + n % 2 if n % REPEATED_EVERY == 3 else change.attempts for n, change in enumerate(changes))
        changes = [replace(change, attempts=n) for change, n in zip(changes, repeated, strict=True)]
        reply = self.store.exchange(Exchange(holder="bench", settled=changes), now=at)
        if len(claimed) != len(jobs) or reply.refused:
            raise AssertionError(f"{len(claimed)} claimed, {len(reply.refused)} refused")

    def _job(self, number: int, at: int, task: str = "", queue: str = "") -> NewJob:
        """Its id begins with the time, as ids do: those of one time are neighbours in an index."""
        is_of_schedule = number % OF_SCHEDULE_EVERY == 7
        return NewJob(
            id=new_id(self._random, at),
            task=task or TASKS[number % len(TASKS)],
            payload=b'{"args":[%d]}' % number,
            queue=queue or QUEUES[number // len(TASKS) % len(QUEUES)],
            key=KEY if number == 0 else None,
            key_for=20 * DAY if number == 0 else 0,
            schedule_id=SCHEDULE if is_of_schedule else None,
            fire_at=self._time_of(number) if is_of_schedule else None,
            after_at=self._time_of(number - OF_SCHEDULE_EVERY) if is_of_schedule else None,
            made_by="every" if is_of_schedule else None,
        )

    def _time_of(self, number: int) -> int:
        """Evenly over the ten days."""
        return self.start + (self.end - self.start) * number // self.size

    def vacuum(self) -> None:
        """Do on PostgreSQL what autovacuum does some minutes after such a load, beside the measurement."""
        if self.store.features.kind == "postgres":
            with psycopg.connect(self.url, autocommit=True) as owner:
                owner.execute("VACUUM ANALYZE")

    def reads(self) -> dict[str, Callable[[], object]]:
        """What is read, by name."""
        early, middle = self.start + DAY // 2, self.start + 5 * DAY
        wheres = {
            "all": JobFilter(),
            "of the last hour": JobFilter(since=self.end - DAY // 24),
            "before the middle": JobFilter(until=middle),
            "of an early hour": JobFilter(since=early, until=early + DAY // 24),
            "succeeded": JobFilter(states=(State.SUCCEEDED,)),
            "failed": JobFilter(states=(State.FAILED,)),
            "failed, before the middle": JobFilter(states=(State.FAILED,), until=middle),
            "queued": JobFilter(states=(State.QUEUED,)),
            "finished": JobFilter(states=FINISHED),
            "of a task": JobFilter(task="pay"),
            "of tasks, before the middle": JobFilter(task="mail.*", until=middle),
            "failed of a task": JobFilter(states=(State.FAILED,), task="mail.send"),
            "finished of a queue": JobFilter(states=FINISHED, queue="mail"),
            "running": JobFilter(states=(State.RUNNING,)),
            "of a queue": JobFilter(queue="mail"),
            "queued of a task": JobFilter(states=(State.QUEUED,), task="rare.one"),
            "queued of a schedule": JobFilter(states=(State.QUEUED,), schedule_id=SCHEDULE),
            "succeeded of a task": JobFilter(states=(State.SUCCEEDED,), task="pay"),
            "of a rare task": JobFilter(task="rare.one"),
            "of rare tasks": JobFilter(task="rare.*"),
            "of a rare queue": JobFilter(queue="rare"),
            "succeeded of a rare task": JobFilter(states=(State.SUCCEEDED,), task="rare.one"),
            "failed of a rare task": JobFilter(states=(State.FAILED,), task="rare.one"),
            "failed of a rare queue": JobFilter(states=(State.FAILED,), queue="rare"),
            "of a schedule": JobFilter(schedule_id=SCHEDULE),
            "of a schedule, before the middle": JobFilter(schedule_id=SCHEDULE, until=middle),
            "failed of a schedule": JobFilter(states=(State.FAILED,), schedule_id=SCHEDULE),
            "of a key": JobFilter(key=KEY),
        }
        lists = {f"list {name}": (lambda where=where: self.store.list_jobs(where)) for name, where in wheres.items()}
        counts = {f"count {name}": (lambda where=where: self.store.count_jobs(where)) for name, where in wheres.items()}
        return {
            **lists,
            **counts,
            "queues": self.store.list_queues,
            "failures": lambda: self.store.list_failures(self.end - DAY),
            "series": lambda: self.store.read_series(self.end - DAY, self.end + DAY),
        }

    def close(self) -> None:
        self.app.close()


def main(kind: str, sizes: list[int]) -> None:
    """Print the milliseconds of each read, for each size."""
    from bench.stores import STORES  # noqa: PLC0415

    with STORES[kind]() as url:
        archives = [Archive(url, f"lists{size}", size) for size in sizes]
        for name in archives[0].reads():
            times = [_milliseconds(archive.reads()[name]) for archive in archives]
            print(f"{kind:9}{name:36}", *(f"{one:9.2f}" for one in times), flush=True)
        for archive in archives:
            archive.close()


def _milliseconds(read: Callable[[], object]) -> float:
    read()
    times = []
    for _ in range(5):
        began = time.perf_counter()
        read()
        times.append(time.perf_counter() - began)
    return median(times) * 1_000


if __name__ == "__main__":
    main(sys.argv[1], [int(size) for size in sys.argv[2:]])
