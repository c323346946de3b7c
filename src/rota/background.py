"""BackgroundThread: what waits for a store in a thread of its own, while its owner makes the next ready."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from types import TracebackType

Result = TypeVar("Result")


class BackgroundThread:
    """One thread, for as long as it is entered; what it began is done when it is left."""

    def __enter__(self) -> Self:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - slow to import, and few have so much to do

        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rota-background")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()

    def begin(self, call: Callable[[], Result]) -> Future[Result]:
        """Have it called, and come back once that has begun.

        Whoever goes on at once keeps the interpreter for itself, up to its switch interval: the call would begin when
        the owner waits for it, and nothing would be done beside it.
        """
        begun = Event()

        def run() -> Result:
            begun.set()
            return call()

        future = self._thread.submit(run)
        begun.wait()
        return future
