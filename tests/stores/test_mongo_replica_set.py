"""The MongoDB store on a replica set, where each step is a transaction, by the suite of all stores."""

from __future__ import annotations

import pytest
from kept_open import kept_handles, kept_store  # noqa: F401
from mongo_servers import emptied, patient, replica_set_url  # noqa: F401

from rota.testing.store_suite import *  # noqa: F403
from rota.testing.store_suite.durable import *  # noqa: F403
from rota.testing.store_suite.shared import *  # noqa: F403


@pytest.fixture
def make_store(replica_set_url):  # noqa: F811
    return emptied(replica_set_url)


store = kept_store
