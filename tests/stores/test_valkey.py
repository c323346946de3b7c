"""The Redis store on Valkey, by the suite of all stores."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

import pytest

from rota.store.redis import RedisStore
from rota.testing.servers.redis import ValkeyServer, given_url
from rota.testing.store_suite import *  # noqa: F403
from rota.testing.store_suite.durable import *  # noqa: F403
from rota.testing.store_suite.shared import *  # noqa: F403

pytestmark = pytest.mark.one_in(5)  # test_redis.py runs all of them on the same store


@pytest.fixture(scope="session")
def valkey_url():
    url = given_url(ValkeyServer)
    if url is not None:
        yield url
        return
    with ValkeyServer() as server:
        yield server.url()


@pytest.fixture
def make_store(valkey_url):
    return partial(RedisStore, valkey_url, namespace=f"t{uuid4().hex[:24]}")
