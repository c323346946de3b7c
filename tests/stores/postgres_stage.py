"""A stage for what only PostgreSQL has: a fresh schema on the tests' server, and an owner's hand beside the store."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from uuid import uuid4

import psycopg
import pytest

from emptying import empty_postgres
from rota.store.postgres import PostgresStore
from rota.store.postgres.fast.calls import PreparedCalls
from rota.store.postgres.transaction import Transaction
from rota.testing.servers.postgres import PostgresServer, drop_schema, shared_url
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.fixtures import opened

__all__ = ["make_store", "namespace", "sql", "store", "trips"]

NAMESPACE = f"t{os.getpid()}"  # one per process: creating a schema for each test would take most of the time


@pytest.fixture
def namespace():
    name = f"t{uuid4().hex[:20]}"
    yield name
    drop_schema(name)


@pytest.fixture
def make_store(namespace):
    return partial(PostgresStore, shared_url(), namespace=namespace)


@pytest.fixture
def store(make_store):
    """An open store, which must be sound when the test is over."""
    with opened(make_store) as handle:
        yield handle
        check_store(handle)


@pytest.fixture
def sql():
    """What an owner does beside the store."""
    with psycopg.connect(shared_url(), autocommit=True) as connection:
        yield connection.execute


@pytest.fixture
def trips(monkeypatch):
    """The statements that are sent, each of which waits for its answer."""
    sent = []
    for kind, name in ((Transaction, "run"), (Transaction, "rows"), (Transaction, "run_many"), (PreparedCalls, "call")):
        whole = getattr(kind, name)

        def counted(self, *args, whole=whole):
            sent.append(next(arg for arg in args if isinstance(arg, str)))
            return whole(self, *args)

        monkeypatch.setattr(kind, name, counted)
    return sent


def emptied(connection: psycopg.Connection, namespace: str = NAMESPACE) -> partial[PostgresStore]:
    """What makes handles on a schema from which everything was just taken away, whatever tables it has."""
    empty_postgres(connection, namespace)
    return partial(PostgresStore, shared_url(), namespace=namespace)


@contextmanager
def own_server(**settings):
    """A server that a test may stop and freeze."""
    with PostgresServer(is_durable=True, **settings) as server:
        yield server
