"""Jobs and Django's transactions and connections, on SQLite and PostgreSQL."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from django.db import OperationalError, connections, transaction

from rota.django import enqueue_on_commit


@contextmanager
def rolled_back(alias: str = "default"):
    with transaction.atomic(using=alias):
        yield
        transaction.set_rollback(True, using=alias)


def test_a_job_in_a_transaction_exists_if_it_commits(shop_app, alias):
    task = shop_app.task(abs, name="abs")
    with transaction.atomic(using=alias):
        task.using(tx=connections[alias]).enqueue(-1)
    with rolled_back(alias):
        task.using(tx=connections[alias]).enqueue(-2)
    assert [job.args for job in shop_app.jobs.list()] == [[-1]]


def test_a_job_on_commit_is_enqueued_once_and_never_after_a_rollback(shop_app):
    task = shop_app.task(abs, name="abs")
    shop_app.open()
    with transaction.atomic():
        enqueue_on_commit(task, -1)
        assert len(shop_app.jobs.list()) == 0
    with rolled_back():
        enqueue_on_commit(task, -2)
    enqueue_on_commit(task, -3)
    assert sorted(job.args for job in shop_app.jobs.list()) == [[-3], [-1]]


def select(alias: str) -> int:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT 1")
        return cursor.fetchone()[0]


@pytest.mark.parametrize("alias", ["postgres"], indirect=True)
@pytest.mark.parametrize("max_age", [0, None])
def test_after_the_server_dropped_all_connections_the_next_attempt_works(shop_app, alias, max_age):
    connections.settings[alias]["CONN_MAX_AGE"] = max_age
    number = []
    closing = shop_app.task(connections.close_all, name="close")  # in the only thread; others would outlive the test

    @shop_app.task(name="ask", retries=1, backoff="1s")
    def ask() -> int:
        number.append(1)
        if len(number) == 1:
            select(alias)
            drop_connections(alias)
        return select(alias)

    with shop_app.running(concurrency=1, queues=["default"], scheduler=False):
        job = ask.enqueue()
        assert job.result("60s") == 1
        closing.enqueue().result("60s")
    assert len(number) == 2


@pytest.mark.parametrize("alias", ["postgres"], indirect=True)
@pytest.mark.parametrize("max_age", [0, None])
def test_connections_that_were_dropped_between_two_attempts_cost_none(shop_app, alias, max_age):
    connections.settings[alias]["CONN_MAX_AGE"] = max_age
    ask = shop_app.task(lambda: select(alias), name="ask", retries=0)
    closing = shop_app.task(connections.close_all, name="close")

    with shop_app.running(concurrency=1, queues=["default"], scheduler=False):
        assert ask.enqueue().result("60s") == 1
        drop_other_connections(alias)
        assert ask.enqueue().result("60s") == 1
        closing.enqueue().result("60s")


def drop_other_connections(alias: str) -> None:
    """All connections to the database, but for the one that asks for it."""
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    connections[alias].close()


def drop_connections(alias: str) -> None:
    """As a restart of the server does: this connection is told that it is over."""
    with pytest.raises(OperationalError), connections[alias].cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


def test_a_task_that_ends_has_no_old_connection_open(shop_app, alias):
    seen = []
    task = shop_app.task(lambda: seen.append(connections[alias].connection) or select(alias), name="look")
    with shop_app.running(concurrency=1, scheduler=False):
        assert task.enqueue().result("60s") == 1
        assert task.enqueue().result("60s") == 1
    assert seen == [None, None]  # CONN_MAX_AGE is 0: each attempt opens its own
