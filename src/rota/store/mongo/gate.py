"""The gate: leave to bring and take work for a moment, so that not every call has to ask whether the store is sealed.

Asking is a write of its own. Where a call is answered faster than that, a handle's token in the head document (see
`head`) stays there for a second, and calls that begin within it need no other. Whoever seals the store waits for it as
for any token: until the handle takes it out, which it does after that second, or until it is so old that no call which
began under it can still be at work.

What the server said at the last renewal also tells its clock, without asking: never ahead of it, and behind by no more
than that answer took.
"""

from __future__ import annotations

import secrets
import time
from contextlib import contextmanager, suppress
from threading import Lock, Timer
from typing import TYPE_CHECKING

import pymongo
from pymongo.errors import PyMongoError

from rota.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.store.mongo.connection import Connection
    from rota.store.mongo.head import Head

OPEN_FOR = 1.0  # seconds; with what a call may take, less than the age at which others forget a token
CLOSE_WITHIN = 1.0  # seconds: nobody waits longer for a server that is away
MS = 1_000  # microseconds: how finely the server tells its time


class Gate:
    """One handle's."""

    def __init__(self, connection: Connection, head: Head) -> None:
        self._connection = connection
        self._head = head
        self.reset()

    def reset(self) -> None:
        """Begin anew, as after a fork: a token is of one process, and a thread of another may hold the lock."""
        self._lock = Lock()
        self._token = secrets.token_hex(8)
        self._inside = 0
        self._shuts_at = 0.0  # by this process's clock
        self._is_held = False  # the token may be in the head document
        self._watch: Timer | None = None
        self._clock = (0, 0.0)  # the server's, and ours when that was heard

    @contextmanager
    def pass_through(self) -> Iterator[None]:
        """A call that brings or takes work: refused where the store is sealed."""
        with self._lock:
            self._inside += 1
        try:
            if not self.is_open:
                self._open()
            yield
        finally:
            with self._lock:
                self._inside -= 1
                self._leave_if_shut()

    def open(self) -> None:
        """Be ready for a call that will come in a moment."""
        with self.pass_through():
            pass

    @property
    def is_open(self) -> bool:
        return time.monotonic() < self._shuts_at

    def now(self) -> int:
        """The server's clock, while it is open."""
        told, at = self._clock
        return (told + int((time.monotonic() - at) * 1_000_000)) // MS * MS

    def hear(self, now: int) -> None:
        """What the server's clock says in an answer that has just come."""
        self._clock = (now, time.monotonic())

    def shut(self) -> None:
        """The store is sealed: the token goes as soon as nobody is inside."""
        with self._lock:
            self._shuts_at = 0.0
            self._leave_if_shut()

    def close(self) -> None:
        """Whoever seals need not wait for this handle."""
        if self._watch is not None:
            self._watch.cancel()
        if self._is_held:
            with suppress(PyMongoError, StoreError), pymongo.timeout(CLOSE_WITHIN):
                self._connection.quick.meta.update_one(*self._taking_out())
        self.reset()

    def _open(self) -> None:
        asked_at = time.monotonic()
        self._shuts_at = 0.0
        self._is_held = True
        document = self._head.begin(self._connection.space, self._token)
        self.hear(int(document["now"]))
        self._shuts_at = asked_at + OPEN_FOR
        with self._lock:
            if self._watch is None:
                self._look_again_after(OPEN_FOR)

    def _look_again_after(self, seconds: float) -> None:
        self._watch = Timer(seconds, self._look_after)
        self._watch.daemon = True
        self._watch.start()

    def _look_after(self) -> None:
        """Shut the gate behind the last one, for none who comes later might."""
        with self._lock:
            left = self._shuts_at - time.monotonic()
            if left > 0:
                self._look_again_after(left)
                return
            self._watch = None
            self._shuts_at = 0.0
            self._leave_if_shut()

    def _leave_if_shut(self) -> None:
        if self._inside or not self._is_held or self._shuts_at:
            return
        with suppress(PyMongoError, StoreError):  # whoever seals waits a little longer
            self._connection.quick.meta.update_one(*self._taking_out())
            self._is_held = False

    def _taking_out(self) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        return {"_id": "head"}, {"$unset": {f"busy.{self._token}": ""}}
