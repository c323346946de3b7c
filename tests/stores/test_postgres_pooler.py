"""Connections of the caller's choice: a pool, a pooler in transaction mode, and who is woken through them."""
# ruff: noqa: S608 - the names in the statements are the tests' own

from __future__ import annotations

import logging
import os
from functools import partial

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from rota import App
from rota.errors import BadStoreUrl
from rota.model.jobs.job import State
from rota.store.contract import Exchange
from rota.store.postgres import PostgresStore
from rota.testing.servers.postgres import PgBouncer, PostgresServer, pooler_program, shared_url
from rota.testing.servers.process import ServerFailed
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, WORKER, a_job, a_line
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.notify import is_woken, listener_on
from rota.testing.store_suite.rivals import claim_until_empty, in_threads
from rota.testing.store_suite.steps import (
    add,
    add_job,
    add_schedule,
    all_jobs,
    claim,
    claim_one,
    fire,
    succeed,
)
from stores.postgres_stage import *  # noqa: F403 - its fixtures


class TestPools:
    @pytest.fixture
    def pool(self):
        with ConnectionPool(shared_url(), kwargs={"row_factory": dict_row}, min_size=1, max_size=4) as pool:
            yield pool

    def test_a_pool_of_the_callers_is_used_and_left_open(self, pool, namespace):
        with opened(partial(PostgresStore, pool, namespace=namespace)) as store:
            add_schedule(store)
            fire(store, now=T0 + MINUTE)
            succeed(store, claim_one(store, now=T0 + MINUTE), now=T0 + MINUTE)
            with listener_on(store, "jobs") as listener:
                assert is_woken(listener, lambda: add_job(store))
            check_store(store)
        with pool.connection() as connection:
            assert not connection.autocommit
            assert connection.execute("SELECT 1 AS one").fetchone() == {"one": 1}

    def test_eight_rivals_share_a_pool_of_four(self, pool, namespace):
        with opened(partial(PostgresStore, pool, namespace=namespace)) as store:
            made = add(store, *[a_job() for _ in range(60)])
            taken = in_threads(claim_until_empty, [store] * 8)
            assert sorted(job for mine in taken for job in mine) == sorted(made)

    @pytest.mark.parametrize("place", [3, None, AsyncConnectionPool(open=False)], ids=["number", "none", "async"])
    def test_something_that_is_no_place_is_refused(self, place):
        with pytest.raises(BadStoreUrl, match="ConnectionPool"):
            PostgresStore(place)


@pytest.fixture(scope="module")
def pooler():
    """A pooler in transaction mode. It is a Debian package, so that it may be missing where nobody asked for it."""
    try:
        pooler_program()
    except ServerFailed as err:
        if os.environ.get("ROTA_REQUIRE_POOLER"):
            raise
        pytest.skip(f"not run: {err}")
    with PostgresServer() as server, PgBouncer(server) as bouncer:
        yield server, bouncer


class TestBehindAPooler:
    @pytest.fixture
    def make_store(self, pooler, namespace):
        _, bouncer = pooler
        return partial(PostgresStore, bouncer.url(), namespace=namespace)

    def test_a_whole_life_goes_through_it(self, store):
        store.add_jobs([a_job() for _ in range(500)], now=T0)
        add_schedule(store, overlap="queue")
        for minute in (1, 2, 3):
            fire(store, now=T0 + minute * MINUTE)
        first = add_job(store, key="k", now=T0)
        assert add_job(store, key="k", now=T0) == first
        while jobs := claim(store, 100, now=T0 + HOUR):
            for job in jobs[:5]:
                store.append_logs([a_line(job.id, "hello")])
            for job in jobs:
                assert succeed(store, job, now=T0 + HOUR) == []
        assert {job.state for job in all_jobs(store)} == {State.SUCCEEDED}
        assert store.change_lock("l", "acquire", "mine", HOUR) == 1
        store.list_queues()

    def test_rivals_claim_each_job_once(self, store):
        made = add(store, *[a_job() for _ in range(100)])
        taken = in_threads(claim_until_empty, [store] * 8)
        assert sorted(job for mine in taken for job in mine) == sorted(made)

    def test_nothing_is_left_behind_on_its_connections(self, store, pooler):
        """What is set for a session would be met by the next client."""
        server, bouncer = pooler
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        names = "'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'enable_seqscan'"
        query = f"SELECT count(*) FROM pg_settings WHERE source = 'session' AND name IN ({names})"
        for _ in range(8):
            with psycopg.connect(bouncer.url(), autocommit=True, prepare_threshold=None) as other:
                assert other.execute(query).fetchone() == (0,)
        assert server.run_sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == "0"

    def test_it_says_once_that_nobody_can_listen(self, store, caplog):
        with caplog.at_level(logging.WARNING, "rota.store.postgres"):
            for _ in range(3):
                with listener_on(store, "jobs") as listener:
                    assert is_woken(listener, lambda: add_job(store))  # within the process it is still heard
        assert [record.message.count("?listen=") for record in caplog.records] == [1]

    def test_a_line_beside_it_hears_everybody(self, pooler, namespace, make_store):
        server, bouncer = pooler
        listening = f"{bouncer.url()}?listen={server.url()}"
        with (
            opened(partial(PostgresStore, listening, namespace=namespace)) as store,
            opened(make_store) as other,
            listener_on(store, "jobs") as listener,
        ):
            while listener.wait(0.3):
                pass
            assert is_woken(listener, lambda: add_job(other))

    def test_a_worker_runs_through_it(self, pooler, namespace):
        _, bouncer = pooler
        app = App(bouncer.url(), namespace=namespace)
        task = app.task(len, name="count")
        with app.running():
            assert task.enqueue("abc").result("20s") == 3
        app.close()


class TestWakingUp:
    def test_a_busy_queue_notifies_nobody_of_each_job(self, store, namespace):
        """A worker that is at work comes back by itself; a listener costs every commit of every caller."""
        add_job(store)
        with psycopg.connect(shared_url(), autocommit=True) as line:
            line.execute(f"LISTEN {namespace}_jobs")
            for _ in range(10):
                add_job(store)
                store.add_jobs([a_job() for _ in range(30)], now=T0)
            assert list(line.notifies(timeout=0.3)) == []
            claim(store, 1_000)
            add_job(store)
            assert len(list(line.notifies(timeout=5, stop_after=1))) == 1

    def test_a_job_that_is_due_before_all_others_notifies(self, store):
        add_job(store, delay=HOUR)
        with listener_on(store, "jobs") as listener:
            while listener.wait(0.3):
                pass
            assert is_woken(listener, lambda: add_job(store, delay=MINUTE))

    def test_an_idle_exchange_writes_nothing(self, store, sql):
        before = sql("SELECT pg_current_xact_id()::text").fetchone()
        for _ in range(20):
            store.exchange(Exchange(holder=WORKER, want=10))
        (after,) = sql("SELECT pg_current_xact_id()::text").fetchone()
        assert int(after) - int(before[0]) < 10
