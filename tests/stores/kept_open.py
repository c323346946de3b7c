"""One open handle for the tests of a file, where a connection takes the server longer to begin than most tests take.

What is in the store is taken out before each test. Tests that are about opening, or that need several handles, make
their own. A handle is not kept through a failure, and `make soak` gives each test a fresh one.
"""

from __future__ import annotations

import pytest

from amounts import IS_SOAK
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.fixtures import opened


@pytest.fixture(scope="module")
def kept_handles():
    """The handle, and how many tests had failed when it was opened."""
    kept = {}
    yield kept
    for handle in kept:
        handle.close()


@pytest.fixture
def kept_store(request, make_store, kept_handles):
    """An open, empty store, which must be sound when the test is over."""
    if IS_SOAK:
        with opened(make_store) as handle:
            yield handle
            check_store(handle)
        return
    for handle, failures in list(kept_handles.items()):
        if failures != request.session.testsfailed:
            del kept_handles[handle]
            handle.close()
    if not kept_handles:
        handle = make_store()
        handle.open()
        kept_handles[handle] = request.session.testsfailed
    (handle,) = kept_handles
    yield handle
    check_store(handle)
