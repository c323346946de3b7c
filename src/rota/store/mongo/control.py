"""The control document: paused queues, the seal, the verbs in progress, some counts; read with the server's clock.

A verb that adds or claims work first writes its token into this document, if the store is not sealed, and removes it at
its end. A process that seals the store waits until all tokens are gone that were there before: the verbs that were
admitted have then ended.

The token names the verb's session. If the server has transactions, it keeps that of a client that died for a minute,
and with it the locks. No verb takes that long, so other nodes end such a session after ten seconds.
"""

from __future__ import annotations

import logging
import secrets
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct
from pymongo.errors import OperationFailure, PyMongoError

from rota.model.micros import SECOND
from rota.store.contract import Seal
from rota.store.mongo import notify, schema
from rota.store.mongo.codec import seq_of
from rota.store.mongo.connection import DEADLINE
from rota.store.mongo.counters import added_to
from rota.store.mongo.schema import CONTROL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.store.mongo.connection import Connection
    from rota.store.mongo.database import Document

log = logging.getLogger("rota.store")

NOW = {"$multiply": [{"$toLong": "$$NOW"}, 1000]}  # the server's clock in microseconds
STEP = 1_000  # microseconds: the resolution of that clock
DEAD_AFTER = int((DEADLINE + 2) * SECOND)  # the process of a token this old has died
READ_AGAIN = 0.005  # seconds between two reads of a process that seals the store


class Turn(Struct, frozen=True, kw_only=True):
    """What a verb learns when it begins."""

    now: int
    paused: frozenset[str] = frozenset()
    counted: str | None = None  # the queue of a new job that it has counted already


class _Token(NamedTuple):
    """A verb in progress: since when, and the session of its transactions."""

    token: str
    at: int
    session: Any


class ControlDocument:
    """One namespace's control document."""

    def __init__(self, connection: Connection, describe: str) -> None:
        self._connection = connection
        self._describe = describe

    def turn(self, now: int | None) -> Turn:
        """The state of the store, for a verb that a seal does not refuse."""
        return _turn_of(self._read(), now)

    def now(self, now: int | None) -> int:
        return self.turn(None).now if now is None else now

    @contextmanager
    def work(self, now: int | None, queue: str | None = None) -> Iterator[Turn]:
        """The turn of a verb that adds or claims work. It is refused if the store is sealed. With a queue, it counts a
        new job of that queue, if there is room for the number."""
        token = secrets.token_hex(8)
        with self._connection.session() as session:
            document = self._begin(token, session.session_id["id"], added_to(queue) if queue else {})
            try:
                yield _turn_of(document, now, queue)
            finally:
                with suppress(PyMongoError):  # a process that seals the store waits a little longer
                    self._connection.sent.meta.update_one(CONTROL, {"$unset": {f"busy.{token}": ""}})

    def next_position(self) -> int:
        """A position in the order of jobs: after all that exist, before all that will."""
        update = {"$currentDate": {"position": {"$type": "timestamp"}}}
        found = self._connection.quick.meta.find_one_and_update(CONTROL, update)
        if found is None:
            self._create_again()
            return self.next_position()
        return int(seq_of(found["position"]))

    # The seal.

    def seal(self, seal: Seal | None) -> None:
        """Seal the store (None: unseal it), and wait for the verbs that were admitted before."""
        packed = None if seal is None else msgspec.json.encode(seal).decode()
        with self._connection.call() as db:
            self._read()  # creates it if somebody emptied the database
            db.meta.update_one(CONTROL, {"$set": {"seal": packed}})
        while seal is not None and self._is_busy():
            time.sleep(READ_AGAIN)
        notify.send(self._connection, "jobs", "schedules")

    def sealed(self) -> Seal | None:
        with self._connection.call():
            return _seal_of(self._read())

    def refuse_if_sealed(self, document: Document) -> None:
        seal = _seal_of(document)
        if seal is not None:
            raise seal.refusal(self._describe)

    # Processes that died.

    def end_dead(self) -> None:
        """Remove the tokens of processes that died during a verb, and end their transactions."""
        document = self._read()
        dead = [token for token in _tokens(document) if token.at < document["now"] - DEAD_AFTER]
        sessions = [{"id": token.session} for token in dead if token.session]
        db = self._connection.db
        if sessions:
            with suppress(OperationFailure):  # without the right to do it, the server's own time limit ends them
                db.database.command({"killSessions": sessions})
        if dead:
            db.meta.update_one(CONTROL, {"$unset": {f"busy.{token.token}": "" for token in dead}})

    # Queues.

    def pause(self, queue: str, *, paused: bool) -> None:
        change = {"$addToSet" if paused else "$pull": {"paused": queue}}
        if not self._connection.db.meta.update_one({**CONTROL, "seal": None}, change).matched_count:
            self.refuse_if_sealed(self._read())

    # Reading and writing it.

    def _begin(self, token: str, session_id: Any, added: Document) -> Document:
        """Write a token and a count if the store is not sealed; the control document as it is then."""
        entry = {"at": NOW, "session": {"$literal": session_id}}
        found = self._connection.quick.meta.find_one_and_update(
            {**CONTROL, "seal": None},
            [{"$set": {"now": NOW, f"busy.{token}": entry, **added}}],
            projection=["now", "paused", *added],
        )
        if found is None:
            self.refuse_if_sealed(self._read())
            return self._begin(token, session_id, added)  # it was unsealed, or created again, between the two
        return found

    def _read(self) -> Document:
        found = self._connection.db.meta.find_one(CONTROL, {"now": NOW, "paused": 1, "seal": 1, "busy": 1})
        if found is None:
            self._create_again()
            return self._read()
        return found

    def _create_again(self) -> None:
        """Somebody dropped the database: what it held is lost, and work goes on in an empty one."""
        log.error("%s has lost all that Rota kept in it: it was dropped or emptied; creating it again", self._describe)
        schema.create(self._connection.db)

    def _is_busy(self) -> bool:
        with self._connection.call():
            document = self._read()
        return any(token.at > document["now"] - DEAD_AFTER for token in _tokens(document))


def paused_in(document: Document) -> frozenset[str]:
    return frozenset(document.get("paused", ()))


def _turn_of(document: Document, now: int | None, queue: str | None = None) -> Turn:
    at = int(document["now"]) if now is None else now
    return Turn(now=at, paused=paused_in(document), counted=queue if document.get("added") else None)


def _tokens(document: Document) -> list[_Token]:
    busy = (document.get("busy") or {}).items()
    return [_Token(token, int(entry["at"]), entry["session"]) for token, entry in busy]


def _seal_of(document: Document) -> Seal | None:
    packed = document.get("seal")
    return None if packed is None else msgspec.json.decode(packed, type=Seal)
