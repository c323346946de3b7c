"""Runs jobs at the same time as another one: each has a thread of its own, and only one thread moves at a time.

A task says how long it takes by letting time pass (`kit.travel`). The task that the test started does that in the
test's thread. Jobs that begin meanwhile run here: when one of them lets time pass, it sleeps until the clock is there.
So two runs overlap as they do in a worker, and each ends at its own time.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.engine.executors.run import Run


class KitEnded(BaseException):
    """Raised inside a task that still sleeps when its kit ends, so that its thread ends too."""


class SideRuns:
    """The runs of one kit that sleep."""

    def __init__(self) -> None:
        self._asleep: list[SideRun] = []

    @property
    def next_at(self) -> int | None:
        """When the first of them wakes."""
        return min((side.wakes_at for side in self._asleep if side.wakes_at is not None), default=None)

    def begin(self, run: Run, body: Callable[[], None]) -> None:
        """Run this until it sleeps or ends."""
        self._move(SideRun(self, run, body))

    def wake(self, now: int) -> Run | None:
        """Let the first one continue that has slept long enough; None if there is none."""
        first = self.next_at
        if first is None or first > now:
            return None
        side = next(side for side in self._asleep if side.wakes_at == first)
        self._asleep.remove(side)
        self._move(side)
        return side.run

    def sleep_until(self, instant: int) -> bool:
        """Sleep, if the caller is one of these runs; False if it is not."""
        side = _current.get()
        if side is None or side.owner is not self:
            return False
        side.sleep_until(instant)
        return True

    def close(self) -> None:
        """End those that still sleep."""
        while self._asleep:
            self._asleep.pop().abandon()

    def _move(self, side: SideRun) -> None:
        side.go_on()
        if side.wakes_at is not None:
            self._asleep.append(side)


class SideRun:
    """One run in its own thread. It moves only inside `go_on`, until it sleeps or ends."""

    def __init__(self, owner: SideRuns, run: Run, body: Callable[[], None]) -> None:
        self.owner = owner
        self.run = run
        self.wakes_at: int | None = None  # None: it has not begun, moves, or has ended
        self._error: BaseException | None = None
        self._is_abandoned = False
        self._may_move = threading.Semaphore(0)
        self._has_stopped = threading.Semaphore(0)
        context = copy_context()
        context.run(_current.set, self)
        self._thread = threading.Thread(target=context.run, args=(self._live, body), name="rota-kit-run", daemon=True)
        self._thread.start()

    def go_on(self) -> None:
        """Let it move until it sleeps or ends."""
        self.wakes_at = None
        self._may_move.release()
        self._has_stopped.acquire()
        if self.wakes_at is None:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def sleep_until(self, instant: int) -> None:
        """Called by its task: the others move until the clock shows that time."""
        if not self._is_abandoned:
            self.wakes_at = instant
            self._has_stopped.release()
            self._may_move.acquire()
        if self._is_abandoned:
            raise KitEnded

    def abandon(self) -> None:
        """End its thread. Nothing that the task still does counts."""
        self.run.is_over = True
        self._is_abandoned = True
        self.go_on()

    def _live(self, body: Callable[[], None]) -> None:
        self._may_move.acquire()
        try:
            body()
        except BaseException as err:  # noqa: BLE001 - raised again in the thread that waits for this one
            self._error = err
        finally:
            self._has_stopped.release()


_current: ContextVar[SideRun | None] = ContextVar("rota_kit_side_run", default=None)
