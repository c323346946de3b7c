"""On PostgreSQL a job can be enqueued, and end, in the caller's own transaction, whichever library holds it."""
# ruff: noqa: S608 - the names in the statements are the tests' own

from __future__ import annotations

import asyncio
from contextlib import closing
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy
from django.db import connections, transaction
from psycopg.rows import dict_row
from sqlalchemy.orm import Session

from rota import App, BadOption, JobNotFound, current_job
from rota.errors import StoreSealed
from rota.model.jobs.job import State
from rota.model.jobs.outcome import Failed, Succeeded
from rota.model.jobs.settle import settle
from rota.store.contract import Retention, Seal
from rota.testing.servers.postgres import PostgresServer, shared_url
from rota.testing.store_suite.builders import HOUR, RIVAL, T0, WORKER, a_job, a_policy
from rota.testing.store_suite.notify import listener_on
from rota.testing.store_suite.steps import add_job, all_jobs, is_kept, read, rescue_expired, running_job
from stores.postgres_stage import *  # noqa: F403 - its fixtures
from with_django.project import add_database, on_postgres, set_up


@pytest.fixture
def connection():
    with closing(psycopg.connect(shared_url())) as connection:
        yield connection


@pytest.fixture
def sale(connection):
    """A table of the caller's own."""
    name = f"sale_{uuid4().hex[:12]}"
    connection.execute(f"CREATE TABLE {name} (id text)")
    connection.commit()
    yield name
    connection.rollback()
    connection.execute(f"DROP TABLE {name}")
    connection.commit()


def in_alchemy(url):
    return sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))


@pytest.fixture(scope="module")
def django_connection():
    set_up()
    add_database("postgres", **on_postgres(shared_url()))
    yield connections["postgres"]
    connections.close_all()


class TestEnqueuing:
    def test_a_job_exists_when_the_transaction_commits_and_not_before(self, store, connection):
        new = a_job()
        store.add_jobs_in(connection, [new])
        assert not is_kept(store, new.id)
        connection.commit()
        assert read(store, new.id).state is State.QUEUED

    def test_a_rolled_back_transaction_leaves_no_job(self, store, connection):
        store.add_jobs_in(connection, [a_job(), a_job(key="k"), a_job(delay=1_000_000)])
        connection.rollback()
        assert all_jobs(store) == []
        assert store.list_queues() == []
        add_job(store, key="k")

    def test_a_savepoint_that_is_rolled_back_leaves_no_job(self, store, connection):
        first, second = a_job(), a_job()
        store.add_jobs_in(connection, [first])
        with connection.transaction() as inner:
            store.add_jobs_in(connection, [second])
            raise psycopg.Rollback(inner)
        connection.commit()
        assert [job.id for job in all_jobs(store)] == [first.id]

    def test_many_jobs_of_all_kinds_come_in_one_transaction(self, store, connection):
        first = a_job(key="k")
        jobs = [first, a_job(key="k"), a_job(waits_for=first.id), *[a_job() for _ in range(100)]]
        added = store.add_jobs_in(connection, jobs)
        connection.commit()
        assert (added[1].id, added[1].existed) == (first.id, True)
        assert [job.state for job in all_jobs(store)].count(State.HELD) == 1
        assert len(all_jobs(store)) == 102

    def test_a_key_that_is_taken_answers_with_its_job_and_ends_nothing(self, store, connection):
        taken = add_job(store, key="k")
        (added,) = store.add_jobs_in(connection, [a_job(key="k")])
        assert (added.id, added.existed) == (taken, True)
        connection.execute("SELECT 1")
        connection.commit()

    def test_a_job_that_is_there_already_ends_nothing(self, store, connection):
        new = a_job()
        store.add_jobs([new])
        assert store.add_jobs_in(connection, [new])[0].existed
        connection.execute("SELECT 1")
        connection.commit()

    def test_others_are_not_kept_waiting_by_an_open_transaction(self, store, connection):
        store.add_jobs_in(connection, [a_job() for _ in range(3)])
        for _ in range(3):
            add_job(store)
        connection.commit()
        assert store.recount() == {}

    def test_workers_are_woken_by_the_commit(self, store, connection):
        with listener_on(store, "jobs") as listener:
            while listener.wait(0.2):
                pass
            store.add_jobs_in(connection, [a_job()])
            assert not listener.wait(0.2)
            connection.commit()
            assert listener.wait(20)

    def test_a_connection_that_makes_rows_of_another_kind_is_taken(self, store):
        with closing(psycopg.connect(shared_url(), row_factory=dict_row)) as connection:
            store.add_jobs_in(connection, [a_job(), a_job(key="k")])
            connection.commit()
        assert len(all_jobs(store)) == 2

    def test_counters_that_transactions_left_are_merged_by_upkeep(self, store, connection, namespace):
        for _ in range(3):
            store.add_jobs_in(connection, [a_job()])
            connection.commit()
        store.prune(Retention(), 100)
        (rows,) = connection.execute(f"SELECT count(*) FROM {namespace}.counter WHERE slot > 1000").fetchone()
        assert rows == 0
        assert store.recount() == {}

    def test_a_sealed_store_takes_nothing(self, store, connection):
        store.seal(Seal(target="there"))
        with pytest.raises(StoreSealed):
            store.add_jobs_in(connection, [a_job()])
        connection.rollback()
        store.seal(None)


