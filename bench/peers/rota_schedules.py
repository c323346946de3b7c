"""Rota's scheduler on a SQLite file as it comes: what it fires is a job in that file, and has its history."""

import time
from datetime import UTC, datetime, timedelta
from random import Random

from timetable import Timetable, main

import rota
from rota.engine.events import Events
from rota.engine.scheduling.scheduler import Scheduler
from rota.engine.store_clock import StoreClock
from rota.model.jobs.job import new_id

FAR = datetime(2099, 1, 1, tzinfo=UTC)
CHUNK = 10_000


class Rota(Timetable):
    """An app and a scheduler that wakes up when it is told to."""

    def __init__(self) -> None:
        self.app = rota.App("sqlite:///rota.db")
        self.job = self.app.task(name="noop")(lambda: None).job()
        self.store, random = self.app.open(), Random(1)
        clock = StoreClock(self.store.now)
        self.scheduler = Scheduler(self.store, Events(), clock, lambda: new_id(random, self.store.now()))

    def add(self, start: int, stop: int) -> None:
        for first in range(start, stop, CHUNK):
            numbers = range(first, min(first + CHUNK, stop))
            self.app.schedules.put_many((f"far-{number}", self.job, rota.once(far(number))) for number in numbers)

    def add_due(self, count: int) -> None:
        soon = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
        for first in range(0, count, CHUNK):
            numbers = range(first, min(first + CHUNK, count))
            self.app.schedules.put_many((f"due-{number}", self.job, rota.once(soon)) for number in numbers)
        time.sleep(max(0.0, (soon - datetime.now(UTC)).total_seconds()))

    def wake(self) -> None:
        self.scheduler.turn()

    def fire(self) -> int:
        while self.scheduler.turn() == 0:
            pass
        return sum(sum(queue.counts.values()) for queue in self.store.list_queues())


def far(number: int) -> datetime:
    return FAR + timedelta(seconds=number * 7919 % 31_536_000)


if __name__ == "__main__":
    main(Rota)
