"""The head document: the server's clock, paused queues and the seal; read once per verb.

Verbs that bring or want work begin by writing their token into it, where it is not sealed, and end by taking it out.
Whoever seals the store waits until no token is left that was there before: what was let in has then come to its end.

Where the server has transactions, the token names the verb's session. A server keeps the transaction of a client that
died, with all that it had touched, for a minute. No verb takes that long: others end such a session after ten seconds.
"""

from __future__ import annotations

import logging
import secrets
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct
from pymongo import ReturnDocument
from pymongo.errors import OperationFailure, PyMongoError

from rota.model.micros import SECOND
from rota.store.contract import Seal
from rota.store.mongo import schema
from rota.store.mongo.connection import DEADLINE
from rota.store.mongo.gate import Gate
from rota.store.mongo.places import seq_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rota.store.mongo.connection import Connection
    from rota.store.mongo.space import Document, Space

log = logging.getLogger("rota.store")

NOW = {"$multiply": [{"$toLong": "$$NOW"}, 1000]}  # the server's clock in microseconds
HEAD = {"_id": "head"}
FORGOTTEN_AFTER = int((DEADLINE + 2) * SECOND)  # a token this old belongs to a process that has died
LOOK_AGAIN = 0.005  # seconds between two looks of one who seals


class Turn(Struct, frozen=True):
    """What a verb learns when it begins."""

    now: int
    paused: frozenset[str] = frozenset()


class _Entry(NamedTuple):
    """A verb at work: since when, and the session of its transactions."""

    token: str
    at: int
    session: Any


class Head:
    """One namespace's head document."""

    def __init__(self, connection: Connection, describe: str) -> None:
        self._connection = connection
        self._describe = describe
        self.gate = Gate(connection, self)

    def look(self, space: Space, now: int | None) -> Turn:
        """The state of things, for a verb that a seal does not refuse."""
        return self.turn_of(self._read(space), now)

    def now(self, space: Space, now: int | None) -> int:
        return self.look(space, None).now if now is None else now

    @contextmanager
    def work(self, now: int | None) -> Iterator[Turn]:
        """A turn of a verb that brings or wants work: refused where the store is sealed."""
        token = secrets.token_hex(8)
        with self._session_id() as session_id:
            document = self.begin(self._connection.quick, token, session_id)
            try:
                yield self.turn_of(document, now)
            finally:
                with suppress(PyMongoError):  # whoever seals waits a little longer
                    self._connection.sent.meta.update_one(HEAD, {"$unset": {f"busy.{token}": ""}})

    def mark(self) -> int:
        """A place in line: behind all that were given, before all that will be."""
        space = self._connection.quick
        update = {"$currentDate": {"mark": {"$type": "timestamp"}}}
        found = space.meta.find_one_and_update(HEAD, update, return_document=ReturnDocument.AFTER)
        return int(seq_of(found["mark"])) if found else self.mark() if self._remake() else 0

    # The seal.

    def seal(self, seal: Seal | None) -> None:
        """Seal it (None: unseal it), and wait for those who were let in before."""
        packed = None if seal is None else msgspec.json.encode(seal).decode()
        with self._connection.call() as space:
            self._read(space)  # made anew, where somebody emptied the database
            space.meta.update_one(HEAD, {"$set": {"seal": packed}})
        self.gate.shut()
        while seal is not None and self._is_busy():
            time.sleep(LOOK_AGAIN)

    def sealed(self) -> Seal | None:
        with self._connection.call() as space:
            return _seal_of(self._read(space))

    def check(self, space: Space) -> Document:
        """The head document; a refusal where it is sealed."""
        document = self._read(space)
        self.refuse_if_sealed(document)
        return document

    def refuse_if_sealed(self, document: Document) -> None:
        seal = _seal_of(document)
        if seal is not None:
            self.gate.shut()
            raise seal.refusal(self._describe)

    def forget_the_dead(self, space: Space) -> None:
        """Take out the tokens of processes that died at their work."""
        document = self._read(space)
        self._take_out(space, [entry for entry in _busy(document) if entry.at < document["now"] - 6 * FORGOTTEN_AFTER])

    def end_the_abandoned(self, space: Space) -> None:
        """End the transactions of processes that died at their work."""
        if not self._connection.has_transactions:
            return
        document = self._read(space)
        old = [entry for entry in _busy(document) if entry.at < document["now"] - FORGOTTEN_AFTER and entry.session]
        if not old:
            return
        with suppress(OperationFailure):  # where that is not allowed, the server does it when its own limit is reached
            space.database.command({"killSessions": [{"id": entry.session} for entry in old]})
            self._take_out(space, old)

    def _take_out(self, space: Space, entries: Sequence[_Entry]) -> None:
        if entries:
            space.meta.update_one(HEAD, {"$unset": {f"busy.{entry.token}": "" for entry in entries}})

    # Queues.

    def pause(self, space: Space, queue: str, *, paused: bool) -> None:
        change = {"$addToSet" if paused else "$pull": {"paused": queue}}
        if not space.meta.update_one({**HEAD, "seal": None}, change).matched_count:
            self.check(space)

    # What these are made of.

    @contextmanager
    def _session_id(self) -> Iterator[Any]:
        if not self._connection.has_transactions:
            yield None
            return
        with self._connection.session() as session:
            yield session.session_id["id"]

    def begin(self, space: Space, token: str, session_id: Any = None) -> Document:
        """Write a token where the store is not sealed; the head document as it then is."""
        entry = NOW if session_id is None else {"at": NOW, "session": {"$literal": session_id}}
        changes = {"now": NOW, f"busy.{token}": entry}
        found: Document | None = space.meta.find_one_and_update(
            {**HEAD, "seal": None},
            [{"$set": changes}],
            projection={"busy": 0},
            return_document=ReturnDocument.AFTER,
        )
        if found is None:
            self.check(space)
            return self.begin(space, token, session_id)  # unsealed, or made anew, between the two
        return found

    def _read(self, space: Space) -> Document:
        found: Document | None = space.meta.find_one(HEAD, {"now": NOW, "paused": 1, "seal": 1, "busy": 1})
        return found if found is not None else self._read(space) if self._remake() else {}

    def _remake(self) -> bool:
        """Somebody dropped the database under us: what it held is lost, and it goes on empty."""
        log.error("%s has lost all that Rota kept in it: it was dropped or emptied; it is made anew", self._describe)
        schema.build(self._connection.space)
        return True

    def _is_busy(self) -> bool:
        with self._connection.call() as space:
            document = self._read(space)
        return any(entry.at > document["now"] - FORGOTTEN_AFTER for entry in _busy(document))

    def turn_of(self, document: Document, now: int | None) -> Turn:
        at = int(document["now"]) if now is None else now
        return Turn(at, paused_of(document))


def paused_of(document: Document) -> frozenset[str]:
    return frozenset(document.get("paused", ()))


def _busy(document: Document) -> list[_Entry]:
    entries = (document.get("busy") or {}).items()
    return [
        _Entry(token, int(entry["at"]), entry["session"])
        if isinstance(entry, dict)
        else _Entry(token, int(entry), None)
        for token, entry in entries
    ]


def _seal_of(document: Document) -> Seal | None:
    packed = document.get("seal")
    return None if packed is None else msgspec.json.decode(packed, type=Seal)
