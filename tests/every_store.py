"""Every store that Rota has, for tests that must hold on all of them: kinds, fresh places, and the servers behind them.

A place is a URL and a namespace that nobody else has at that time, so that child processes can open it, too. Servers
are started when they are first asked for, once per test process, and end with it.
"""

from __future__ import annotations

import os
import secrets
from collections import defaultdict
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import psycopg
import pymongo
import pytest

from emptying import empty_mongo, empty_postgres
from rota.store.urls import store_from_url

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rota.store.contract import Store
    from rota.testing.servers.process import Server

# MongoDB keeps the transaction of a client that died until its lifetime is over, a minute where nobody says otherwise.
SHORT_LIVES = {"options": ("--setParameter", "transactionLifetimeLimitSeconds=3")}
SERVERS = {  # kind -> the module and class of its server, its options, and what makes it keep its word through a kill
    "redis": ("redis", "RedisServer", {}, {"options": ("--appendfsync", "always")}),
    "postgres": ("postgres", "PostgresServer", {}, {"is_durable": True}),
    "mongo": ("mongo", "MongoServer", {}, {}),
    "mongo-replica": ("mongo", "MongoReplicaSet", SHORT_LIVES, {}),
}
CHOSEN = os.environ.get("ROTA_TEST_STORES", "").split(",")  # some alone, for work on one of them
SERVED = tuple(kind for kind in SERVERS if CHOSEN == [""] or kind in CHOSEN)
DURABLE = ("sqlite", *SERVED)


class Place(NamedTuple):
    """Where a store is, as any process can find it."""

    kind: str
    url: str
    namespace: str

    def make(self) -> Store:
        return store_from_url(self.url, namespace=self.namespace)

    @contextmanager
    def opened(self) -> Iterator[Store]:
        store = self.make()
        store.open()
        try:
            yield store
        finally:
            store.close()


def fresh_place(kind: str, folder: Path, server: Server | None = None) -> Place:
    """A place with nothing in it: a file of its own, or a namespace of its own on this process's server."""
    namespace = f"t{secrets.token_hex(6)}"
    if kind == "memory":
        return Place(kind, "memory://", namespace)
    if kind == "sqlite":
        return Place(kind, f"sqlite:///{folder}/rota.db", namespace)
    if server is not None:
        return Place(kind, server.url(), namespace)
    place = _emptied_place(kind) or Place(kind, running_server(kind).url(), namespace)
    _lent.append(place)
    return place


_lent: list[Place] = []  # in use by the test that runs
_free: dict[str, list[Place]] = defaultdict(list)  # used by tests that are over


def take_back_places(*, sound: bool) -> None:
    """A test is over: others may have its places, unless it failed and may have left a process behind."""
    for place in _lent if sound else ():
        _free[place.kind].append(place)
    _lent.clear()


def _emptied_place(kind: str) -> Place | None:
    """A place that an earlier test has used, where making a new one takes longer."""
    if not _free[kind] or kind == "redis":
        return None
    place = _free[kind].pop()
    if kind == "postgres":
        with psycopg.connect(place.url, autocommit=True) as connection:
            empty_postgres(connection, place.namespace)
    else:
        with pymongo.MongoClient(place.url) as client:
            empty_mongo(client.get_default_database(), place.namespace)
    return place


def make_server(kind: str, *, keeps_its_word: bool = False) -> Server:
    """A server that is not started yet. Most tests need not wait for disks; those that kill it need its word."""
    module, name, options, strict = SERVERS[kind]
    chosen = getattr(import_module(f"rota.testing.servers.{module}"), name)
    return chosen(**options, **(strict if keeps_its_word else {}))


_running: dict[str, Server] = {}


def running_server(kind: str) -> Server:
    if kind not in _running:
        _running[kind] = make_server(kind).start()
    return _running[kind]


@pytest.fixture(scope="session", autouse=True)
def _servers_end_with_the_session():
    """For a conftest to import: no server outlives the tests."""
    yield
    while _running:
        _running.popitem()[1].close()
