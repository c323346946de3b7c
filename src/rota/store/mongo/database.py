"""The collections of one namespace. Every call to them has the same write concern and the same session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bson.codec_options import CodecOptions
from pymongo import ReadPreference, ReturnDocument, UpdateOne, WriteConcern
from pymongo.errors import BulkWriteError

from rota.store.mongo.faults import is_duplicate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pymongo import collection, database, results
    from pymongo.client_session import ClientSession
    from pymongo.command_cursor import CommandCursor
    from pymongo.cursor import Cursor

Document = dict[str, Any]

DURABLE = WriteConcern("majority", j=True)  # answered when a majority has it in its journal
QUICK = WriteConcern(1)  # answered at once: a later durable write of the same server covers it
SENT = WriteConcern(0)  # not answered at all
NAMES = ("job", "schedule", "ledger", "entry", "audit", "count", "node", "lock", "log", "notifications", "meta")


class Collection:
    """One collection. It passes its session to the driver, so that no write of a transaction is left outside of it."""

    def __init__(self, raw: collection.Collection[Document], session: ClientSession | None) -> None:
        self.raw = raw
        self._session = session

    def find(self, query: Document, fields: Document | None = None, **options: Any) -> Cursor[Document]:
        return self.raw.find(query, fields, session=self._session, **options)

    def by_id(self, ids: Iterable[Any], fields: Document | None = None, **where: Any) -> dict[Any, Document]:
        """The documents with these ids, by id, of those that match; if there are no ids, the server is not asked."""
        wanted = list(ids)
        found = self.find({"_id": {"$in": wanted}, **where}, fields, hint="_id_") if wanted else ()
        return {document["_id"]: document for document in found}

    def find_one(self, query: Document, fields: Document | None = None, **options: Any) -> Document | None:
        return self.raw.find_one(query, fields, session=self._session, **options)

    def find_one_and_update(self, query: Document, update: Any, **options: Any) -> Document | None:
        """Update one document; the document as it is then."""
        options |= {"session": self._session, "return_document": ReturnDocument.AFTER}
        found: Document | None = self.raw.find_one_and_update(query, update, **options)
        return found

    def upsert(self, query: Document, update: Any) -> Document:
        """Update one document, or create it; the document as it is then."""
        return self.find_one_and_update(query, update, upsert=True) or {}

    def in_order(self, query: Document, limit: int, hint: str = "_id_") -> Cursor[Document]:
        """The first documents that match, in the order of their ids."""
        return self.find(query, hint=hint).sort("_id", 1).limit(limit)

    def aggregate(self, pipeline: Sequence[Document], **options: Any) -> CommandCursor[Document]:
        return self.raw.aggregate(pipeline, session=self._session, **options)

    def count(self, query: Document, limit: int, hint: str) -> int:
        """How many documents match, up to a limit."""
        return self.raw.count_documents(query, session=self._session, limit=limit, hint=hint)

    def distinct(self, name: str, query: Document) -> list[Any]:
        return self.raw.distinct(name, query, session=self._session)

    def insert_many(self, documents: Iterable[Document]) -> None:
        self.raw.insert_many(documents, ordered=False, session=self._session)

    def insert_new(self, documents: Iterable[Document]) -> list[Document]:
        """Insert documents; the collisions with others (never in a transaction, which they end)."""
        try:
            self.insert_many(documents)
        except BulkWriteError as err:
            if self._session is not None or not is_duplicate(err):
                raise
            collided: list[Document] = err.details["writeErrors"]
            return collided
        return []

    def insert_missing(self, documents: Iterable[Document]) -> int:
        """Insert the documents whose ids do not exist yet; how many."""
        writes = [UpdateOne({"_id": one["_id"]}, {"$setOnInsert": one}, upsert=True) for one in documents]
        return self.bulk_write(writes).upserted_count if writes else 0

    def update_one(self, query: Document, update: Any, **options: Any) -> results.UpdateResult:
        return self.raw.update_one(query, update, session=self._session, **options)

    def update_many(self, query: Document, update: Any, **options: Any) -> results.UpdateResult:
        return self.raw.update_many(query, update, session=self._session, **options)

    def delete_many(self, query: Document, **options: Any) -> int:
        return self.raw.delete_many(query, session=self._session, **options).deleted_count

    def bulk_write(self, writes: Sequence[Any], *, ordered: bool = False) -> results.BulkWriteResult:
        return self.raw.bulk_write(writes, ordered=ordered, session=self._session)

    def write_guarded(self, writes: Mapping[str, Any], token: str) -> set[str]:
        """Do guarded writes, each under the id of its document; the ids of those whose guard held."""
        try:
            done = self.bulk_write(list(writes.values()))
            if done.matched_count + done.inserted_count + done.upserted_count + done.deleted_count == len(writes):
                return set(writes)
        except BulkWriteError as err:
            if self._session is not None or not is_duplicate(err):
                raise
        return self.written(writes, token)

    def written(self, ids: Iterable[str], token: str) -> set[str]:
        """The ids of those documents that the write with this token has changed."""
        return set(self.by_id(ids, {"_id": 1}, token=token))


class Database:
    """The collections by what they hold."""

    def __init__(self, raw: dict[str, collection.Collection[Document]], session: ClientSession | None = None) -> None:
        self.raw = raw
        self.session = session
        self.jobs = Collection(raw["job"], session)
        self.schedules = Collection(raw["schedule"], session)
        self.ledger = Collection(raw["ledger"], session)
        self.entries = Collection(raw["entry"], session)
        self.audit = Collection(raw["audit"], session)
        self.counters = Collection(raw["count"], session)
        self.nodes = Collection(raw["node"], session)
        self.locks = Collection(raw["lock"], session)
        self.logs = Collection(raw["log"], session)
        self.notifications = Collection(raw["notifications"], session)
        self.meta = Collection(raw["meta"], session)

    @property
    def is_atomic(self) -> bool:
        """Whether the calls are part of a transaction."""
        return self.session is not None

    @property
    def database(self) -> database.Database[Document]:
        return self.raw["job"].database


def collections_of(where: database.Database[Document], namespace: str, concern: WriteConcern) -> Database:
    chosen: database.Database[Document] = where.with_options(
        codec_options=CodecOptions(), read_preference=ReadPreference.PRIMARY, write_concern=concern
    )
    return Database({name: chosen[f"{namespace}_{name}"] for name in NAMES})
