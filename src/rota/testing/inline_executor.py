"""Runs a task before submit() returns, to its end, or until it lets time pass at the same time as another task."""

from __future__ import annotations

import asyncio
import copy
import threading
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from rota.engine.executors.capture import capture
from rota.engine.executors.loop import run_async
from rota.engine.executors.run import run_here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from rota.engine.executors.run import Run
    from rota.model.jobs.outcome import Outcome
    from rota.tasks.task import Task
    from rota.testing.side_runs import SideRuns
    from rota.wiring import RunCoroutine


class InlineExecutor:
    """Plain functions in the calling thread; coroutines on a loop of their own, in a thread that is waited for."""

    def __init__(
        self,
        note: Callable[[Run, BaseException], None],
        before_end: Callable[[], None],
        side_runs: SideRuns,
        *,
        keeps_logs: bool,
        run_coroutine: RunCoroutine | None,
    ) -> None:
        self._note = note  # gets what a task raised
        self._before_end = before_end
        self._side_runs = side_runs
        self.is_beside = False  # whether the next run begins while another task lets time pass
        self._keeps_logs = keeps_logs
        self._run_coroutine = run_coroutine  # how the app runs coroutines; None: in a thread

    @property
    def stuck(self) -> int:
        return 0

    def submit(self, *runs: Run) -> None:
        for run in runs:
            if run.is_over:  # an earlier one may have stopped the worker
                continue
            if self.is_beside:
                self._side_runs.begin(run, partial(self._run, run))
            else:
                self._run(run)

    def _run(self, run: Run) -> None:
        assert run.task is not None
        is_async = run.task.is_async
        run.task = self._watched(run.task, run)
        with self._captured():
            outcome = self._run_on_a_loop(run) if is_async else run_here(run)
        if not run.is_over:
            self._before_end()
        run.finish(outcome)

    def _run_on_a_loop(self, run: Run) -> Outcome:
        if self._run_coroutine is None:
            return _in_a_thread(lambda: asyncio.run(run_async(run)))
        on_its_way = partial(self._run_coroutine, partial(run_async, run))
        return _in_a_thread(on_its_way) if _has_loop() else on_its_way()

    def stop(self) -> None:
        """Nothing to do: no threads."""

    def _captured(self) -> AbstractContextManager[None]:
        return _streams() if self._keeps_logs else nullcontext()

    def _watched(self, task: Task[Any, Any], run: Run) -> Task[Any, Any]:
        """The same task; its exceptions are recorded, because an outcome keeps only their text."""
        function, note = task.function, self._note

        def plain(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except BaseException as err:
                note(run, err)
                raise

        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            try:
                return await function(*args, **kwargs)
            except BaseException as err:
                note(run, err)
                raise

        watched = copy.copy(task)
        watched.function = coroutine if task.is_async else plain
        return watched


@contextmanager
def _streams() -> Iterator[None]:
    """Write what the task prints and logs to its job's log, as a worker does."""
    capture.begin()
    try:
        yield
    finally:
        capture.end()


def _has_loop() -> bool:
    """Whether the test itself is a coroutine."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_a_thread(run: Callable[[], Outcome]) -> Outcome:
    """Run it in a new thread, because the caller's may have a running loop already."""
    outcomes: list[Outcome] = []
    context = copy_context()  # which says whether this run is beside another one
    thread = threading.Thread(target=context.run, args=(lambda: outcomes.append(run()),), name="rota-kit-loop")
    thread.start()
    thread.join()
    return outcomes[0]
