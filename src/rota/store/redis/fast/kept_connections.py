"""Keeps connections of Rota's own pool between calls.

The pool checks each connection and counts it when it is taken and returned, which is a fifth of the CPU of one enqueue.
A connection that was idle for some time goes through the pool again, which replaces it if the server has closed it.
"""

from __future__ import annotations

import time
from typing import Any

from redis.exceptions import ResponseError

from rota.store.shared import forks

MOST_IDLE = 0.01  # seconds; a server that restarts takes longer


class KeptConnections(forks.Forked):
    """The connections of one pool that no call uses now, and since when. Lists are atomic, so it needs no lock."""

    def __init__(self, pool: Any, *, is_ours: bool) -> None:
        self._pool = pool
        self._is_ours = is_ours  # from a pool of the caller's, none is kept
        self._kept: list[tuple[Any, float]] = []
        forks.register(self)

    def after_fork(self) -> None:
        """In the child. The driver closes no connection that another process opened."""
        self._kept = []

    def call(self, *parts: str | bytes) -> Any:
        """Send a command, and return the answer as bytes."""
        connection = self._take()
        try:
            connection.send_command(*parts)
            answer = connection.read_response(disable_decoding=True)
        except ResponseError:
            self._keep(connection)
            raise
        except BaseException:  # what is left to read, if it is still open, is for the pool to find out
            self._pool.release(connection)
            raise
        self._keep(connection)
        return answer

    def release(self) -> None:
        """Return all to the pool."""
        while self._kept:
            self._pool.release(self._kept.pop()[0])

    def _take(self) -> Any:
        try:
            connection, since = self._kept.pop()
        except IndexError:
            return self._pool.get_connection()
        if time.monotonic() - since <= MOST_IDLE:
            return connection
        self._pool.release(connection)
        return self._pool.get_connection()

    def _keep(self, connection: Any) -> None:
        if self._is_ours:
            self._kept.append((connection, time.monotonic()))
        else:
            self._pool.release(connection)
