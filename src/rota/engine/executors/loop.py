"""Runs coroutine functions, hundreds at a time, on one event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from rota.engine.executors.run import _current, outcome_of, success
from rota.model.outcome import Failed, GivenBack, Stopped

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.engine.executors.run import Run
    from rota.model.outcome import Outcome


BEAT = 1.0  # seconds between two checks that a loop with runs still turns
BLOCKED_AFTER = 10.0  # seconds without a turn, after which a task counts as blocking it


class LoopExecutor:
    """One thread, one event loop; started with the first coroutine. A coroutine that blocks stops all the others."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: dict[asyncio.Task[None], Run] = {}
        self._lock = threading.Lock()
        self._monotonic = monotonic
        self._turned_at = monotonic()
        self._is_beating = False

    def submit(self, *runs: Run) -> None:
        loop = self._running_loop()
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

    def stop(self) -> None:
        if self._loop is not None:
            _call(self._loop, self._loop.stop)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_turn, args=(self._loop,), name="rota-loop", daemon=True).start()
            return self._loop

    def _begin_all(self, loop: asyncio.AbstractEventLoop, runs: tuple[Run, ...]) -> None:
        for run in runs:
            self._begin(loop, run)

    def _begin(self, loop: asyncio.AbstractEventLoop, run: Run) -> None:
        if run.is_over:
            return
        task = loop.create_task(self._work(run))
        self._tasks[task] = run
        if not self._is_beating:
            self._beat(loop)
        task.add_done_callback(lambda ended: self._end(ended, run))
        run.on_stop = partial(_call, loop, task.cancel)
        if run.stop_reason is not None:
            task.cancel()

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        """AuditRecord that the loop turns, for as long as it has runs: an idle one need not wake."""
        self._turned_at = self._monotonic()
        self._is_beating = bool(self._tasks)
        if self._is_beating:
            loop.call_later(BEAT, self._beat, loop)

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
        return GivenBack()
    token = _current.set(run)
    try:
        value = await run.task.function(*run.args, **run.kwargs)
        return success(value, run)
    except asyncio.CancelledError:
        if run.stop_reason is None:
            return Failed("CancelledError: the task cancelled itself")
        return Stopped(run.stop_reason)
    except BaseException as err:  # noqa: BLE001 - whatever a task raises is its outcome
        return outcome_of(err, run)
    finally:
        _current.reset(token)


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
