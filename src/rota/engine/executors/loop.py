"""Runs coroutine functions, hundreds at a time, on one event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from rota.engine.executors.run import _current, checked_result, first_attempt, outcome_of, success
from rota.model.jobs.outcome import Failed, Returned, Stopped
from rota.tasks.middleware import arun_through

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rota.engine.executors.run import Run
    from rota.model.jobs.outcome import Outcome
    from rota.tasks.middleware import JobAttempt


HEARTBEAT = 1.0  # seconds between two checks that a loop with runs still turns
BLOCKED_AFTER = 10.0  # seconds without a turn, after which a task counts as blocking it


class LoopThread:
    """One thread with one event loop, started when it is first needed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_turn, args=(self._loop,), name="rota-loop", daemon=True).start()
            return self._loop

    def stop(self) -> None:
        """End the loop; what still runs on it is cancelled."""
        if self._loop is not None:
            _call(self._loop, self._loop.stop)


class LoopExecutor(LoopThread):
    """One thread, one event loop; started with the first coroutine. A coroutine that blocks stops all the others."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._tasks: dict[asyncio.Task[None], Run] = {}
        self._monotonic = monotonic
        self._turned_at = monotonic()
        self._is_beating = False

    def submit(self, *runs: Run) -> None:
        loop = self.running_loop()
        loop.call_soon_threadsafe(self._begin_all, loop, runs)

    @property
    def stuck(self) -> int:
        """One, while a run blocks the loop. A run that awaits can be interrupted, and blocks nothing."""
        return int(bool(self._tasks) and self._monotonic() >= self._turned_at + BLOCKED_AFTER)

    @property
    def blocker(self) -> Run | None:
        """The run whose code has blocked the loop for 10 s, if it is known."""
        task: asyncio.Task[Any] | None = asyncio.current_task(self._loop) if self.stuck else None
        return self._tasks.get(task) if task is not None else None

    def _begin_all(self, loop: asyncio.AbstractEventLoop, runs: tuple[Run, ...]) -> None:
        for run in runs:
            self._begin(loop, run)

    def _begin(self, loop: asyncio.AbstractEventLoop, run: Run) -> None:
        if run.is_over:
            return
        task = loop.create_task(self._work(run))
        self._tasks[task] = run
        if not self._is_beating:
            self._record_heartbeat(loop)
        task.add_done_callback(lambda ended: self._end(ended, run))
        run.on_stop = partial(_call, loop, task.cancel)
        if run.stop_reason is not None:
            task.cancel()

    def _record_heartbeat(self, loop: asyncio.AbstractEventLoop) -> None:
        """Record that the loop turns, every second while it has runs. An idle loop is not woken."""
        self._turned_at = self._monotonic()
        self._is_beating = bool(self._tasks)
        if self._is_beating:
            loop.call_later(HEARTBEAT, self._record_heartbeat, loop)

    async def _work(self, run: Run) -> None:
        run.finish(await run_async(run))

    def _end(self, task: asyncio.Task[None], run: Run) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():  # before its first step, so that it has reported nothing
            run.finish(Stopped(run.stop_reason or "cancelled"))


async def run_async(run: Run) -> Outcome:
    """Run a coroutine function on this loop."""
    assert run.task is not None  # noqa: S101 - prepare() found it
    if not run.begin():
        return Returned()
    token = _current.set(run)
    try:
        value = await (run.task.function(*run.args, **run.kwargs) if run.wrapped is None else _call_wrapped(run))
        return success(value, run)
    except asyncio.CancelledError:
        if run.stop_reason is None:
            return Failed("CancelledError: the task cancelled itself")
        return Stopped(run.stop_reason)
    except BaseException as err:  # noqa: BLE001 - whatever a task raises is its outcome
        return outcome_of(err, run)
    finally:
        _current.reset(token)


def _call_wrapped(run: Run) -> Awaitable[Any]:
    """Call a coroutine function through its app's middleware."""
    task = run.task
    assert task is not None  # noqa: S101 - prepare() found it

    async def call(attempt: JobAttempt) -> Any:
        run.use_arguments(attempt.args, attempt.kwargs, attempt.meta)
        return checked_result(task, await task.function(*run.args, **run.kwargs))

    return arun_through(task.middleware, first_attempt(run), call)


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until it is stopped, then cancel its tasks and close its descriptors."""
    try:
        loop.run_forever()
        loop.run_until_complete(_end_all())
    finally:
        loop.close()


async def _end_all() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


def _call(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    """Call a function in the loop's thread. A loop that has ended ignores it."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function)
