"""Runs the handler of documents: plain functions on worker threads, coroutines on one event loop."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any, Protocol

from rota.documents.handlers import call_here, calling, typed
from rota.documents.rules import Failed, Outcome, Succeeded
from rota.engine.executors.run import describe
from rota.engine.executors.threads import Slots

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from rota.documents.contract import LockedDocument
    from rota.documents.handlers import Handler
    from rota.engine.executors.loop import LoopThread


class DocumentRun:
    """One execution of the handler for one locked document. `locked` is replaced when its lock is renewed."""

    def __init__(self, locked: LockedDocument[Any], started_at: int) -> None:
        self.locked = locked
        self.started_at = started_at
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None
        self.is_over = False  # slots check this
        self.is_lost = False  # its lock is gone, so its outcome does not count
        self.was_sent = False  # its end was sent, and no reply came
        self.was_refused = False  # the source has refused its end, and the user was informed


class Running:
    """The documents whose handler runs. `writing` is held while locks are renewed or ends are written, so that a
    renewal and an end of the same document never cross."""

    def __init__(self) -> None:
        self.writing = threading.Lock()
        self._runs: set[DocumentRun] = set()

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, run: DocumentRun) -> None:
        self._runs.add(run)

    def drop(self, run: DocumentRun) -> None:
        self._runs.discard(run)

    @property
    def have_ended(self) -> bool:
        """Whether no handler runs any more, so that only writes are left."""
        return all(run.outcome is not None for run in list(self._runs))

    def with_locks_until(self, instant: int) -> list[DocumentRun]:
        """Runs that have not ended, and whose locks end by then."""
        runs = list(self._runs)
        return [run for run in runs if run.outcome is None and not run.is_lost and run.locked.locked_until <= instant]


class Caller(Protocol):
    """Runs documents, and calls `done` with each when it has ended."""

    def submit(self, *runs: DocumentRun) -> None: ...

    def stop(self) -> None: ...


def end(run: DocumentRun, err: BaseException | None) -> None:
    """Record how a run ended."""
    run.error = err
    run.outcome = Succeeded() if err is None else Failed(error=describe(err), random=random.random())  # noqa: S311


class ThreadCaller(Slots[DocumentRun]):
    """Calls a plain handler in the slots' threads. If it returns something to await, that runs on the loop."""

    thread_name = "rota-document"

    def __init__(self, slots: int, call: Callable[[Any], None], done: Callable[[DocumentRun], None]) -> None:
        super().__init__(slots)
        self._call = call
        self._done = done

    def _work(self) -> None:
        while (run := self._queue.take()) is not None:
            self._begin(run)
            try:
                self._call(run.locked.document)
                end(run, None)
            except BaseException as err:  # noqa: BLE001 - whatever a handler raises is its outcome
                end(run, err)
            self._end()
            self._done(run)


class LoopCaller:
    """Calls an async handler on the loop's thread."""

    def __init__(
        self, loop: LoopThread, handler: Handler, wanted: Any, queue: object, done: Callable[[DocumentRun], None]
    ) -> None:
        self._loop = loop
        self._handler = handler
        self._wanted = wanted
        self._document_queue = queue
        self._done = done
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, *runs: DocumentRun) -> None:
        loop = self._loop.running_loop()
        loop.call_soon_threadsafe(self._begin_all, loop, runs)

    def stop(self) -> None:
        """The loop belongs to the queue, which stops it."""

    def _begin_all(self, loop: asyncio.AbstractEventLoop, runs: tuple[DocumentRun, ...]) -> None:
        for run in runs:
            task = loop.create_task(self._work(run))
            self._tasks.add(task)  # the loop itself keeps only a weak reference
            task.add_done_callback(self._tasks.discard)

    async def _work(self, run: DocumentRun) -> None:
        try:
            calling.set(self._document_queue)
            await self._handler.call(typed(run.locked.document, self._wanted), self._document_queue)
            end(run, None)
        except BaseException as err:  # noqa: BLE001 - likewise
            end(run, err)
        self._done(run)


def make_caller(
    handler: Handler, wanted: Any, queue: object, loop: LoopThread, slots: int, done: Callable[[DocumentRun], None]
) -> Caller:
    if handler.is_async:
        return LoopCaller(loop, handler, wanted, queue, done)
    return ThreadCaller(slots, lambda document: call_here(handler, loop, queue, typed(document, wanted), queue), done)
