"""Tests a store's description of itself, and that its author chose the tests that fit it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from rota.store.contract import Store


class TestStoreLife:
    def test_it_says_where_it_is_in_one_line(self, store: Store) -> None:
        assert store.describe().strip()
        assert "\n" not in store.describe()

    def test_it_names_its_kind(self, store: Store) -> None:
        assert store.features.kind

    def test_a_shared_store_is_tested_as_one(self, store: Store, request: pytest.FixtureRequest) -> None:
        """Where features.is_shared: `from rota.testing.store_suite.shared import *`."""
        assert hasattr(request.module, "TestSharedStore") == store.features.is_shared

    def test_a_durable_store_is_tested_as_one(self, store: Store, request: pytest.FixtureRequest) -> None:
        """Where features.is_durable: `from rota.testing.store_suite.durable import *`."""
        assert hasattr(request.module, "TestDurableStore") == store.features.is_durable
