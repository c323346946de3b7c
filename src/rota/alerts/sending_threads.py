"""Sends messages and calls URLs in threads, so that no loop waits for a receiver, and no receiver for another one."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("rota.alerts")

MOST_THREADS = 32
STOP_FOR = 2.0  # seconds that a stopping node waits for its messages


class SendingThreads:
    """Daemon threads, which exist while there is something to send. A node that ends does not wait long for them:
    another node sends the messages that were claimed and not sent.

    The calls for one receiver begin in their order, at most `each` at a time. A receiver that hangs keeps as many
    threads busy and delays its own calls alone, until so many receivers hang that all threads are busy.
    """

    def __init__(self, name: str, *, each: int, threads: int = MOST_THREADS) -> None:
        self._name = name
        self._each = each
        self._most = threads
        self._waiting: dict[str, deque[Callable[[], None]]] = {}  # by receiver
        self._begun: Counter[str] = Counter()  # calls that run or are next, by receiver
        self._next: deque[tuple[str, Callable[[], None]]] = deque()
        self._threads = 0
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)

    def call(self, receiver: str, function: Callable[[], None]) -> None:
        with self._lock:
            self._waiting.setdefault(receiver, deque()).append(function)
            self._offer(receiver)
            if not self._next or self._threads >= self._most:
                return
            self._threads += 1
        threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def unfinished(self, receiver: str) -> int:
        """Calls for a receiver that have not ended."""
        with self._lock:
            return self._begun[receiver] + len(self._waiting.get(receiver, ()))

    def is_busy(self, receiver: str) -> bool:
        """Whether a further call for a receiver would have to wait."""
        return self.unfinished(receiver) >= self._each

    def wait_until_idle(self, seconds: float = STOP_FOR) -> bool:
        """False if a call has not ended in time."""
        with self._idle:
            return self._idle.wait_for(lambda: not self._begun, seconds)

    def close(self) -> None:
        """Begin no further call."""
        with self._lock:
            self._waiting.clear()
            self._next.clear()

    def _offer(self, receiver: str) -> None:
        waiting = self._waiting.get(receiver)
        if waiting and self._begun[receiver] < self._each:
            self._begun[receiver] += 1
            self._next.append((receiver, waiting.popleft()))
        if not waiting:
            self._waiting.pop(receiver, None)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._next:
                    self._threads -= 1
                    return
                receiver, call = self._next.popleft()
            try:
                call()
            except BaseException:  # a function of the app may raise SystemExit, and this thread must continue
                log.exception("a message could not be sent")
            with self._idle:
                self._begun[receiver] -= 1
                if not self._begun[receiver]:
                    del self._begun[receiver]
                self._offer(receiver)
                self._idle.notify_all()
