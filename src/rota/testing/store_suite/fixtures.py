"""Provides the fixture `store`. The author of a store writes `make_store`, from which it is made."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from rota.testing.store_suite.checks import check_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rota.store.contract import Store


@contextmanager
def opened(make_store: Callable[[], Store]) -> Iterator[Store]:
    """A new handle, open until the end of the block."""
    handle = make_store()
    handle.open()
    try:
        yield handle
    finally:
        handle.close()


@pytest.fixture
def store(make_store: Callable[[], Store]) -> Iterator[Store]:
    """An open, empty store, which is checked as a whole after the test."""
    with opened(make_store) as handle:
        yield handle
        check_store(handle)
