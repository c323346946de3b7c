"""Looks for what keeps documents of a collection from running, and creates the indexes that a queue needs."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pymongo
from pymongo.errors import PyMongoError

from rota.documents.contract import Finding
from rota.documents.sources.mongo.queries import PLAIN, equalities
from rota.documents.sources.mongo.side_records import EXPIRY

if TYPE_CHECKING:
    from rota.documents.sources.mongo.connection import Document, Documents
    from rota.documents.sources.mongo.queries import Queries

LOOK_FOR = 1.5  # seconds that a search through all documents may take
_PROPERTY = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*", re.ASCII)
SMALL = 10_000  # documents that may be read without an index


class Checks:
    """Checks of the owner's collection. Only prepare() changes anything."""

    def __init__(self, documents: Documents, queries: Queries) -> None:
        self._documents = documents
        self._queries = queries

    def findings(self) -> list[Finding]:
        if not self._exists():
            return [self._no_collection()]
        index, can_adopt = self._index(), self.can_adopt()  # before the searches, which may use up the time
        found = [index, self._lists(), self._wrong_times(), None if can_adopt else self._never_starts()]
        return [one for one in found if one is not None]

    def prepare(self, sides: Documents) -> list[str]:
        made = []
        for (keys, partial), purpose in self._wanted_indexes():
            if not self._has_index(keys, partial):
                name = self._documents.create_index(list(keys.items()), partialFilterExpression=partial)
                made.append(f"created the index {name} on {self._documents.name}, {purpose}")
        if "expires_at" not in sides.index_information():
            sides.create_indexes([EXPIRY])
            made.append(f"created the collection {sides.name} for what Rota remembers of documents")
        return made

    def can_adopt(self) -> bool:
        """Whether recurring documents without a time can be found without reading a large collection."""
        keys, partial = self._queries.start_index
        return self._has_index(keys, partial) or self._documents.estimated_document_count() <= SMALL

    def _wanted_indexes(self) -> list[tuple[tuple[Document, Document], str]]:
        return [
            (self._queries.due_index, "by which due documents are found"),
            (self._queries.start_index, "by which recurring documents without a time are found"),
        ]

    def _exists(self) -> bool:
        name = self._documents.name
        return bool(self._documents.database.list_collection_names(filter={"name": name}))

    def _has_index(self, keys: Document, partial: Document) -> bool:
        return any(
            dict(index["key"]) == keys and index.get("partialFilterExpression") in (None, partial)
            for index in self._documents.index_information().values()
        )

    def _no_collection(self) -> Finding:
        name = self._documents.name
        return Finding(
            kind="no-collection",
            message=f"the collection {name} does not exist; it is created with its first document. Is the name right?",
            command=f"db.createCollection({json.dumps(name)})",
        )

    def _index(self) -> Finding | None:
        keys, partial = self._queries.due_index
        if self._has_index(keys, partial) or self._has_index_of_the_owner():
            return None
        path = self._queries.fields.sleep_until
        return Finding(
            kind="no-index",
            message=f"no index of {self._documents.name} begins with {path}, so every look reads all documents",
            command=self._create(keys, partial),
        )

    def _has_index_of_the_owner(self) -> bool:
        """Whether an index of the owner's serves as well: fields with one value by the condition, then the time."""
        path, fixed = self._queries.fields.sleep_until, set(equalities(self._queries.condition))
        for index in self._documents.index_information().values():
            keys = [name for name, _ in index["key"]]
            partial = index.get("partialFilterExpression")
            serves = path in keys and set(keys[: keys.index(path)]) <= fixed
            if serves and not index.get("sparse") and partial in (None, {path: {"$type": "date"}}):
                return True
        return False

    def _lists(self) -> Finding | None:
        fields = self._queries.fields
        wrong: list[tuple[Document, str]] = [
            ({parent: {"$type": "array"}}, f"{parent} is a list") for parent in fields.parents
        ]
        wrong += [({parent: {"$type": PLAIN}}, f"{parent} is a plain value") for parent in fields.lock_parents]
        for query, what in wrong:
            found = self._find_one(query)
            if found is not None:
                return Finding(
                    kind="path-through-list",
                    message=f"{what} in {found['_id']!r}, and a path leads through it; such documents do not run. "
                    "Make it an object, and each element of a list a document of its own",
                    command=self._show(query),
                    is_error=True,
                )
        return None

    def _wrong_times(self) -> Finding | None:
        path = self._queries.fields.sleep_until
        is_other = {"$and": [{path: {"$exists": True}}, {path: {"$not": {"$type": ["date", "null"]}}}]}
        query = {"$or": [is_other, {path: {"$type": "array"}}]}
        found = self._find_one(query, {path: 1})
        if found is None:
            return None
        value = {name: part for name, part in found.items() if name != "_id"}
        return Finding(
            kind="not-a-time",
            message=f"{path} of {found['_id']!r} is not a date: {value!r}; such documents do not run. "
            "Write a date, or null for a document that is done",
            command=self._show(query),
            is_error=True,
        )

    def _never_starts(self) -> Finding | None:
        if self._find_one(self._queries.unscheduled()) is None:
            return None
        return Finding(
            kind="never-starts",
            message=f"recurring documents have no {self._queries.fields.sleep_until}, and no index finds them, "
            "so they do not start",
            command=self._create(*self._queries.start_index),
            is_error=True,
        )

    def _find_one(self, query: Document, shown: Document | None = None) -> Document | None:
        try:
            with pymongo.timeout(LOOK_FOR):  # within it, the driver ignores `max_time_ms`
                return self._documents.find_one(query, shown or {"_id": 1})
        except PyMongoError as err:
            if err.timeout:  # too many documents to look through
                return None
            raise

    def _create(self, keys: Document, partial: Document) -> str:
        options = {"partialFilterExpression": partial}
        return f"{self._shown()}.createIndex({_shell(keys)}, {_shell(options)})"

    def _show(self, query: Document) -> str:
        return f"{self._shown()}.find({_shell(query)})"

    def _shown(self) -> str:
        """The collection as the shell takes it: a name such as my-orders is no property."""
        name = self._documents.name
        return f"db.{name}" if _PROPERTY.fullmatch(name) else f"db.getCollection({json.dumps(name)})"


def _shell(value: Any) -> str:
    return json.dumps(value, default=str)
