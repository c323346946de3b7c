"""SerialThread: works off what its loop hands over, in order, so that the loop can ask for more meanwhile."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class SerialThread:
    """One thread, started with the first piece of work. What a piece raises is raised at the loop's next visit."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._line: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_done = threading.Event()
        self._is_done.set()
        self._given = 0
        self._done = 0
        self._fault: BaseException | None = None
        self.is_awaited = False  # the loop waits: a long piece of work should come to its end

    def give(self, work: Callable[[], object]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._given += 1
        self._is_done.clear()
        self._line.put(work)

    @property
    def is_free(self) -> bool:
        return self._done == self._given and self._fault is None

    def finish(self) -> None:
        """Wait until all that was given is done."""
        if self._thread is None:
            return
        self.is_awaited = True
        while self._done < self._given:
            self._is_done.wait()
            self._is_done.clear()
        self.is_awaited = False
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def stop(self) -> None:
        if self._thread is not None:
            self._line.put(None)

    def _work(self) -> None:
        while (work := self._line.get()) is not None:
            try:
                work()
            except BaseException as err:  # noqa: BLE001 - it is raised where the loop waits
                self._fault = err
            self._done += 1
            self._is_done.set()
