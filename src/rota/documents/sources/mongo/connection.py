"""Opens the owner's collection and Rota's own when first needed. Every call has a deadline."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pymongo
from bson.codec_options import DatetimeConversion
from pymongo import ReadPreference, WriteConcern
from pymongo.collection import Collection

from rota.errors import BadOption, StoreError
from rota.store.mongo.faults import translated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Document = dict[str, Any]
Documents = Collection[Document]

DEADLINE = 8.0  # seconds for a whole verb
SIDE = "rota_documents"  # Rota's own collection in the owner's database


class Connection:
    """Gives the two collections. A function that returns the owner's is called once in each process."""

    def __init__(self, given: Documents | Callable[[], Documents]) -> None:
        self._given = given
        self._pid = 0
        self._documents: Documents | None = None
        if not isinstance(given, Collection) and not callable(given):
            _refuse(given)

    @property
    def name(self) -> str:
        documents = self.documents
        return f"{documents.database.name}.{documents.name}"

    @property
    def documents(self) -> Documents:
        """The owner's collection: reads from the primary, writes that a majority has."""
        if self._documents is None or self._pid != os.getpid():
            self._documents = self._open()
            self._pid = os.getpid()
        return self._documents

    @property
    def sides(self) -> Documents:
        """Rota's own collection in the same database."""
        documents = self.documents
        return documents.database.get_collection(
            SIDE,
            codec_options=documents.codec_options,
            read_preference=ReadPreference.PRIMARY,
            write_concern=documents.write_concern,
        )

    @contextmanager
    def call(self, *, deadline: float | None = DEADLINE) -> Iterator[Documents]:
        """The calls of one verb: with one deadline, and with the driver's errors translated."""
        with translated("MongoDB"):
            documents = self.documents
        with translated(f"the collection {self.name}"), pymongo.timeout(deadline):
            yield documents

    def _open(self) -> Documents:
        if self._pid and isinstance(self._given, Collection):
            raise StoreError(
                f"the collection {self._given.name} was opened before a fork; give the source a function that returns "
                "a collection, so that each process has a client of its own"
            )
        found = self._given if isinstance(self._given, Collection) else self._given()
        if not isinstance(found, Collection):
            _refuse(found)
        # One document with a time outside of Python's calendar, or a text that is no UTF-8, must not break a batch.
        codec = found.codec_options.with_options(
            datetime_conversion=DatetimeConversion.DATETIME_AUTO, unicode_decode_error_handler="backslashreplace"
        )
        chosen: Documents = found.with_options(
            codec_options=codec,
            read_preference=ReadPreference.PRIMARY,
            write_concern=WriteConcern("majority"),
        )
        return chosen


def _refuse(given: object) -> None:
    raise BadOption(
        f"MongoSource takes a collection of pymongo, such as MongoClient().shop.orders, or a function that returns "
        f"one; got {given!r}"
    )
