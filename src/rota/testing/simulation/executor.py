"""Runs jobs in simulated time; the seed decides when and how each ends."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from rota.engine.executors.capture import log_of
from rota.engine.executors.run import outcome_of, success
from rota.model.micros import SECOND
from rota.tasks.signals import Cancel, Retry, Snooze

if TYPE_CHECKING:
    from random import Random

    from rota.engine.executors.run import Run
    from rota.testing.simulation.clock import SimulatedClock

NEVER = 2**62


class Ending(NamedTuple):
    """How a run ends: after this time, with this error (None: it returns)."""

    after: int
    error: BaseException | None = None
    checks_for_stop: bool = True  # its task checks whether it was asked to stop


class Endings:
    """Decides how runs end, when they begin."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.end_well = False
        self.written: dict[tuple[str, int], int] = {}  # log lines by job and lease
        self.early: list[str] = []  # runs that began before their time

    def write(self, run: Run) -> None:
        """Write log lines for some runs."""
        if self._random.random() < 0.7:
            return
        name = run.job.id, run.job.lease_no
        for _ in range(self._random.randint(1, 3)):
            self.written[name] = self.written.get(name, 0) + 1
            log_of(run).line("info", f"{run.job.lease_no}:{self.written[name]}")

    def choose(self) -> Ending:
        random = self._random
        if self.end_well:
            return Ending(int(random.random() * SECOND / 2))
        after = int(random.random() ** 3 * 20 * SECOND)
        checks_for_stop = random.random() < 0.7
        kind = random.random()
        if kind < 0.55:
            return Ending(after, None, checks_for_stop)
        if kind < 0.72:
            return Ending(after, ValueError("boom"), checks_for_stop)
        if kind < 0.78:
            return Ending(after, Retry(after="3s"), checks_for_stop)
        if kind < 0.80:
            return Ending(after, Retry(), checks_for_stop)
        if kind < 0.88:
            return Ending(after, Snooze(after="4s"), checks_for_stop)
        if kind < 0.92:
            return Ending(after, Cancel("the task says so"), checks_for_stop)
        return Ending(NEVER, None, checks_for_stop)


class Active:
    """A run that occupies a slot."""

    __slots__ = ("ending", "ends_at", "run")

    def __init__(self, run: Run, ending: Ending, now: int) -> None:
        self.run = run
        self.ending = ending
        self.ends_at = now + ending.after

    @property
    def due_at(self) -> int:
        """When it ends: at its time, or at once if it was asked to stop and checks for that."""
        return 0 if self.run.stop_reason is not None and self.ending.checks_for_stop else self.ends_at


class SimulatedExecutor:
    """A fixed number of slots and one shared queue, like the real executor; the simulation ends the runs."""

    def __init__(self, slots: int, clock: SimulatedClock, endings: Endings) -> None:
        self._slots = slots
        self._clock = clock
        self._endings = endings
        self._queue: deque[Run] = deque()
        self.active: list[Active] = []

    def submit(self, *runs: Run) -> None:
        self._queue.extend(runs)
        self._fill()

    @property
    def stuck(self) -> int:
        return sum(active.run.is_over for active in self.active)

    def stop(self) -> None:
        """Nothing to do: no threads."""

    def end(self, active: Active) -> None:
        """End a run: report its outcome, unless it has one already, and start the next."""
        self.active.remove(active)
        run = active.run
        if not run.is_over:
            self._endings.write(run)
            error = active.ending.error
            if error is None and run.stop_reason is not None and active.due_at == 0:
                error = ValueError("stopped")
            run.finish(success(None, run) if error is None else outcome_of(error, run))
        self._fill()

    def _fill(self) -> None:
        while self._queue and len(self.active) < self._slots:
            run = self._queue.popleft()
            if run.begin():
                if run.job.run_at > self._clock.now():
                    self._endings.early.append(f"{run.job.id} at {self._clock.now()}, not {run.job.run_at}")
                self._endings.write(run)
                self.active.append(Active(run, self._endings.choose(), self._clock.now()))
