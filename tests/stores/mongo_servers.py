"""One MongoDB server of each kind for a whole session, and stores on it that are empty when a test begins."""

from __future__ import annotations

import atexit
import os
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import pymongo
import pytest

from emptying import empty_mongo
from rota.store.mongo import MongoStore, connection
from rota.store.mongo.database import Collection
from rota.testing.servers.mongo import REPLICA_SET_VARIABLE, URL_VARIABLE, MongoReplicaSet, MongoServer

MEMORY = Path("/dev/shm")  # noqa: S108 - what a busy disk takes for each commit is no part of these tests
FOLDER = MEMORY if os.access(MEMORY, os.W_OK) else None
NAMESPACE = f"test{os.getpid()}"  # one per process: creating its indexes for each test would take most of the time


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A busy machine may take long; only what is broken takes this long."""
    monkeypatch.setattr(connection, "DEADLINE", 60.0)


@pytest.fixture(scope="session")
def standalone_url():
    return _url(URL_VARIABLE, MongoServer)


@pytest.fixture(scope="session")
def replica_set_url():
    return _url(REPLICA_SET_VARIABLE, MongoReplicaSet)


def _url(variable, kind):
    return os.environ.get(variable) or _server(kind).url()


@cache
def _server(kind):
    """One for all files of tests: a fixture that each of them imports is another in each, and would start its own."""
    server = kind(FOLDER)
    atexit.register(server.close)
    return server.start()


@cache
def _client(url):
    """One for all tests: each has threads of its own, which take longer to start than all that is asked here."""
    client = pymongo.MongoClient(url)
    atexit.register(client.close)
    return client


def emptied(url: str, namespace: str = NAMESPACE) -> partial[MongoStore]:
    """What makes handles on a namespace from which everything was just taken away."""
    empty_mongo(_client(url).get_default_database("rota"), namespace)
    return partial(MongoStore, url, namespace=namespace)


def documents(store: MongoStore) -> SimpleNamespace:
    """The driver's own collections of a store, and its database."""
    db = store._connection.db
    mine = {name: part.raw for name, part in vars(db).items() if isinstance(part, Collection)}
    return SimpleNamespace(database=db.database, **mine)
