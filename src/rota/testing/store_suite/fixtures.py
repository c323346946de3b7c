"""The one fixture that the tests ask for. What it is made from, `make_store`, is the store author's to give."""

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
    """A handle of its own, open until the end of the block."""
    handle = make_store()
    handle.open()
    try:
        yield handle
    finally:
        handle.close()


@pytest.fixture
def store(make_store: Callable[[], Store]) -> Iterator[Store]:
    """An open, empty store. When a test is over, whatever it did, the store must still be sound."""
    with opened(make_store) as handle:
        yield handle
        check_store(handle)
