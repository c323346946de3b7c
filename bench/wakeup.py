"""A scheduler beside a store with many schedules, some of which are due whenever the benchmark's clock says so.

As a program, it prints by how many bytes a process grows as it wakes up: `python -m bench.wakeup URL NAMESPACE CLOCK`.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from time import sleep
from typing import Any, cast

import rota
from rota.engine.events import Events
from rota.engine.scheduling.partition import Partition
from rota.engine.scheduling.scheduler import Scheduler
from rota.engine.store_clock import StoreClock
from rota.model.jobs.job import new_id
from rota.model.micros import SECOND
from rota.model.schedules.edit import Edit
from rota.model.schedules.firing import Firing
from rota.store.contract import Channel, Due, Fired, Listener, Store

MINUTE = 60 * SECOND
CHUNK = 10_000
FAR = datetime(2099, 1, 1, tzinfo=UTC)


class Clocked:
    """What a scheduler asks of a store, at the time that the benchmark says."""

    def __init__(self, store: Store, at: int) -> None:
        self.store = store
        self.at = at

    def now(self) -> int:
        return self.at

    def listen(self, channel: Channel) -> Listener:
        return self.store.listen(channel)

    def due_schedules(self, limit: int) -> Due:
        return self.store.due_schedules(limit, now=self.at)

    def fire(self, firings: list[Firing]) -> list[Fired]:
        return self.store.fire(firings, now=self.at)

    def edit_schedules(self, edits: list[Edit]) -> list[str]:
        return self.store.edit_schedules(edits, now=self.at)


class Wakeup:
    """An app's store and its scheduler. Every minute of the clock, the same schedules are due."""

    def __init__(self, url: str, namespace: str, at: int, partition: Partition = Partition()) -> None:  # noqa: B008 - frozen
        self.url = url
        self.namespace = namespace
        self.app = rota.App(url, namespace=namespace)
        self.store = self.app.open()
        self.clocked = Clocked(self.store, at)
        random = Random()  # two schedulers that race must not make the same ids
        self.scheduler = Scheduler(
            cast("Any", self.clocked),
            Events(),
            StoreClock(self.clocked.now),
            lambda: new_id(random, self.clocked.at),
        )
        self.scheduler.partition = partition

    def turn(self) -> None:
        """One look, which fires what it finds."""
        self.scheduler.turn()

    def turn_all(self) -> None:
        """As often as there is something due."""
        while self.scheduler.turn() == 0 or self.clocked.due_schedules(1).schedules:
            sleep(0)  # what is left is another's

    def advance(self) -> None:
        self.clocked.at += MINUTE

    def jobs(self) -> int:
        """How many were made so far."""
        return sum(sum(queue.counts.values()) for queue in self.store.list_queues())

    def close(self) -> None:
        self.scheduler.close()
        self.app.close()


@contextmanager
def loaded(url: str, schedules: int, due: int) -> Iterator[Wakeup]:
    """A new namespace with so many schedules, of which so many are due each minute; the others are far from it."""
    namespace = f"n{schedules}_{due}"
    app = rota.App(url, namespace=namespace)
    job = app.task(name="noop")(lambda: None).job()
    app.schedules.put_many(((f"due-{n}", job, rota.cron("* * * * *")) for n in range(due)), overlap="allow")
    for start in range(due, schedules, CHUNK):
        numbers = range(start, min(start + CHUNK, schedules))
        app.schedules.put_many((f"far-{n}", job, rota.once(far(n))) for n in numbers)
        progress(numbers.stop, schedules)
    print(f"loaded {schedules:,} schedules, {due:,} of them due")
    now = app.open().now()
    app.close()
    wakeup = Wakeup(url, namespace, now - now % MINUTE + MINUTE)
    try:
        wakeup.turn_all()  # whatever became due while loading
        yield wakeup
    finally:
        wakeup.close()


def progress(done: int, whole: int, what: str = "schedules") -> None:
    """A bar for people; a file gets a line now and then."""
    if sys.stderr.isatty():
        filled = 40 * done // whole
        bar = "#" * filled + "." * (40 - filled)
        print(f"\r  [{bar}] {done:,} of {whole:,} {what}", end="\n" if done >= whole else "", file=sys.stderr)
    elif done * 10 // whole != (done - CHUNK) * 10 // whole:
        print(f"  {done:,} of {whole:,} {what}", file=sys.stderr, flush=True)


def far(number: int) -> datetime:
    """Scattered over a year, so that neighbours in time are none in the file."""
    return FAR + timedelta(seconds=number * 7919 % 31_536_000)


def growth(url: str, namespace: str, at: str) -> int:
    """By how many bytes this process grows, at its highest, while it wakes up once."""
    wakeup = Wakeup(url, namespace, int(at))
    Path("/proc/self/clear_refs").write_text("5")  # the highest point is forgotten
    before = memory("VmRSS")
    wakeup.turn()
    return max(1, memory("VmHWM") - before)


def memory(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


if __name__ == "__main__":
    print(growth(*sys.argv[1:]))
