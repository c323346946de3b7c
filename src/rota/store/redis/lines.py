"""Lines: connections at hand. A pool that is ours is asked for one only when none lies ready."""

from __future__ import annotations

import os
import select
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis import ConnectionPool


class Lines:
    """Connections of a pool; those of a pool that is not ours go back to it after every call."""

    def __init__(self, pool: ConnectionPool, *, keep: bool) -> None:
        self._pool: Any = pool
        self._keep = keep
        self._ready: list[Any] = []  # the last used comes first; a list's end is safe among threads
        self._pid = os.getpid()

    @contextmanager
    def taken(self) -> Iterator[Any]:
        """A connection for one call; one that broke is not used again."""
        connection = self._take()
        try:
            yield connection
        except BaseException:
            self._pool.release(connection)
            raise
        if self._keep:
            self._ready.append(connection)
        else:
            self._pool.release(connection)

    def close(self) -> None:
        while self._ready:
            self._pool.release(self._ready.pop())

    def _take(self) -> Any:
        if self._pid != os.getpid():  # a fork's connections are its parent's
            self._pid, self._ready = os.getpid(), []
        while self._ready:
            connection = self._ready.pop()
            if _is_quiet(connection):
                return connection
            connection.disconnect()
            self._pool.release(connection)
        return self._pool.get_connection()


def _is_quiet(connection: Any) -> bool:
    """Whether nothing has come since its last answer: a server that went away has left an end to read."""
    link = connection._sock  # noqa: SLF001 - the driver's own look costs more than the call
    if link is None:
        return False
    watch = select.poll()
    watch.register(link, select.POLLIN)
    return not watch.poll(0)
