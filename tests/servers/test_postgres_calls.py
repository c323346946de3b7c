"""Calls of the schema's functions: what was prepared may be gone, texts are of any kind, a batch is all or none."""

from __future__ import annotations

from functools import partial

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from rota.errors import StoreError
from rota.model.jobs.job import State
from rota.model.jobs.outcome import Failed, Succeeded
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import settle
from rota.store.contract import Exchange, Refusal
from rota.store.postgres import PostgresStore
from rota.store.postgres.notify import check_connection, received
from rota.testing.servers.postgres import shared_url
from rota.testing.store_suite.builders import T0, WORKER, a_job
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.rivals import in_threads
from rota.testing.store_suite.steps import add, add_job, claim, read
from stores.postgres_stage import *  # noqa: F403 - its fixtures

ONCE = RetryPolicy(retries=0)


def ended(job, outcome=None, now=T0 + 1):
    return settle(job, outcome or Succeeded(None), ONCE, now, 0.0)


class TestPrepared:
    def test_a_call_is_prepared_once_for_a_connection(self, namespace):
        with opened(partial(PostgresStore, f"{shared_url()}?pool=1", namespace=namespace)) as store:
            add(store, a_job(), a_job())
            claim(store, 1)
            store.exchange(Exchange(holder=WORKER, want=300, lease_for=1))
            assert sorted(prepared(store)) == ["add_jobs", "exchange"]

    def test_what_was_prepared_may_be_gone(self, namespace):
        with opened(partial(PostgresStore, f"{shared_url()}?pool=1", namespace=namespace)) as store:
            add_job(store)
            store._database.call(lambda tx: tx.run("DEALLOCATE ALL"))
            second = add_job(store)
            assert read(store, second).state is State.QUEUED

    def test_nothing_is_prepared_on_a_pool_of_the_callers(self, namespace):
        with (
            ConnectionPool(shared_url(), min_size=1, max_size=1) as pool,
            opened(partial(PostgresStore, pool, namespace=namespace)) as store,
        ):
            add_job(store)
            claim(store, 1)
            assert prepared(store) == []

    def test_one_thread_uses_one_connection(self, store):
        add_job(store)
        assert len({store._database.call(lambda tx: tx.connection) for _ in range(6)}) == 1

    def test_threads_share_a_small_pool(self, namespace):
        with opened(partial(PostgresStore, f"{shared_url()}?pool=2", namespace=namespace)) as store:
            in_threads(lambda handle, _: [add_job(handle) for _ in range(20)], [store] * 8)
            assert len(claim(store, 200)) == 160


def prepared(store):
    """The functions whose calls are prepared on the connection."""
    rows = store._database.call(lambda tx: tx.rows("SELECT statement FROM pg_prepared_statements"))
    return [statement.partition("(")[0].rpartition(".")[2] for (statement,) in rows]


class TestTexts:
    @pytest.mark.parametrize("encoding", ["utf8", "latin1"])
    def test_texts_are_sent_as_the_connection_speaks(self, namespace, encoding):
        options = {"client_encoding": encoding}
        with (
            ConnectionPool(shared_url(), kwargs=options, min_size=1, max_size=2) as pool,
            opened(partial(PostgresStore, pool, namespace=namespace)) as store,
        ):
            one = add_job(store, task="grün")
            many = add(store, a_job(task="käse"), a_job(task='"\\'))
            jobs = claim(store, 3)
            assert [job.task for job in jobs] == ["grün", "käse", '"\\']
            store.exchange(Exchange(holder=WORKER, settled=[ended(job, Failed("ü", may_retry=False)) for job in jobs]))
            assert {read(store, job_id).error for job_id in (one, *many)} == {"ü"}

    def test_what_the_server_cannot_keep_is_refused_and_not_cut_short(self, store):
        for jobs in ([a_job(task="a\x00b")], [a_job(task="a\x00b"), a_job()]):
            with pytest.raises(StoreError):
                store.add_jobs(jobs)
        assert claim(store, 5) == []


class TestBatches:
    def test_a_lost_lease_in_a_batch_is_named_and_the_others_are_settled(self, store):
        add(store, *[a_job(queue=f"q{n % 2}") for n in range(6)])
        jobs = claim(store, 6, queues=("q0", "q1"))
        changes = [ended(job) for job in jobs]
        store.exchange(Exchange(holder=WORKER, settled=changes[:1]), now=T0 + 1)
        reply = store.exchange(Exchange(holder=WORKER, settled=changes, want=1), now=T0 + 2)
        assert reply.refused == [Refusal(jobs[0].id, "lease")]
        assert {read(store, job.id).state for job in jobs} == {State.SUCCEEDED}

    def test_ends_of_every_kind_go_in_one_call(self, store):
        add(store, *[a_job() for _ in range(3)], a_job(key="k"))
        plain, failed, with_result, keyed = claim(store, 4)
        settled = [
            ended(plain),
            ended(failed, Failed("no", may_retry=False)),
            ended(with_result, Succeeded(b"7"), T0 + 5),
            ended(keyed),
        ]
        assert store.exchange(Exchange(holder=WORKER, settled=settled), now=T0 + 5).refused == []
        assert [read(store, job.id).state.value for job in (plain, failed, with_result)] == [
            "succeeded",
            "failed",
            "succeeded",
        ]
        assert (read(store, with_result.id).result, read(store, with_result.id).finished_at) == (b"7", T0 + 5)
        assert add_job(store, key="k") != keyed.id
        check_store(store)

    def test_two_connections_count_in_rows_of_their_own(self, store):
        with store._database.lease() as one, store._database.lease() as other:
            first, second, again = (store._database._transaction(c).counter_slot for c in (one, other, one))
        assert first != second
        assert first == again


class TestListening:
    def test_a_notification_during_a_check_is_received(self, sql, namespace):
        with psycopg.connect(shared_url(), autocommit=True) as connection:
            connection.execute(f'LISTEN "{namespace}_jobs"')
            sql(f'NOTIFY "{namespace}_jobs"')
            check_connection(connection)
            assert received(connection, {f"{namespace}_jobs": "jobs"}) == {"jobs"}
            assert received(connection, {f"{namespace}_jobs": "jobs"}) == set()