class TestEnding:
    def test_a_job_ends_with_the_callers_writes(self, store, connection, sale):
        job = running_job(store)
        connection.execute(f"INSERT INTO {sale} VALUES ('a')")
        assert store.settle_in(connection, WORKER, settle(job, Succeeded(b"1"), a_policy(), 1, 0.0))
        assert read(store, job.id).state is State.RUNNING
        connection.commit()
        assert read(store, job.id).state is State.SUCCEEDED

    def test_a_rolled_back_end_leaves_the_job_running(self, store, connection):
        job = running_job(store)
        store.settle_in(connection, WORKER, settle(job, Succeeded(), a_policy(), 1, 0.0))
        connection.rollback()
        assert read(store, job.id) == job

    def test_a_lost_lease_is_told(self, store, connection):
        job = running_job(store)
        assert not store.settle_in(connection, RIVAL, settle(job, Succeeded(), a_policy(), 1, 0.0))
        connection.rollback()

    def test_other_leases_are_renewed_while_one_job_is_ending(self, store, connection):
        ending, other = running_job(store), running_job(store)
        store.settle_in(connection, WORKER, settle(ending, Succeeded(), a_policy(), 1, 0.0))
        leases = [(ending.id, ending.lease_no), (other.id, other.lease_no)]
        assert store.extend_leases(WORKER, leases, HOUR, now=T0 + 1).lost == []
        assert read(store, other.id).lease_until == T0 + 1 + HOUR
        assert [refusal.id for refusal in rescue_expired(store, now=T0 + HOUR)] == [ending.id]
        connection.commit()
        assert read(store, ending.id).state is State.SUCCEEDED

    def test_a_retry_can_be_part_of_it_too(self, store, connection):
        job = running_job(store)
        assert store.settle_in(connection, WORKER, settle(job, Failed("no"), a_policy(1), 1, 0.0))
        connection.commit()
        assert read(store, job.id).state is State.SCHEDULED

    def test_a_task_ends_its_job_with_its_effects(self, namespace, sale):
        app = App(shared_url(), namespace=namespace)

        @app.task(name="sell")
        def sell(name: str) -> str:
            with closing(psycopg.connect(shared_url())) as mine:
                mine.execute(f"INSERT INTO {sale} VALUES (%s)", (name,))
                current_job.finish_in(mine, "sold")
                mine.commit()
            return "sold"

        with app.running(scheduler=False):
            assert sell.enqueue("a").result("20s") == "sold"
        with closing(psycopg.connect(shared_url())) as mine:
            assert mine.execute(f"SELECT id FROM {sale}").fetchall() == [("a",)]
        assert app.open().recount() == {}
        app.close()

    def test_an_app_enqueues_in_a_transaction(self, namespace, connection):
        app = App(shared_url(), namespace=namespace)
        task = app.task(len, name="count")
        app.open()
        job = task.using(tx=connection).enqueue("abc")
        with pytest.raises(JobNotFound):
            job.refresh()
        connection.commit()
        assert job.refresh().state == "queued"
        app.close()


