"""Notifications over LISTEN/NOTIFY: one connection of its own listens for this whole process.

Behind a pooler in transaction mode, no connection can listen. Then listeners get only the notifications of this
process, workers poll every two seconds, and one warning is logged.
"""

from __future__ import annotations

import logging
import random
import select
import threading
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.pq import ExecStatus

from rota.errors import StoreError
from rota.store.postgres.deadlines import cut
from rota.store.shared import forks
from rota.store.shared.notify import LocalNotifier

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.store.contract import Channel
    from rota.store.shared.notify import LocalListener

log = logging.getLogger("rota.store.postgres")

CHANNELS: tuple[Channel, ...] = ("jobs", "schedules")
QUIET = 15.0  # seconds without a notification after which the connection is checked
LONGEST_PAUSE = 5.0
START_WITHIN = 5.0  # seconds that the first listener waits for the connection


class Notifier:
    """All listeners of one store in one process."""

    def __init__(self, namespace: str, connect: Callable[[], psycopg.Connection[Any] | None]) -> None:
        self._namespace = namespace
        self._connect = connect  # gives None if listening is impossible
        self._connection: psycopg.Connection[Any] | None = None
        self._begin()

    def _begin(self) -> None:
        self._local = LocalNotifier()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_listening = threading.Event()
        self._was_tried = threading.Event()  # listening, or impossible, or out of reach
        self._closed = threading.Event()

    def after_fork(self) -> None:
        """In a child: the listening thread and its connection belong to the parent."""
        forks.abandon(self._connection)
        self._connection = None
        self._begin()

    def listen(self, channel: Channel) -> LocalListener:
        """A listener for the writes of all processes, or of this one if listening is impossible."""
        listener = self._local.listen(channel)
        with self._lock:
            if self._thread is None:
                self._closed = threading.Event()
                self._thread = threading.Thread(target=self._listen, name="rota-postgres-listener", daemon=True)
                self._thread.start()
        self._was_tried.wait(START_WITHIN)
        return listener

    def notify(self, channel: Channel) -> None:
        """Wake the listeners of this process, unless the listening connection does."""
        if not self._is_listening.is_set():
            self._local.notify(channel)

    def close(self) -> None:
        with self._lock:
            thread, self._thread = self._thread, None
            self._closed.set()
        if thread is None:
            return
        connection = self._connection
        if connection is not None:
            cut(connection)
        thread.join(START_WITHIN)
        self._was_tried.clear()
        self._is_listening.clear()

    def _listen(self) -> None:
        """Listen until the store is closed; reconnect after a fault with growing pauses and jitter."""
        faults = 0
        while not self._closed.is_set():
            try:
                connection = self._connect()
                if connection is None:
                    return
                with connection:
                    self._connection = connection
                    faults = 0
                    self._receive(connection)
            except (psycopg.Error, StoreError, OSError) as err:
                if not self._closed.is_set():
                    log.debug("the connection that listens for new jobs is broken: %s", err)
            finally:
                self._connection = None
                self._is_listening.clear()
                self._was_tried.set()
            faults += 1
            pause = min(LONGEST_PAUSE, 0.2 * 2 ** min(faults, 6))
            self._closed.wait(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads many clients, guards nothing

    def _receive(self, connection: psycopg.Connection[Any]) -> None:
        names: dict[str, Channel] = {f"{self._namespace}_{channel}": channel for channel in CHANNELS}
        connection.execute("; ".join(f'LISTEN "{name}"' for name in names).encode(), prepare=False)
        self._is_listening.set()
        self._was_tried.set()
        for channel in CHANNELS:
            self._local.notify(channel)  # notifications may have been missed before
        watch = select.poll()
        watch.register(connection.fileno(), select.POLLIN)
        while not self._closed.is_set():
            for channel in received(connection, names):
                self._local.notify(channel)
            if not watch.poll(QUIET * 1000):
                check_connection(connection)


def received(connection: psycopg.Connection[Any], names: dict[str, Channel]) -> set[Channel]:
    """The notifications that have arrived, without waiting. The driver's own iterator wakes up ten times a second."""
    connection.pgconn.consume_input()
    found = set()
    while (notification := connection.pgconn.notifies()) is not None:
        found.add(notification.relname.decode())
    return {names[name] for name in found & names.keys()}


def check_connection(connection: psycopg.Connection[Any]) -> None:
    """A half-open connection is as silent as an idle one: ask for an answer, and cut it if none comes."""
    timer = threading.Timer(QUIET, cut, (connection,))
    timer.daemon = True
    timer.start()
    try:
        # The driver's cursor would drop notifications that come meanwhile.
        result = connection.pgconn.exec_(b"SELECT 1")
        if result.status != ExecStatus.TUPLES_OK:
            raise psycopg.OperationalError("the listening connection is gone")
    finally:
        timer.cancel()
