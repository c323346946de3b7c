"""The Redis store, by the suite of all stores."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

import pytest

from rota.store.redis import RedisStore
from rota.testing.servers.redis import RedisServer, given_url
from rota.testing.store_suite import *  # noqa: F403
from rota.testing.store_suite.durable import *  # noqa: F403
from rota.testing.store_suite.shared import *  # noqa: F403


@pytest.fixture(scope="session")
def redis_url():
    url = given_url(RedisServer)
    if url is not None:
        yield url
        return
    with RedisServer() as server:
        yield server.url()


@pytest.fixture
def make_store(redis_url):
    return partial(RedisStore, redis_url, namespace=f"t{uuid4().hex[:24]}")
