"""The PostgreSQL store, by the suite of all stores."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

import pytest

from rota.store.postgres import PostgresStore
from rota.testing.servers.postgres import drop_schema, shared_url
from rota.testing.store_suite import *  # noqa: F403
from rota.testing.store_suite.durable import *  # noqa: F403
from rota.testing.store_suite.shared import *  # noqa: F403


@pytest.fixture
def make_store():
    namespace = f"t{uuid4().hex[:20]}"
    yield partial(PostgresStore, shared_url(), namespace=namespace)
    drop_schema(namespace)
