"""A live node for stories: the services of `rota run` with real threads, on a store whose clock the story moves."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Self

from amounts import PATIENCE
from rota.app import internals
from rota.engine.executors.run import current_run
from rota.engine.services import NodeSettings, build_services
from rota.engine.store_clock import StoreClock
from rota.engine.worker.worker import Worker, WorkerSettings
from rota.model.micros import SECOND
from rota.testing.kit_store import KitStore
from rota.testing.stepper import _Unjittered

if TYPE_CHECKING:
    from rota import App
    from rota.engine.executors.run import Run
    from rota.model.jobs.outcome import Outcome
    from rota.testing import ManualClock

EARLY = 20_000  # microseconds before an instant at which a live node may claim and fire already


class LiveNode:
    """A scheduler beside a worker. `take` is what a task calls to last; `travel_to` lets time pass."""

    def __init__(self, app: App, clock: ManualClock) -> None:
        self.app = app
        self.clock = clock
        self.store = KitStore(clock)
        self._moved = threading.Condition()
        self._asleep: dict[Run, int] = {}
        services = build_services(
            self.store,
            internals(app).registry,
            internals(app).events,
            StoreClock(clock.micros, clock.monotonic),
            NodeSettings(work=WorkerSettings(concurrency=64, queues=("default",))),
            node_id="live",
            random=_Unjittered(),
            worker_type=_WatchedWorker,
        )
        assert isinstance(services.worker, _WatchedWorker)
        self._worker = services.worker
        self._worker.moved = self._moved
        self._keeper = services.lease_keeper
        self._scheduler = services.scheduler

    def __enter__(self) -> Self:
        internals(self.app).store.use(self.store)
        self.app.open()
        self.app.schedules.sync()
        return self

    def __exit__(self, *_: object) -> None:
        with self._moved:
            self._asleep = dict.fromkeys(self._asleep, 0)
            self._moved.notify_all()
        self._worker.close()
        self._scheduler.close()
        self.app.close()

    def take(self, seconds: float) -> None:
        """Last: the task's thread waits until the clock is there."""
        run = current_run()
        assert run is not None
        with self._moved:
            self._asleep[run] = until = self.clock.micros() + round(seconds * SECOND)
            self._moved.notify_all()
            self._moved.wait_for(lambda: self.clock.micros() >= until or self._asleep[run] == 0, PATIENCE)
            del self._asleep[run]
            self._moved.notify_all()

    def travel_to(self, end: int) -> None:
        self._come_to_rest()
        while (at := self._next_at()) is not None and at <= end:
            self._move_to(at)
        self._move_to(end)

    def _move_to(self, instant: int) -> None:
        with self._moved:
            self.clock.move_to(max(instant, self.clock.micros()))
        self._scheduler_turns()  # of two things at one instant, the firing is first, as in the kit
        with self._moved:
            self._moved.notify_all()
            assert self._moved.wait_for(self._are_all_awake, PATIENCE), "a run does not wake up"
        self._come_to_rest()

    def _are_all_awake(self) -> bool:
        return all(until > self.clock.micros() for until in self._asleep.values())

    def _come_to_rest(self) -> None:
        """Turn everything until nothing changes, and every run lasts or has ended."""
        before: Any = None
        while (now := self._all_there_is()) != before:
            before = now
            self._scheduler_turns()
            self._keeper.turn()
            self._worker.turn()
            with self._moved:
                assert self._moved.wait_for(self._is_at_rest, PATIENCE), "a run neither lasts nor ends"

    def _scheduler_turns(self) -> None:
        while self._scheduler.turn() == 0.0:
            pass

    def _is_at_rest(self) -> bool:
        runs = list(self._worker.runs.values())
        return all(run.is_over or run in self._asleep or run.job.run_at > self.clock.micros() for run in runs)

    def _all_there_is(self) -> Any:
        return self.store.seen, self.store.due_schedules(1), len(self._worker.runs), self._worker.client.has_reports

    def _next_at(self) -> int | None:
        due = [self.store.due_schedules(1).next_due_at, self.store._next_due(self.store.queues)]
        early = [at - EARLY for at in due if at is not None]
        lasting = [*self._asleep.values(), self._worker._early.next_at]
        late = [round(run.deadline * SECOND) + 1 for run in self._worker.runs.values() if run.deadline is not None]
        now = self.clock.micros()
        return min((at for at in [*due, *early, *lasting, *late] if at is not None and at > now), default=None)


class _WatchedWorker(Worker):
    """The real worker, which notifies the thread that waits for its runs."""

    moved: threading.Condition

    def report(self, run: Run, outcome: Outcome) -> None:
        super().report(run, outcome)
        with self.moved:
            self.moved.notify_all()
