"""A stage for what only PostgreSQL has: a fresh schema on the tests' server, and an owner's hand beside the store."""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from uuid import uuid4

import psycopg
import pytest

from rota.errors import StoreUnavailable
from rota.store.postgres import PostgresStore
from rota.testing.servers.postgres import PostgresServer, drop_schema, shared_url
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.fixtures import opened

__all__ = ["make_store", "namespace", "sql", "store"]


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


@contextmanager
def own_server(**settings):
    """A server that a test may stop and freeze."""
    with PostgresServer(is_durable=True, **settings) as server:
        yield server


def in_the_end(work, within=20.0):
    """What a service does: try again while the store is away."""
    until = time.monotonic() + within
    while True:
        try:
            return work()
        except StoreUnavailable:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)  # a server that comes back sends no signal