class TestOtherLibraries:
    def test_a_session_of_sqlalchemy_carries_a_job(self, store):
        engine = in_alchemy(shared_url())
        new, dropped = a_job(), a_job()
        with Session(engine) as session:
            session.execute(sqlalchemy.text("SELECT 1"))
            store.add_jobs_in(session, [new])
            session.commit()
            store.add_jobs_in(session, [dropped])
            session.rollback()
        engine.dispose()
        assert [job.id for job in all_jobs(store)] == [new.id]

    def test_a_connection_of_sqlalchemy_carries_a_job(self, store):
        engine = in_alchemy(shared_url())
        new, dropped = a_job(), a_job()
        with engine.begin() as connection:
            store.add_jobs_in(connection, [new])
        with engine.connect() as connection:
            store.add_jobs_in(connection, [dropped])
        engine.dispose()
        assert [job.id for job in all_jobs(store)] == [new.id]

    def test_djangos_connection_carries_a_job(self, store, django_connection):
        new, dropped = a_job(), a_job()
        with transaction.atomic(using="postgres"):
            store.add_jobs_in(django_connection, [new])
        with transaction.atomic(using="postgres"):
            store.add_jobs_in(django_connection, [dropped])
            transaction.set_rollback(True, using="postgres")
        assert [job.id for job in all_jobs(store)] == [new.id]

    def test_djangos_connection_outside_of_atomic_is_refused(self, store, django_connection):
        django_connection.ensure_connection()
        with pytest.raises(BadOption, match="autocommit"):
            store.add_jobs_in(django_connection, [a_job()])


class TestRefusedTransactions:
    def test_autocommit_without_a_transaction_is_refused(self, store):
        with closing(psycopg.connect(shared_url(), autocommit=True)) as connection:
            with pytest.raises(BadOption, match=r"autocommit.*connection\.transaction"):
                store.add_jobs_in(connection, [a_job()])
            with connection.transaction():
                store.add_jobs_in(connection, [a_job()])
        assert len(all_jobs(store)) == 1

    def test_another_database_is_refused_and_stays_usable(self, store):
        url = shared_url().rpartition("/")[0] + "/postgres"
        with closing(psycopg.connect(url)) as other:
            with pytest.raises(BadOption, match="one transaction needs one database"):
                store.add_jobs_in(other, [a_job()])
            other.execute("SELECT 1")

    def test_another_server_is_refused(self, store):
        with (
            PostgresServer(version=16) as elsewhere,
            closing(psycopg.connect(elsewhere.url())) as other,
            pytest.raises(BadOption, match="one database"),
        ):
            store.add_jobs_in(other, [a_job()])

    def test_a_transaction_that_has_failed_is_refused(self, store, connection):
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1 / 0")
        with pytest.raises(BadOption, match="failed already"):
            store.add_jobs_in(connection, [a_job()])

    def test_a_closed_connection_is_refused(self, store, connection):
        connection.close()
        with pytest.raises(BadOption, match="closed"):
            store.add_jobs_in(connection, [a_job()])

    def test_an_async_connection_is_refused(self, store):
        async def hand_in():
            async with await psycopg.AsyncConnection.connect(shared_url()) as connection:
                store.add_jobs_in(connection, [a_job()])

        with pytest.raises(BadOption, match="async"):
            asyncio.run(hand_in())

    @pytest.mark.parametrize("odd", ["BEGIN", None, 3, object()])
    def test_what_is_no_connection_is_refused(self, store, odd):
        with pytest.raises(BadOption, match="psycopg"):
            store.add_jobs_in(odd, [a_job()])
