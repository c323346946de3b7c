"""Connections of the pool of a PostgreSQL store that no call has and that are not returned."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rota.errors import StoreUnavailable
from rota.store.postgres import PostgresStore
from rota.testing.servers.postgres import shared_url
from rota.testing.store_suite.steps import add_job
from stores.postgres_stage import *  # noqa: F403 - its fixtures

PATIENCE = 120.0


@pytest.fixture
def small(namespace):
    """A store with two connections, which a call awaits for half a second."""
    url = shared_url()
    store = PostgresStore(f"{url}{'&' if '?' in url else '?'}pool=2&timeout=0.5", namespace=namespace)
    store.open()
    yield store
    store.close()


def test_a_store_whose_connections_were_lost_opens_others(small):
    """As after signal handlers that raised while their thread waited for a connection."""
    add_job(small)
    lost = [small._database._pool.getconn(timeout=PATIENCE) for _ in range(2)]
    with pytest.raises(StoreUnavailable, match="became free"):
        add_job(small)
    add_job(small)
    assert sum(info.counts["queued"] for info in small.list_queues()) == 2
    for connection in lost:
        connection.close()


def test_a_store_whose_connections_are_in_use_keeps_them(small):
    add_job(small)
    pool, gate = small._database._pool, threading.Event()
    taken = threading.Barrier(3)

    def use(_transaction):
        taken.wait(PATIENCE)
        assert gate.wait(PATIENCE)

    with ThreadPoolExecutor(2) as threads:
        users = [threads.submit(small._database.call, use) for _ in range(2)]
        taken.wait(PATIENCE)
        with pytest.raises(StoreUnavailable, match="became free"):
            add_job(small)
        gate.set()
        assert [user.result(PATIENCE) for user in users] == [None, None]
    assert small._database._pool is pool
