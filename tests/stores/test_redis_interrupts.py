"""Signal handlers that raise in the middle of a call to a Redis store."""

from __future__ import annotations

from uuid import uuid4

import pytest

from amounts import amount
from rota.store.redis import RedisStore
from rota.testing.store_suite.builders import a_job
from rota.testing.store_suite.checks import check_store
from stores.interrupts import interrupted_everywhere
from stores.redis_stage import *  # noqa: F403 - its fixtures


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # sockets that the driver was making
def test_a_call_that_is_interrupted_while_it_connects_spoils_no_later_one(server):
    stores = []

    def call():
        stores[-1].add_jobs([a_job()])

    namespace = f"t{uuid4().hex[:24]}"
    stores.append(opened(server, namespace))
    for _ in interrupted_everywhere(call, every=amount(5, 1)):  # what belongs together takes more steps than five
        for _ in range(2):
            call()
        stores.pop().close()
        stores.append(opened(server, namespace))
    check_store(stores[-1])
    stores[-1].close()


def opened(server, namespace):
    """A store whose next call makes a connection, as if another thread used the first one."""
    store = RedisStore(server.url(), namespace=namespace)
    store.open()
    store._connection.client.connection_pool.get_connection()
    return store
