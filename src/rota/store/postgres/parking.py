"""Connections at hand: the one used last is used next, so that its server process has all it needs in its caches.

The pool itself hands out the one that rested longest, and with several threads about, each call then wakes a process
that has forgotten everything.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from psycopg.pq import TransactionStatus

if TYPE_CHECKING:
    import psycopg
    from psycopg_pool import ConnectionPool

MOST = 2  # connections kept from the pool: a worker has two calls under way at most
BACK_AFTER = 300.0  # seconds after which one goes back, so that the pool can replace what is too old


class Parking:
    """Connections of one pool that are between two calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ConnectionPool[Any] | None = None
        self._parked: list[psycopg.Connection[Any]] = []
        self._waiting = 0  # threads that ask the pool itself: whatever comes free is theirs
        self._back_at = 0.0

    def open_for(self, pool: ConnectionPool[Any]) -> None:
        self._turn_to(pool)

    def close(self, pool: ConnectionPool[Any]) -> None:
        """Give back what is of this pool; what is under way goes back when it ends."""
        if self._pool is pool:
            self._turn_to(None)

    def _turn_to(self, pool: ConnectionPool[Any] | None) -> None:
        with self._lock:
            older, self._pool = self._pool, pool
            parked, self._parked = self._parked, []
        for connection in parked:
            if older is not None:
                older.putconn(connection)

    def take(self, pool: ConnectionPool[Any], timeout: float) -> psycopg.Connection[Any]:
        with self._lock:
            if self._parked and self._pool is pool:
                return self._parked.pop()
            self._waiting += 1
        try:
            connection: psycopg.Connection[Any] = pool.getconn(timeout=timeout)
            return connection
        finally:
            with self._lock:
                self._waiting -= 1

    def give(self, pool: ConnectionPool[Any], connection: psycopg.Connection[Any]) -> None:
        with self._lock:
            if self._may_stay(pool, connection):
                self._parked.append(connection)
                return
        pool.putconn(connection)

    def _may_stay(self, pool: ConnectionPool[Any], connection: psycopg.Connection[Any]) -> bool:
        if pool is not self._pool or self._waiting or len(self._parked) >= MOST:
            return False
        if connection.pgconn.transaction_status != TransactionStatus.IDLE:
            return False
        now = time.monotonic()
        if now < self._back_at:
            return True
        self._back_at = now + BACK_AFTER
        return False
