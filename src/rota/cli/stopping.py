"""Handles stop signals: the first SIGTERM, SIGHUP or Ctrl-C drains, the second returns running jobs at once."""

from __future__ import annotations

import logging
import signal
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from rota.cli.endings import INTERRUPTED
from rota.supervisor.plan import HANDLED

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.app import App
    from rota.engine.node import Node
    from rota.engine.worker.worker import Worker

log = logging.getLogger("rota.cli")

STOPPED = -1  # the node is down
EMPTY = 0  # there is nothing left to do
ASKED = -4  # the parent process wants it to drain, …
STOP_NOW = -5  # … or to end at once
REPLACED = ("SIGHUP", "recycled")  # the parent's words if a successor is there, or is on its way
LOOK = 0.25  # seconds: handlers of signals run between two looks, never inside a wait that has begun


class Stopping:
    """Collects all reasons to end a node in one queue: signals, an empty queue, and a node that has ended.

    Handlers only put a number into it. Nothing else happens inside them, because they interrupt the main thread
    anywhere, also if it holds a lock.
    """

    def __init__(self) -> None:
        self._news: SimpleQueue[int] = SimpleQueue()
        self._asked_by = ""
        self.on_replaced: Callable[[], object] = lambda: None  # frees what a successor needs, such as the port

    def listen(self) -> None:
        for number in HANDLED:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
                signal.signal(number, lambda number, _frame: self._news.put(number))

    def ask(self, why: str) -> None:
        """Drain, if that has not begun yet. Any thread may call it."""
        self._asked_by = self._asked_by or why
        self._news.put(ASKED)

    def stop_now(self) -> None:
        """Return the running jobs to their queues. Any thread may call it."""
        self._news.put(STOP_NOW)

    def end_when_empty(self, worker: Worker) -> None:
        """Stop once nothing is ready and nothing runs."""
        threading.Thread(target=self._watch, args=(worker,), name="rota-until-empty", daemon=True).start()

    def wait(self, app: App, node: Node) -> int:
        """Wait for a reason to stop, stop, and return the exit code."""
        first = self.news()
        if node.worker is not None:
            node.worker.drain()  # first: a second signal must not return jobs that are then claimed again
        log.info(self._why(first, node))
        if self._asked_by in REPLACED:
            self.on_replaced()
        threading.Thread(target=self._stop, args=(app,), name="rota-stop", daemon=True).start()
        awaited = 1 if first == ASKED else 0  # who stops a whole service signals the parent and the worker
        while (news := self.news()) != STOPPED:
            is_signal = news > 0
            awaited -= is_signal
            if news == STOP_NOW or (is_signal and awaited < 0):
                log.warning("second stop signal received; returning running jobs to their queues")
                node.stop_now()
        return INTERRUPTED if first == signal.SIGINT else 0

    def news(self) -> int:
        """The next reason. A signal that comes just before the wait begins is handled at its next look, not never."""
        while True:
            try:
                return self._news.get(timeout=LOOK)
            except Empty:
                continue

    @property
    def is_asked_again(self) -> bool:
        """Whether there is a further reason that was not read yet."""
        return not self._news.empty()

    def _watch(self, worker: Worker) -> None:
        worker.is_idle.wait()
        self._news.put(EMPTY)

    def _stop(self, app: App) -> None:
        try:
            app.stop()
        finally:
            self._news.put(STOPPED)

    def _why(self, first: int, node: Node) -> str:
        if first == EMPTY:
            return "nothing is ready and nothing runs: stopping"
        running = node.running
        name = signal.Signals(first).name if first > 0 else self._asked_by
        if not running:
            return f"{name}: stopping"
        return f"{name}: waiting up to {node.settings.drain_for:g} s for {running} running; once more stops at once"
