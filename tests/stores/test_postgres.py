"""The PostgreSQL store, by the suite of all stores."""

from __future__ import annotations

import psycopg
import pytest
from kept_open import kept_handles, kept_store  # noqa: F401
from postgres_stage import NAMESPACE, emptied

from rota.testing.servers.postgres import drop_schema, shared_url
from rota.testing.store_suite import *  # noqa: F403
from rota.testing.store_suite.durable import *  # noqa: F403
from rota.testing.store_suite.shared import *  # noqa: F403


@pytest.fixture(scope="module")
def owner():
    """A connection beside the store's."""
    with psycopg.connect(shared_url().partition("?")[0], autocommit=True) as connection:
        yield connection
    drop_schema(NAMESPACE)


@pytest.fixture
def make_store(owner):
    return emptied(owner)


store = kept_store
