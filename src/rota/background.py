"""Runs store calls in a thread of their own, while the caller prepares the next one."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


class BackgroundCall(Generic[Result]):
    """One call in a background thread."""

    def __init__(self, call: Callable[[], Result]) -> None:
        self._call = call
        self._begun = threading.Event()
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._result: Result

    @property
    def is_done(self) -> bool:
        return self._ended.is_set()

    def result(self) -> Result:
        """Wait for the call to end; return what it returned, or raise what it raised."""
        self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._result

    def run(self) -> None:
        self._begun.set()
        try:
            self._result = self._call()
        except BaseException as err:  # noqa: BLE001 - result() raises it in the caller's thread
            self._error = err
        self._ended.set()

    def wait_until_begun(self) -> None:
        self._begun.wait()


class BackgroundThread:
    """One daemon thread, started by the first call. Calls run one at a time, in order.

    As a context manager, it waits at the end of the block for every call that was begun.
    """

    def __init__(self, name: str = "rota-background") -> None:
        self._name = name
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
        if self._thread is not None:
            self._thread.join()

    def begin(self, call: Callable[[], Result]) -> BackgroundCall[Result]:
        """Start a call and return once it has begun.

        A caller that continued at once would keep the interpreter until its switch interval ends. The call would begin
        when the caller waits for it, and nothing would run in parallel.
        """
        begun: BackgroundCall[Result] = BackgroundCall(call)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._calls.put(begun.run)
        begun.wait_until_begun()
        return begun

    def close(self) -> None:
        """End the thread after the calls that were begun. Does not wait for it."""
        if self._thread is not None:
            self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
