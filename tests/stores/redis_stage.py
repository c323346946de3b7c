"""A stage for what only Redis has: a server of the tests' own, a bare client, and an open store on it."""

from __future__ import annotations

from uuid import uuid4

import pytest
import redis

from rota.store.redis import RedisStore
from rota.testing.servers.redis import RedisServer
from rota.testing.store_suite.checks import check_store

__all__ = ["raw", "server", "store"]


@pytest.fixture(scope="module")
def server():
    with RedisServer() as running:
        yield running


@pytest.fixture
def raw(server):
    with redis.Redis(port=server.port) as client:
        yield client


@pytest.fixture
def store(server):
    """An open store, which must be sound when the test is over."""
    handle = RedisStore(server.url(), namespace=f"t{uuid4().hex[:24]}")
    handle.open()
    yield handle
    check_store(handle)
    handle.close()
