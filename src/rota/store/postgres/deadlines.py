"""Ends calls that the server does not answer in time, from this side.

A frozen server or a half-open connection keeps a socket silent for hours, and a pooler accepts no statement_timeout. So
one thread watches the calls in progress. It cancels a call that is late, and cuts the connection if even that gets no
answer.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any

import psycopg

TICK = 0.25
GRACE = 1.0  # seconds between the cancel request and the cut


@dataclass(slots=True)
class Call:
    """One call in progress."""

    until: float
    is_late: bool = False


class Deadlines:
    """Watches the calls of one store."""

    def __init__(self) -> None:
        self._calls: dict[psycopg.Connection[Any], Call] = {}
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def number(self) -> int:
        """How many calls are in progress."""
        return len(self._calls)

    def begin(self, connection: psycopg.Connection[Any], seconds: float) -> Call:
        """From here to `end`, all calls on this connection together may take so many seconds."""
        if self._thread is None:
            self._start()
        call = self._calls[connection] = Call(time.monotonic() + seconds)
        return call

    def end(self, connection: psycopg.Connection[Any]) -> None:
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
                self._thread = threading.Thread(
                    target=self._watch, args=(self._closed,), name="rota-postgres-deadlines", daemon=True
                )
                self._thread.start()

    def _watch(self, closed: threading.Event) -> None:
        while not closed.wait(TICK):
            now = time.monotonic()
            for connection, call in list(self._calls.items()):
                if call.until <= now:
                    self._stop(connection, call, now)

    def _stop(self, connection: psycopg.Connection[Any], call: Call, now: float) -> None:
        if not call.is_late:
            call.is_late = True
            threading.Thread(target=_cancel, args=(connection,), name="rota-postgres-cancel", daemon=True).start()
        elif call.until + GRACE <= now:
            cut(connection)


def _cancel(connection: psycopg.Connection[Any]) -> None:
    """Ask the server to stop. A frozen one never answers, and nobody waits for it."""
    with contextlib.suppress(psycopg.Error, OSError):
        connection.cancel_safe(timeout=GRACE)


def cut(connection: psycopg.Connection[Any]) -> None:
    """Shut the socket under a call that waits for an answer: the call ends with an error."""
    failures = contextlib.suppress(psycopg.Error, OSError, ValueError)
    with failures, socket.socket(fileno=os.dup(connection.fileno())) as duplicate:
        duplicate.shutdown(socket.SHUT_RDWR)
