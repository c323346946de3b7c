"""What the tests of the app share: a clock that is moved by hand, and services that turn on demand."""

from __future__ import annotations

import time
from itertools import count
from typing import TYPE_CHECKING

from amounts import PATIENCE
from rota.app import internals
from rota.engine.scheduling.scheduler import Scheduler
from rota.engine.store_clock import StoreClock
from rota.model.micros import SECOND, datetime_of
from rota.store.memory import MemoryStore

if TYPE_CHECKING:
    from datetime import datetime

    from rota import App

NOON = 1_790_000_000 * SECOND

_numbers = count(1)


class Clock:
    """Store time in microseconds."""

    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> int:
        return self.time

    def skip(self, seconds: float) -> None:
        self.time += int(seconds * SECOND)

    @property
    def now(self) -> datetime:
        return datetime_of(self.time)


class StillStore(MemoryStore):
    """A memory store that may have a clock of the test's."""

    clock: Clock | None = None

    def now(self) -> int:
        return self.clock() if self.clock else super().now()


def work(app: App, **options) -> None:
    """Run what is ready, and what that makes ready, until nothing is left."""
    with app.running(scheduler=False, **options) as node:
        assert node.worker.is_idle.wait(PATIENCE), "the worker never came to an end"


def fire(app: App) -> None:
    """Fire what is due."""
    store = app.open()
    scheduler = Scheduler(store, internals(app).events, StoreClock(store.now), lambda: f"fired-{next(_numbers)}")
    deadline = time.monotonic() + PATIENCE
    while scheduler.turn() == 0.0:
        assert time.monotonic() < deadline, "the scheduler never came to an end"
    scheduler.close()
