"""Runs plain functions on worker threads that take runs from one shared queue.

A queue that wakes a thread for every run makes many threads compete for the interpreter's lock. Here one thread is
woken at a time. A thread that is awake takes all runs that are short. If a run blocks, the woken thread finds what is
left and wakes the next one before it begins.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from rota.engine.executors.run import Run, run_here

if TYPE_CHECKING:
    from collections.abc import Callable


class Abandonable(Protocol):
    """A run of a slot, which may be over before its code has ended."""

    is_over: bool


R = TypeVar("R", bound=Abandonable)


class RunQueue(Generic[R]):
    """First in, first out. If all slots are busy, `grow` is called to add one; it returns whether it did."""

    def __init__(self, grow: Callable[[], bool]) -> None:
        self._grow = grow
        self._runs: deque[R] = deque()
        self._waiting: list[threading.Lock] = []  # the last thread to wait is woken first: its caches are warm
        self._is_waking = False  # a slot was woken, and has not taken a run yet
        self._is_closed = False
        self._lock = threading.Lock()

    def put(self, *runs: R) -> None:
        with self._lock:
            self._runs.extend(runs)
            self._wake_one()

    def join(self) -> None:
        """A new slot has started: the one that was requested."""
        with self._lock:
            self._is_waking = False
            if len(self._runs) > 1:
                self._wake_one()

    def take(self, timeout: float = -1) -> R | None:
        """The next run; None when the time is up, or the queue is closed and empty."""
        try:
            return self._runs.popleft()  # no need to wake another thread: put() did, or one was woken already
        except IndexError:
            return self._wait(timeout)

    def close(self) -> None:
        """End all waits. Runs that were put before are still taken."""
        with self._lock:
            self._is_closed = True
            for thread in self._waiting:
                thread.release()
            self._waiting.clear()

    def _wake_one(self) -> None:
        if self._is_waking or not self._runs:
            return
        if self._waiting:
            self._is_waking = True
            self._waiting.pop().release()
        else:
            self._is_waking = self._grow()

    def _wait(self, timeout: float) -> R | None:
        """Wait for a run. The woken thread takes one, and wakes the next if more are left."""
        woken = threading.Lock()
        while True:
            with self._lock:
                if self._runs:
                    run = self._runs.popleft()
                    self._wake_one()
                    return run
                if self._is_closed:
                    return None
                woken.acquire(blocking=False)
                self._waiting.append(woken)
            if not self._is_woken(woken, timeout):
                return None

    def _is_woken(self, woken: threading.Lock, timeout: float) -> bool:
        is_woken = woken.acquire(timeout=timeout)
        with self._lock:
            if not is_woken and woken in self._waiting:
                self._waiting.remove(woken)
                return False
            self._is_waking = False
            return True


class Slots(ABC, Generic[R]):
    """Threads that take runs from one queue: as many as there is work for, up to a number.

    Each is a daemon thread, so that none delays an exit. Its executor defines what it does with a run.
    """

    thread_name = "rota-slot"

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._queue: RunQueue[R] = RunQueue(self._add_thread)
        self._threads: list[threading.Thread] = []
        self._current: dict[int, R] = {}  # what each slot runs, by its thread

    @abstractmethod
    def _work(self) -> None:
        """Take runs from the queue until it is closed."""

    def submit(self, *runs: R) -> None:
        self._queue.put(*runs)

    @property
    def stuck(self) -> int:
        """Slots that still run an abandoned job (a timeout, a lost lease)."""
        return sum(run.is_over for run in list(self._current.values()))

    def stop(self) -> None:
        self._queue.close()

    def _begin(self, run: R) -> None:
        self._current[threading.get_ident()] = run

    def _end(self) -> None:
        """Called before the run is finished: this slot is free, not stuck."""
        del self._current[threading.get_ident()]

    def _add_thread(self) -> bool:
        if len(self._threads) >= self._slots:
            return False
        name = f"{self.thread_name}-{len(self._threads)}"
        thread = threading.Thread(target=self._live, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)  # it has started: else its slot would be taken for ever
        return True

    def _live(self) -> None:
        self._queue.join()
        self._work()


class ThreadExecutor(Slots[Run]):
    """Runs tasks in its slots' own threads."""

    thread_name = "rota-run"

    def _work(self) -> None:
        worker = os.getpid()
        while (run := self._queue.take()) is not None:
            if not run.is_over:
                self._begin(run)
                outcome = run_here(run)
                if os.getpid() != worker:
                    os._exit(0)  # a child that the task forked: the parent ends the job
                self._end()
                run.finish(outcome)
