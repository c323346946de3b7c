"""The Redis store by the suite of all stores, where even two jobs that are added together stand in sheaves."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

import pytest

from rota.store.redis import RedisStore, adding
from rota.testing.servers.redis import RedisServer
from rota.testing.store_suite import *  # noqa: F403
from rota.testing.store_suite.durable import *  # noqa: F403
from rota.testing.store_suite.shared import *  # noqa: F403

pytestmark = pytest.mark.one_in(5)  # test_redis.py runs all of them


@pytest.fixture(scope="module")
def server():
    with RedisServer() as running:
        yield running


@pytest.fixture
def make_store(server, monkeypatch):
    monkeypatch.setattr(adding, "LEAST_BATCH", 2)
    monkeypatch.setattr(adding, "LINE_SHEAF", 3)
    return partial(RedisStore, server.url(), namespace=f"t{uuid4().hex[:24]}")
