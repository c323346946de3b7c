"""The kit's store keeps the contract of all stores."""

from __future__ import annotations

import pytest

from rota.testing import ManualClock
from rota.testing.kit_store import KitStore
from rota.testing.store_suite import *  # noqa: F403

pytestmark = pytest.mark.one_in(5)  # it is a memory store, which test_memory.py runs all of them on


@pytest.fixture
def make_store():
    store = KitStore(ManualClock())  # its handle is its data
    return lambda: store
