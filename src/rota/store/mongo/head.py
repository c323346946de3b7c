"""The head document: the server's clock, the next place in line, paused queues and the seal; read once per verb.

Verbs that bring or want work begin by writing their token into it, where it is not sealed, and end by taking it out.
Whoever seals the store waits until no token is left that was there before: what was let in has then come to its end.
"""

from __future__ import annotations

import logging
import secrets
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from pymongo import ReturnDocument
from pymongo.errors import PyMongoError

from rota.model.micros import SECOND
from rota.store.contract import Seal
from rota.store.mongo import schema
from rota.store.mongo.connection import DEADLINE

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    last_seq: int = 0  # the last place in line of those reserved for it


class Head:
    """One namespace's head document."""

    def __init__(self, connection: Connection, describe: str) -> None:
        self._connection = connection
        self._describe = describe

    def look(self, space: Space, now: int | None) -> Turn:
        """The state of things, for a verb that a seal does not refuse."""
        return self.turn_of(self._read(space), now)

    def now(self, space: Space, now: int | None) -> int:
        return self.look(space, None).now if now is None else now

    @contextmanager
    def work(self, now: int | None, places: int = 0) -> Iterator[Turn]:
        """A turn of a verb that brings or wants work: refused where the store is sealed."""
        token = secrets.token_hex(8)
        document = self._begin(token, places)
        try:
            yield self.turn_of(document, now)
        finally:
            with suppress(PyMongoError):  # whoever seals waits a little longer
                self._connection.sent.meta.update_one(HEAD, {"$unset": {f"busy.{token}": ""}})

    def reserve(self, places: int) -> int:
        """The last of so many places in line."""
        found = self._careful.meta.find_one_and_update(
            HEAD, {"$inc": {"seq": places}}, return_document=ReturnDocument.AFTER
        )
        return int(found["seq"]) if found else self.reserve(places) if self._remake() else 0

    # The seal.

    def seal(self, seal: Seal | None) -> None:
        """Seal it (None: unseal it), and wait for those who were let in before."""
        packed = None if seal is None else msgspec.json.encode(seal).decode()
        with self._connection.call() as space:
            self._read(space)  # made anew, where somebody emptied the database
            space.meta.update_one(HEAD, {"$set": {"seal": packed}})
        while seal is not None and self._is_busy():
            time.sleep(LOOK_AGAIN)

    def sealed(self) -> Seal | None:
        with self._connection.call() as space:
            return _seal_of(self._read(space))

    def check(self, space: Space) -> Document:
        """The head document; a refusal where it is sealed."""
        document = self._read(space)
        seal = _seal_of(document)
        if seal is not None:
            raise seal.refusal(self._describe)
        return document

    def forget_the_dead(self, space: Space) -> None:
        """Take out the tokens of processes that died at their work."""
        document = self._read(space)
        old = [token for token, at in _busy(document).items() if at < document["now"] - 6 * FORGOTTEN_AFTER]
        if old:
            space.meta.update_one(HEAD, {"$unset": {f"busy.{token}": "" for token in old}})

    # Queues.

    def pause(self, space: Space, queue: str, *, paused: bool) -> None:
        change = {"$addToSet" if paused else "$pull": {"paused": queue}}
        if not space.meta.update_one({**HEAD, "seal": None}, change).matched_count:
            self.check(space)

    # What these are made of.

    @property
    def _careful(self) -> Space:
        """A place in line must never be given twice: where members can take over from each other, wait for most."""
        return self._connection.space if self._connection.has_transactions else self._connection.quick

    def _begin(self, token: str, places: int) -> Document:
        changes = {"seq": {"$add": ["$seq", places]}, "now": NOW, f"busy.{token}": NOW}
        space = self._careful if places else self._connection.quick
        found: Document | None = space.meta.find_one_and_update(
            {**HEAD, "seal": None},
            [{"$set": changes}],
            projection={"busy": 0},
            return_document=ReturnDocument.AFTER,
        )
        if found is None:
            self.check(space)
            return self._begin(token, places)  # unsealed, or made anew, between the two
        return found

    def _read(self, space: Space) -> Document:
        found: Document | None = space.meta.find_one(HEAD, {"now": NOW, "seq": 1, "paused": 1, "seal": 1, "busy": 1})
        return found if found is not None else self._read(space) if self._remake() else {}

    def _remake(self) -> bool:
        """Somebody dropped the database under us: what it held is lost, and it goes on empty."""
        log.error("%s has lost all that Rota kept in it: it was dropped or emptied; it is made anew", self._describe)
        schema.migrate(self._connection.space)
        schema.make(self._connection.space)
        return True

    def _is_busy(self) -> bool:
        with self._connection.call() as space:
            document = self._read(space)
        return any(at > document["now"] - FORGOTTEN_AFTER for at in _busy(document).values())

    def turn_of(self, document: Document, now: int | None) -> Turn:
        at = int(document["now"]) if now is None else now
        return Turn(at, frozenset(document.get("paused", ())), int(document.get("seq", 0)))


def _busy(document: Document) -> dict[str, Any]:
    return document.get("busy") or {}


def _seal_of(document: Document) -> Seal | None:
    packed = document.get("seal")
    return None if packed is None else msgspec.json.decode(packed, type=Seal)
