"""Bells: a ring is a document in a small capped collection; whoever waits stands at its end, in the waiting thread.

Where the link breaks, the bell rings for nothing as soon as it hangs again: something may have been missed. A client
of the user's that has no socketTimeoutMS could be kept waiting for ever by a frozen server, so there the bell looks
several times a second instead of waiting at the end.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import pymongo
from pymongo.errors import PyMongoError

from rota.errors import StoreError
from rota.store.contract import Bell

if TYPE_CHECKING:
    from pymongo.client_session import ClientSession

    from rota.store.contract import Channel
    from rota.store.mongo.connection import Connection
    from rota.store.mongo.space import Document

SLICE = 1.0  # seconds of one wait at the server
LOOK_EVERY = 0.2  # seconds between two looks, where waiting there is not safe
HANG_WITHIN = 4.0  # seconds until an attempt to hang the bell is given up
PAUSE = 0.5  # seconds between two attempts
AT_ONCE = 1  # ms: what a look at the end takes, where nothing is awaited
BATCH = 1_000


class MongoBell(Bell):
    """One listener. Its own name is a channel, too, so that ring() wakes this one and no other."""

    def __init__(self, connection: Connection, channel: Channel) -> None:
        self._connection = connection
        self._name = f"{channel}-{secrets.token_hex(8)}"
        self._rung = Event()
        self._lock = Lock()
        self._is_waiting = False  # at the server
        has_timeout = connection.client.options.pool_options.socket_timeout is not None
        self._end = (_Tail if has_timeout else _Lookout)(connection, [channel, self._name], self._rung)
        self._is_hung = self._hang()

    def wait(self, timeout: float) -> bool:
        until = time.monotonic() + timeout
        while True:
            if self._rung.is_set():
                self._rung.clear()
                return True
            left = until - time.monotonic()
            if left <= 0:
                return False
            if self._is_hung:
                if self._hears(min(left, SLICE)):
                    return True
            elif self._hang():
                self._is_hung = True
                return True
            else:
                self._rung.wait(min(left, PAUSE))

    def ring(self) -> None:
        with self._lock:
            must_send, self._is_waiting = self._is_waiting, False
            self._rung.set()
        if must_send:
            with contextlib.suppress(PyMongoError, StoreError):
                self._connection.sent.bells.insert_one({"channel": self._name})

    def close(self) -> None:
        self._rung.set()
        self._end.leave()

    def _hang(self) -> bool:
        try:
            with pymongo.timeout(HANG_WITHIN):
                return self._end.go_there()
        except (PyMongoError, StoreError):
            self._end.leave()
            return False

    def _hears(self, seconds: float) -> bool:
        """Stand at the end of the rings for a while; whether one came."""
        with self._lock:
            if self._rung.is_set():
                return False
            self._is_waiting = True
        try:
            return self._end.hears(seconds)
        except (PyMongoError, StoreError):
            self._is_hung = False
            self._end.leave()
            return False
        finally:
            with self._lock:
                self._is_waiting = False


class _Tail:
    """A cursor at the end of the rings, which the server holds open."""

    def __init__(self, connection: Connection, channels: list[str], rung: Event) -> None:
        self._connection = connection
        self._channels = channels
        self._cursor = 0
        self._session: ClientSession | None = None
        del rung  # what is rung by hand comes as a ring, too

    def go_there(self) -> bool:
        """Open the cursor and read what was rung before; False where there is no end to stand at."""
        self.leave()
        space = self._connection.space
        self._session = self._connection.client.start_session()
        mine = {"channel": {"$in": self._channels}}
        options = {"tailable": True, "awaitData": True, "batchSize": BATCH}
        reply = space.database.command({"find": space.bells.name, "filter": mine, **options}, session=self._session)
        self._cursor = reply["cursor"]["id"]
        rings = reply["cursor"]["firstBatch"]
        while self._cursor and rings:
            with pymongo.timeout(None):
                rings = self._more(AT_ONCE)
        return bool(self._cursor)

    def hears(self, seconds: float) -> bool:
        return bool(self._more(max(AT_ONCE, int(seconds * 1000))))

    def leave(self) -> None:
        cursor, self._cursor = self._cursor, 0
        session, self._session = self._session, None
        if session is None:
            return
        with contextlib.suppress(PyMongoError, StoreError), session:
            if cursor:
                space = self._connection.space
                with pymongo.timeout(1):
                    space.database.command({"killCursors": space.bells.name, "cursors": [cursor]}, session=session)

    def _more(self, wait_ms: int) -> list[Document]:
        space = self._connection.space
        command = {"getMore": self._cursor, "collection": space.bells.name, "batchSize": BATCH, "maxTimeMS": wait_ms}
        cursor = space.database.command(command, session=self._session)["cursor"]
        if not cursor["id"]:
            raise StoreError("the rings passed by, or their collection was dropped")
        rings: list[Document] = cursor["nextBatch"]
        return rings


class _Lookout:
    """A look at the last ring, several times a second."""

    def __init__(self, connection: Connection, channels: list[str], rung: Event) -> None:
        self._connection = connection
        self._channels = channels
        self._rung = rung
        self._seen: Any = None

    def go_there(self) -> bool:
        self._seen = self._last()
        return True

    def hears(self, seconds: float) -> bool:
        self._rung.wait(min(seconds, LOOK_EVERY))
        with pymongo.timeout(HANG_WITHIN):
            last = self._last()
        is_new = bool(last != self._seen)
        self._seen = last
        return is_new

    def leave(self) -> None:
        """Nothing is held open."""

    def _last(self) -> Any:
        mine = {"channel": {"$in": self._channels}}
        found = self._connection.space.bells.find_one(mine, sort=[("$natural", -1)])
        return found["_id"] if found else None


def ring(connection: Connection, *channels: Channel) -> None:
    """Wake those who listen, of every process; not worth a failure, since polling is the net under it."""
    with contextlib.suppress(PyMongoError, StoreError):
        connection.sent.bells.insert_many([{"channel": channel} for channel in channels], ordered=False)
