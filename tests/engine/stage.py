"""A stage for the engine: a store whose clock stands still until it is moved, and services that turn by hand."""

from __future__ import annotations

import time
from collections import Counter
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

from amounts import PATIENCE
from rota import App
from rota.app import internals
from rota.engine.scheduling.scheduler import Scheduler
from rota.engine.store_clock import StoreClock
from rota.engine.upkeep.pruner import Pruner
from rota.engine.upkeep.rescuer import Rescuer
from rota.engine.worker.leases import LeaseKeeper
from rota.engine.worker.worker import Worker, WorkerSettings
from rota.errors import StoreUnavailable
from rota.model.micros import SECOND
from rota.store.contract import Retention, Store
from rota.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.engine.events import Event

NOON = 1_790_000_000 * SECOND


class StillStore(MemoryStore):
    """A memory store whose clock a test moves."""

    def __init__(self) -> None:
        super().__init__()
        self.time = NOON

    def now(self) -> int:
        return self.time


class FaultyStore:
    """A store with faults: verbs that fail before they do anything, or after they have done it. It counts calls."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.calls: Counter[str] = Counter()
        self._before: Counter[str] = Counter()
        self._after: Counter[str] = Counter()
        self._indigestible = ""

    def fail(self, verb: str, times: int = 1) -> None:
        self._before[verb] += times

    def fail_after(self, verb: str, times: int = 1) -> None:
        """The next calls are done, and their replies are lost."""
        self._after[verb] += times

    def choke_on(self, schedule_id: str, error: str = "cannot write this") -> None:
        """From now on, firings of this schedule are more than the store can digest."""
        self._indigestible, self._said = schedule_id, error

    def fire(self, firings: Any, **options: Any) -> Any:
        if any(firing.schedule.id == self._indigestible for firing in firings):
            raise RuntimeError(self._said)
        return self.__getattr__("fire")(firings, **options)

    def __getattr__(self, verb: str) -> Any:
        found = getattr(self.store, verb)
        if not callable(found) or verb.startswith("_"):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls[verb] += 1
            if self._before[verb] > 0:
                self._before[verb] -= 1
                raise StoreUnavailable("the link is down")
            reply = found(*args, **kwargs)
            if self._after[verb] > 0:
                self._after[verb] -= 1
                raise StoreUnavailable("the reply was lost")
            return reply

        return call


class Stage:
    """An app, its store, and services around it that turn when the test says so."""

    def __init__(self, store: Any = None, **settings: Any) -> None:
        self.still = StillStore()
        self.store: Any = FaultyStore(store or self.still)
        self.app = App(store or self.still)
        self.heard: list[Event] = []
        self.app.on("*", self.heard.append)
        self.events = internals(self.app).events
        self._skipped = 0.0
        self._numbers = count(1)
        self._settings = settings
        self.workers: list[Worker] = []

    def a_clock(self) -> StoreClock:
        return StoreClock(self.store.now, self.monotonic)

    def monotonic(self) -> float:
        return time.monotonic() + self._skipped

    def skip(self, seconds: float) -> None:
        """Let time pass, for the store and for every clock."""
        self._skipped += seconds
        self.still.time += int(seconds * SECOND)

    def a_worker(self, **settings: Any) -> Worker:
        worker = Worker(
            self.store,
            internals(self.app).registry,
            self.events,
            self.a_clock(),
            holder=f"worker-{next(self._numbers)}",
            settings=WorkerSettings(**{"concurrency": 4, **self._settings, **settings}),
            random=Random(1),
        )
        self.workers.append(worker)
        return worker

    def a_keeper(self, worker: Worker) -> LeaseKeeper:
        lease_for = worker.settings.lease_for
        return LeaseKeeper(
            self.store, worker.runs, self.events, worker.clock, holder=worker.holder, lease_for=lease_for
        )

    def a_scheduler(self, worker: Any = None) -> Scheduler:
        return Scheduler(self.store, self.events, self.a_clock(), lambda: f"fired-{next(self._numbers)}", worker=worker)

    def a_rescuer(self) -> Rescuer:
        return Rescuer(self.store, self.events, self.a_clock(), lease_for=30 * SECOND)

    def a_pruner(self, **retention: int) -> Pruner:
        return Pruner(self.store, self.events, self.a_clock(), retention=Retention(**retention))

    def work_until(self, worker: Worker, is_done: Callable[[], bool]) -> None:
        """Turn the worker, and between turns wait until one of its runs reports."""
        deadline = time.monotonic() + PATIENCE
        worker.turn()
        while not is_done():
            assert time.monotonic() < deadline, "the worker never came to that"
            worker._event.wait(0.5)
            worker.turn()

    def work_off(self, worker: Worker) -> None:
        """Turn until the worker has nothing in its hands."""
        self.work_until(worker, lambda: not worker.runs)

    def states(self) -> list[str]:
        return [job.state for job in reversed(self.app.jobs.list(limit=200).items)]

    def names(self, *patterns: str) -> list[str]:
        """The events that were heard, in order."""
        return [event.name for event in self.heard if not patterns or event.name.startswith(patterns)]

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
        self.app.close()
