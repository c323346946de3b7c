"""The connections of the Redis store: kept at hand, never shared with a fork, given up when they fall silent."""

from __future__ import annotations

import os
import threading
import time
from uuid import uuid4

import pytest

from rota.errors import StoreUnavailable
from rota.store.redis import RedisStore
from rota.testing.servers.redis import RedisServer
from rota.testing.store_suite.steps import add_job, claim_one
from stores.outages import in_the_end
from stores.redis_stage import *  # noqa: F403 - its fixtures


@pytest.fixture
def open_store(server):
    stores = []

    def opened(options=""):
        store = RedisStore(f"{server.url()}{options}", namespace=f"t{uuid4().hex[:24]}")
        store.open()
        stores.append(store)
        return store

    yield opened
    for store in stores:
        store.close()


def connections(raw):
    return {client["id"] for client in raw.client_list()}


def test_one_call_after_another_takes_one_connection(open_store, raw):
    store = open_store()
    store.now()
    before = connections(raw)
    for _ in range(5):
        add_job(store)
    assert connections(raw) == before


def test_an_error_of_the_server_costs_no_connection(open_store, raw):
    store = open_store()
    add_job(store)
    before = connections(raw)
    raw.script_flush()
    assert claim_one(store) is not None
    assert connections(raw) == before


def test_a_fork_has_connections_of_its_own(open_store, raw):
    store = open_store()
    add_job(store)
    before = connections(raw)
    called, call = os.pipe()
    seen, see = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            add_job(store)
            os.write(call, b"!")
            os.read(seen, 1)
            code = 0
        finally:
            os._exit(code)
    assert os.read(called, 1) == b"!"
    try:
        assert len(connections(raw) - before) == 1
        add_job(store)
    finally:
        os.write(see, b"!")
        code = os.waitpid(child, 0)[1]
        for end in (called, call, seen, see):
            os.close(end)
    assert code == 0
    assert store.list_queues()[0].counts == {"queued": 3}


def test_two_calls_are_under_way_at_once(open_store, raw):
    store = open_store()
    store.now()
    before = connections(raw)
    raw.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
    threads = [threading.Thread(target=store.now) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        _until(lambda: len(connections(raw)) > len(before))
    finally:
        raw.execute_command("CLIENT", "UNPAUSE")
        for thread in threads:
            thread.join()


def test_the_newer_protocol_may_be_asked_for(open_store):
    store = open_store("?protocol=3")
    assert claim_one(store).id if add_job(store) else None


def test_a_server_that_says_nothing_is_given_up_in_time():
    with RedisServer() as server:
        store = RedisStore(f"{server.url()}?socket_timeout=0.5", namespace="silent")
        store.open()
        store.now()
        server.freeze()
        try:
            begun = time.monotonic()
            with pytest.raises(StoreUnavailable, match="did not answer in time"):
                store.now()
            assert 0.4 < time.monotonic() - begun < 20
        finally:
            server.thaw()
        assert in_the_end(store.now) > 0
        store.close()


def _until(look):
    until = time.monotonic() + 20
    while not look():
        assert time.monotonic() < until
