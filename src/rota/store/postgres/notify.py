"""Notifications over LISTEN/NOTIFY: one connection of its own listens for this whole process.

Behind a pooler in transaction mode nobody can listen. Then listeners hear only of what this process itself writes,
workers poll every two seconds, and that is logged once.
"""

from __future__ import annotations

import logging
import random
import select
import threading
from typing import TYPE_CHECKING, Any

import psycopg

from rota.errors import StoreError
from rota.store.postgres.calls import checked
from rota.store.postgres.deadlines import cut
from rota.store.shared import forks
from rota.store.shared.notify import LocalNotifier

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.store.contract import Channel
    from rota.store.shared.notify import LocalListener

log = logging.getLogger("rota.store.postgres")

CHANNELS: tuple[Channel, ...] = ("jobs", "schedules")
QUIET = 15.0  # seconds after which the line is tried
LONGEST_PAUSE = 5.0
START_WITHIN = 5.0  # seconds that the first listener waits for the line


class Notifier:
    """All listeners of one store in one process."""

    def __init__(self, namespace: str, connect: Callable[[], psycopg.Connection[Any] | None]) -> None:
        self._namespace = namespace
        self._connect = connect  # None: nobody can listen there
        self._line: psycopg.Connection[Any] | None = None
        self._begin()

    def _begin(self) -> None:
        self._local = LocalNotifier()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._hears = threading.Event()  # the line is up
        self._tried = threading.Event()  # … or was found to be impossible, or out of reach
        self._closed = threading.Event()

    def after_fork(self) -> None:
        """In a child: the thread that listens is the parent's, and so is its connection."""
        forks.abandon(self._line)
        self._line = None
        self._begin()

    def listen(self, channel: Channel) -> LocalListener:
        """A listener that hears everybody from now on, where that is possible."""
        listener = self._local.listen(channel)
        with self._lock:
            if self._thread is None:
                self._closed = threading.Event()
                self._thread = threading.Thread(target=self._listen, name="rota-postgres-listener", daemon=True)
                self._thread.start()
        self._tried.wait(START_WITHIN)
        return listener

    def notify(self, channel: Channel) -> None:
        """Wake who waits in this process; where the line is up, it says so to everybody."""
        if not self._hears.is_set():
            self._local.notify(channel)

    def close(self) -> None:
        with self._lock:
            thread, self._thread = self._thread, None
            self._closed.set()
        if thread is None:
            return
        line = self._line
        if line is not None:
            cut(line)
        thread.join(START_WITHIN)
        self._tried.clear()
        self._hears.clear()

    def _listen(self) -> None:
        """Hear until the store is closed; a broken line is mended with growing, jittered pauses."""
        faults = 0
        while not self._closed.is_set():
            try:
                line = self._connect()
                if line is None:
                    self._tried.set()
                    return
                with line:
                    self._line = line
                    faults = 0
                    self._hear(line)
            except (psycopg.Error, StoreError, OSError) as err:
                if not self._closed.is_set():
                    log.debug("the line that hears of new jobs is broken: %s", err)
            finally:
                self._line = None
                self._hears.clear()
                self._tried.set()
            faults += 1
            pause = min(LONGEST_PAUSE, 0.2 * 2 ** min(faults, 6))
            self._closed.wait(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads a crowd, guards nothing

    def _hear(self, line: psycopg.Connection[Any]) -> None:
        names: dict[str, Channel] = {f"{self._namespace}_{channel}": channel for channel in CHANNELS}
        line.execute("; ".join(f'LISTEN "{name}"' for name in names).encode(), prepare=False)
        self._hears.set()
        self._tried.set()
        for channel in CHANNELS:
            self._local.notify(channel)  # what came while nobody heard
        watch = select.poll()
        watch.register(line.fileno(), select.POLLIN)
        while not self._closed.is_set():
            for channel in _heard(line, names):
                self._local.notify(channel)
            if not watch.poll(QUIET * 1000):
                _try_line(line)


def _heard(line: psycopg.Connection[Any], names: dict[str, Channel]) -> set[Channel]:
    """What has come in, without waiting for more; the driver's own way wakes up ten times a second."""
    line.pgconn.consume_input()
    heard = set()
    while (notice := line.pgconn.notifies()) is not None:
        heard.add(notice.relname.decode())
    return {names[name] for name in heard & names.keys()}


def _try_line(line: psycopg.Connection[Any]) -> None:
    """A half-open line is as quiet as an idle one: ask for a word, and cut it where none comes."""
    timer = threading.Timer(QUIET, cut, (line,))
    timer.daemon = True
    timer.start()
    try:
        checked(line, line.pgconn.exec_(b"SELECT 1"))  # the driver would keep what is told meanwhile to itself
    finally:
        timer.cancel()
