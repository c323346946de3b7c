"""Notifications: a notification is a document in a small capped collection; a listener waits at its end.

If the connection breaks, the listener wakes for nothing when it is back: a notification may have been missed. A client
of the caller's without socketTimeoutMS could wait forever for a frozen server, so a listener on such a client reads the
last notification several times a second instead.
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
from rota.store.contract import Listener

if TYPE_CHECKING:
    from pymongo.client_session import ClientSession

    from rota.store.contract import Channel
    from rota.store.mongo.connection import Connection
    from rota.store.mongo.database import Document

SLICE = 1.0  # seconds of one wait at the server
READ_EVERY = 0.2  # seconds between two reads, if waiting at the server is not safe
OPEN_WITHIN = 4.0  # seconds for an attempt to open the cursor
PAUSE = 0.5  # seconds between two attempts
AT_ONCE = 1  # ms: the shortest wait at the server
BATCH = 1_000


def send(connection: Connection, *channels: str) -> None:
    """Wake the listeners of all processes. A failure is ignored, since listeners also poll."""
    with contextlib.suppress(PyMongoError, StoreError):
        connection.sent.notifications.insert_many([{"channel": channel} for channel in channels])


class MongoListener(Listener):
    """One listener. Its own name is a channel, too, so that wake() wakes this one and no other."""

    def __init__(self, connection: Connection, channel: Channel) -> None:
        self._connection = connection
        self._name = f"{channel}-{secrets.token_hex(8)}"
        self._woken = Event()
        self._lock = Lock()
        self._is_waiting = False  # at the server
        has_timeout = connection.client.options.pool_options.socket_timeout is not None
        self._end = (_Tail if has_timeout else _Poll)(connection, [channel, self._name], self._woken)
        self._is_open = self._open()

    def wait(self, timeout: float) -> bool:
        until = time.monotonic() + timeout
        while True:
            if self._woken.is_set():
                self._woken.clear()
                return True
            left = until - time.monotonic()
            if left <= 0:
                return False
            if self._is_open:
                if self._wait_there(min(left, SLICE)):
                    return True
            elif self._open():
                self._is_open = True
                return True
            else:
                self._woken.wait(min(left, PAUSE))

    def wake(self) -> None:
        with self._lock:
            must_send, self._is_waiting = self._is_waiting, False
            self._woken.set()
        if must_send:
            send(self._connection, self._name)

    def close(self) -> None:
        self._woken.set()
        self._end.close()

    def _open(self) -> bool:
        try:
            with pymongo.timeout(OPEN_WITHIN):
                return self._end.open()
        except (PyMongoError, StoreError):
            self._end.close()
            return False

    def _wait_there(self, seconds: float) -> bool:
        """Wait at the end of the collection; whether a notification came."""
        with self._lock:
            if self._woken.is_set():
                return False
            self._is_waiting = True
        try:
            return self._end.wait(seconds)
        except (PyMongoError, StoreError):
            self._is_open = False
            self._end.close()
            return False
        finally:
            with self._lock:
                self._is_waiting = False


class _End:
    """The end of the collection, as a listener on some channels sees it."""

    def __init__(self, connection: Connection, channels: list[str], woken: Event) -> None:
        self._connection = connection
        self._mine = {"channel": {"$in": channels}}
        self._woken = woken


class _Tail(_End):
    """A cursor at the end of the collection, which the server holds open."""

    _cursor = 0
    _session: ClientSession | None = None

    def open(self) -> bool:
        """Open the cursor and read the notifications before; False if the collection is gone."""
        self.close()
        self._session = self._connection.client.start_session()
        cursor = self._command("find", filter=self._mine, tailable=True, awaitData=True, batchSize=BATCH)
        self._cursor, found = cursor["id"], cursor["firstBatch"]
        while self._cursor and found:
            with pymongo.timeout(None):
                found = self._more(AT_ONCE)
        return bool(self._cursor)

    def wait(self, seconds: float) -> bool:
        return bool(self._more(max(AT_ONCE, int(seconds * 1000))))

    def close(self) -> None:
        cursor, self._cursor = self._cursor, 0
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(PyMongoError, StoreError), session, pymongo.timeout(1):
                if cursor:
                    db = self._connection.db
                    command = {"killCursors": db.notifications.raw.name, "cursors": [cursor]}
                    db.database.command(command, session=session)

    def _more(self, wait_ms: int) -> list[Document]:
        name = self._connection.db.notifications.raw.name
        cursor = self._command("getMore", self._cursor, collection=name, batchSize=BATCH, maxTimeMS=wait_ms)
        if not cursor["id"]:
            raise StoreError("the notifications were overwritten, or their collection was dropped")
        found: list[Document] = cursor["nextBatch"]
        return found

    def _command(self, name: str, value: Any = None, **options: Any) -> Document:
        db = self._connection.db
        command = {name: db.notifications.raw.name if value is None else value, **options}
        cursor: Document = db.database.command(command, session=self._session)["cursor"]
        return cursor


class _Poll(_End):
    """Reads the last notification several times a second."""

    _seen: Any = None

    def open(self) -> bool:
        self._read()
        return True

    def wait(self, seconds: float) -> bool:
        self._woken.wait(min(seconds, READ_EVERY))
        with pymongo.timeout(OPEN_WITHIN):
            return self._read()

    def close(self) -> None:
        """Nothing is held open."""

    def _read(self) -> bool:
        """Whether there is a notification that was not seen yet."""
        found = self._connection.db.notifications.find_one(self._mine, {"_id": 1}, sort=[("$natural", -1)])
        seen, self._seen = self._seen, found and found["_id"]
        return bool(seen != self._seen)
