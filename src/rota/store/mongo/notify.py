"""Notifications: a notification is a document in a small capped collection; a listener waits at its end.

If the connection breaks, the listener wakes for nothing when it is back: a notification may have been missed. A client
of the user's without socketTimeoutMS could wait for ever for a frozen server, so there the listener looks several times
a second instead.
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
LOOK_EVERY = 0.2  # seconds between two looks, where waiting there is not safe
OPEN_WITHIN = 4.0  # seconds until an attempt to open the cursor is given up
PAUSE = 0.5  # seconds between two attempts
AT_ONCE = 1  # ms: what a look at the end takes, where nothing is awaited
BATCH = 1_000


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
                if self._hears(min(left, SLICE)):
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
            with contextlib.suppress(PyMongoError, StoreError):
                self._connection.sent.notifications.insert_many([{"channel": self._name}])

    def close(self) -> None:
        self._woken.set()
        self._end.leave()

    def _open(self) -> bool:
        try:
            with pymongo.timeout(OPEN_WITHIN):
                return self._end.go_there()
        except (PyMongoError, StoreError):
            self._end.leave()
            return False

    def _hears(self, seconds: float) -> bool:
        """Wait at the end of the collection; whether a notification came."""
        with self._lock:
            if self._woken.is_set():
                return False
            self._is_waiting = True
        try:
            return self._end.hears(seconds)
        except (PyMongoError, StoreError):
            self._is_open = False
            self._end.leave()
            return False
        finally:
            with self._lock:
                self._is_waiting = False


class _Tail:
    """A cursor at the end of the collection, which the server holds open."""

    def __init__(self, connection: Connection, channels: list[str], woken: Event) -> None:
        self._connection = connection
        self._channels = channels
        self._cursor = 0
        self._session: ClientSession | None = None
        del woken  # wake() sends a notification, too

    def go_there(self) -> bool:
        """Open the cursor and read the notifications before; False if the collection is gone."""
        self.leave()
        db = self._connection.db
        self._session = self._connection.client.start_session()
        mine = {"channel": {"$in": self._channels}}
        options = {"tailable": True, "awaitData": True, "batchSize": BATCH}
        find = {"find": db.notifications.raw.name, "filter": mine, **options}
        reply = db.database.command(find, session=self._session)
        self._cursor = reply["cursor"]["id"]
        found = reply["cursor"]["firstBatch"]
        while self._cursor and found:
            with pymongo.timeout(None):
                found = self._more(AT_ONCE)
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
                db = self._connection.db
                with pymongo.timeout(1):
                    kill = {"killCursors": db.notifications.raw.name, "cursors": [cursor]}
                    db.database.command(kill, session=session)

    def _more(self, wait_ms: int) -> list[Document]:
        db = self._connection.db
        name = db.notifications.raw.name
        command = {"getMore": self._cursor, "collection": name, "batchSize": BATCH, "maxTimeMS": wait_ms}
        cursor = db.database.command(command, session=self._session)["cursor"]
        if not cursor["id"]:
            raise StoreError("the notifications were overwritten, or their collection was dropped")
        found: list[Document] = cursor["nextBatch"]
        return found


class _Poll:
    """A look at the last notification, several times a second."""

    def __init__(self, connection: Connection, channels: list[str], woken: Event) -> None:
        self._connection = connection
        self._channels = channels
        self._woken = woken
        self._seen: Any = None

    def go_there(self) -> bool:
        self._seen = self._last()
        return True

    def hears(self, seconds: float) -> bool:
        self._woken.wait(min(seconds, LOOK_EVERY))
        with pymongo.timeout(OPEN_WITHIN):
            last = self._last()
        is_new = bool(last != self._seen)
        self._seen = last
        return is_new

    def leave(self) -> None:
        """Nothing is held open."""

    def _last(self) -> Any:
        mine = {"channel": {"$in": self._channels}}
        found = self._connection.db.notifications.find_one(mine, sort=[("$natural", -1)])
        return found["_id"] if found else None


def send(connection: Connection, *channels: Channel) -> None:
    """Wake those who listen, of every process; a failure is ignored, since listeners also poll."""
    with contextlib.suppress(PyMongoError, StoreError):
        connection.sent.notifications.insert_many([{"channel": channel} for channel in channels])
