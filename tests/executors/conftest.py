from __future__ import annotations

import pytest

from every_store import _servers_end_with_the_session  # noqa: F401 - a fixture
from executors.bench import Bench


@pytest.fixture(scope="module")
def shared():
    """An executor with warm children, for tasks that do no harm to them."""
    bench = Bench()
    yield bench
    bench.stop()


@pytest.fixture
def bench():
    """An executor of the test's own, with one slot."""
    bench = Bench(1)
    yield bench
    bench.stop()
