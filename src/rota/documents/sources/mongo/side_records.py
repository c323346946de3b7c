"""Keeps side records in a collection of Rota's own, under the document's id and the time that it shows."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from bson.max_key import MaxKey
from pymongo import IndexModel, ReplaceOne
from pymongo.errors import BulkWriteError

from rota.documents.contract import SideRecord
from rota.documents.sources.mongo.queries import micros_in, time_of
from rota.model.micros import datetime_of
from rota.store.mongo.faults import is_duplicate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.documents.sources.mongo.connection import Connection

Document = dict[str, Any]

KEPT_FOR = timedelta(days=30)  # after its time; then the server deletes a record that no document shows any more
EXPIRY = IndexModel([("expires_at", 1)], name="expires_at", expireAfterSeconds=0)


class Kept(NamedTuple):
    """A side record, the document and the time that it belongs to, and the token if that time is a lock."""

    id: Any
    at: int
    side: SideRecord
    token: str = ""


class SideRecords:
    """The records of one collection of documents."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find(self, wanted: Iterable[tuple[Any, int | None]]) -> list[Kept | None]:
        """The record of each document under the time that it shows."""
        asked = list(wanted)
        keys = [self._key(id_, at) for id_, at in asked if at is not None]
        if not keys:
            return [None] * len(asked)
        records = [_kept(record) for record in self._connection.sides.find({"_id": {"$in": keys}})]
        found = {_hashable(kept.id, kept.at): kept for kept in records}
        return [None if at is None else found.get(_hashable(id_, at)) for id_, at in asked]

    def ids(self, *, is_lock: bool, most: int) -> list[Any]:
        """The ids of documents that have the record of a lock, or of a failure."""
        begins = {"collection": self._connection.documents.name}
        after = {"collection": begins["collection"], "id": MaxKey()}
        test: Document = {"token": {"$gt": ""}} if is_lock else {"failures": {"$gt": 0}}
        found = self._connection.sides.find({"_id": {"$gte": begins, "$lte": after}, **test}, {"_id": 1}).limit(most)
        return [record["_id"]["id"] for record in found]

    def add(self, records: list[Kept]) -> list[bool]:
        """Add the records of locks. False if another caller has just chosen the same time for the same document."""
        if not records:
            return []
        try:
            self._connection.sides.insert_many([self._document(kept) for kept in records], ordered=False)
        except BulkWriteError as err:
            if not is_duplicate(err):
                raise
            refused = {error["index"] for error in err.details["writeErrors"]}
            return [number not in refused for number in range(len(records))]
        return [True] * len(records)

    def put(self, records: list[Kept]) -> None:
        """Add or replace the records of retries."""
        if records:
            documents = [self._document(kept) for kept in records]
            writes = [ReplaceOne({"_id": one["_id"]}, one, upsert=True) for one in documents]
            self._connection.sides.bulk_write(writes, ordered=False)

    def delete(self, wanted: Iterable[tuple[Any, int | None]]) -> None:
        keys = [self._key(id_, at) for id_, at in wanted if at is not None]
        if keys:
            self._connection.sides.delete_many({"_id": {"$in": keys}})

    def _key(self, id_: Any, at: int) -> Document:
        return {"collection": self._connection.documents.name, "id": id_, "at": time_of(at)}

    def _document(self, kept: Kept) -> Document:
        side = kept.side
        return {
            "_id": self._key(kept.id, kept.at),
            "nominal": time_of(side.nominal),
            "failures": side.failures,
            "error": side.error,
            "failed_at": time_of(side.failed_at),
            "token": kept.token,
            "expires_at": datetime_of(kept.at) + KEPT_FOR,
        }


def _kept(record: Document) -> Kept:
    side = SideRecord(
        nominal=micros_in(record["nominal"]) or 0,
        failures=record["failures"],
        error=record["error"],
        failed_at=micros_in(record["failed_at"]),
    )
    return Kept(id=record["_id"]["id"], at=micros_in(record["_id"]["at"]) or 0, side=side, token=record["token"])


def _hashable(id_: Any, at: int) -> tuple[Any, ...]:
    """A key for ids of any type: for MongoDB 1 and 1.0 are one id, and 1 and True are two."""
    try:
        hash(id_)
    except TypeError:
        return repr(id_), "unhashable", at
    return id_, isinstance(id_, bool), at
