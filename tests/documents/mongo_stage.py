"""Documents of a MongoDB collection in the hands of their owner."""

from __future__ import annotations

import atexit
from datetime import UTC
from functools import cache

import pymongo

from every_store import running_server
from rota.documents import Fields, MongoSource
from rota.testing.document_suite.stage import Stage

DATABASE = "owners"


@cache
def client_of(kind):
    """One for all tests: each has threads of its own."""
    client = pymongo.MongoClient(running_server(kind).url())
    atexit.register(client.close)
    return client


class MongoStage(Stage):
    """One collection with the index that a queue needs, emptied before each test."""

    def __init__(self, kind, name="orders"):
        self.collection = client_of(kind)[DATABASE][name]
        for each in (self.collection, self.collection.database["rota_documents"]):
            each.delete_many({})

    def make_source(self, *, has_lock, only_kind=None):
        fields = Fields() if has_lock else Fields.four()
        condition = None if only_kind is None else {"kind": only_kind}
        return MongoSource(self.collection, fields=fields, condition=condition)

    def insert(self, *documents):
        self.collection.insert_many([dict(one) for one in documents])

    def read(self, wanted):
        found = self.collection.find_one({"_id": wanted})
        return None if found is None else {name: aware(value) for name, value in found.items() if value is not None}

    def change(self, wanted, **fields):
        self.collection.update_one({"_id": wanted}, {"$set": fields})

    def delete(self, wanted):
        self.collection.delete_one({"_id": wanted})


def aware(value):
    return value.replace(tzinfo=UTC) if hasattr(value, "utcoffset") else value
