"""Deadlines: a call that the server does not answer in time is ended from this side.

A frozen server or a half-open link keeps a socket quiet for hours, and a pooler takes no statement_timeout from us. So
one thread looks at the calls that are under way: who is late is cancelled, and cut off where even that gets no answer.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator

TICK = 0.25
GRACE = 1.0  # seconds between asking the server to stop and cutting the line


class Call:
    """One call under way."""

    __slots__ = ("cut_at", "is_late", "until")

    def __init__(self, until: float) -> None:
        self.until = until
        self.cut_at = until + GRACE
        self.is_late = False


class Deadlines:
    """Watches the calls of one store."""

    def __init__(self) -> None:
        self._calls: dict[psycopg.Connection[Any], Call] = {}
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @contextmanager
    def within(self, connection: psycopg.Connection[Any], seconds: float) -> Iterator[Call]:
        """The block's calls on this connection end after so many seconds, one way or the other."""
        if self._thread is None:
            self._start()
        call = Call(time.monotonic() + seconds)
        self._calls[connection] = call
        try:
            yield call
        finally:
            self._calls.pop(connection, None)

    def close(self) -> None:
        self._closed.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self._closed = threading.Event()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                closed = self._closed
                self._thread = threading.Thread(
                    target=self._watch, args=(closed,), name="rota-postgres-deadlines", daemon=True
                )
                self._thread.start()

    def _watch(self, closed: threading.Event) -> None:
        while not closed.wait(TICK):
            now = time.monotonic()
            for connection, call in list(self._calls.items()):
                if call.until <= now:
                    self._end(connection, call, now)

    def _end(self, connection: psycopg.Connection[Any], call: Call, now: float) -> None:
        if not call.is_late:
            call.is_late = True
            threading.Thread(target=_cancel, args=(connection,), name="rota-postgres-cancel", daemon=True).start()
        elif call.cut_at <= now:
            cut(connection)


def _cancel(connection: psycopg.Connection[Any]) -> None:
    """Ask the server to stop; a frozen one never answers, nor is it waited for."""
    with contextlib.suppress(psycopg.Error, OSError):
        connection.cancel_safe(timeout=GRACE)


def cut(connection: psycopg.Connection[Any]) -> None:
    """Close the line under a call that waits for an answer: it ends with an error."""
    with contextlib.suppress(psycopg.Error, OSError, ValueError):
        line = socket.socket(fileno=os.dup(connection.fileno()))
        with line:
            line.shutdown(socket.SHUT_RDWR)
