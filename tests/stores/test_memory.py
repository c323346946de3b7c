"""The memory store, by the suite of all stores."""

from __future__ import annotations

import pytest

from rota.store.memory import MemoryStore
from rota.testing.store_suite import *  # noqa: F403


@pytest.fixture
def make_store():
    memory = MemoryStore()  # its handle is its data
    return lambda: memory
