"""Additions to a schema version: a store that was made before them gets them when it is opened, and loses nothing."""
# ruff: noqa: S608 - the names in the statements are the tests' own

from __future__ import annotations

import sqlite3
from contextlib import closing

from rota.model.jobs.job import State
from rota.store.contract import JobFilter
from rota.store.sqlite import SqliteStore
from rota.testing.store_suite.builders import HOUR, T0
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.steps import add_job, failed_job, ids, running_job, succeed, succeeded_job
from stores.postgres_stage import *  # noqa: F403 - its fixtures

OLD = JobFilter(until=T0 + 1)


def live(store):
    """A job of before and one of after, which ended."""
    old = add_job(store, queue="idle")
    succeed(store, running_job(store, now=T0 + HOUR), now=T0 + HOUR)
    return old


def check(store, old):
    assert ids(store.list_jobs(OLD).items) == [old]
    job = running_job(store, now=T0 + HOUR)
    succeed(store, job, now=T0 + HOUR)
    assert store.read_series(0, T0 + 2 * HOUR)[-1].at == T0 + HOUR


def test_a_sqlite_file_of_before_gets_them(tmp_path):
    path = tmp_path / "rota.db"
    with opened(lambda: SqliteStore(path)) as store:
        old = live(store)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM rota_meta WHERE name = 'additions'")
        connection.execute("DROP TABLE rota_series")
        connection.execute("DROP TABLE rota_time_block")
    assert len(SqliteStore(path).pending_migrations()) == 1
    with opened(lambda: SqliteStore(path)) as store:
        assert SqliteStore(path).pending_migrations() == []
        check(store, old)


def test_a_postgres_schema_of_before_gets_them(make_store, namespace, sql):
    with opened(make_store) as store:
        old = live(store)
    sql(f"DELETE FROM {namespace}.meta WHERE name = 'additions'")
    sql(f"DROP TABLE {namespace}.series, {namespace}.time_block")
    sql(f"DROP FUNCTION {namespace}.add_runs, {namespace}.index_times, {namespace}.has_many_dead")
    sql(f"ALTER TABLE {namespace}.ready DROP COLUMN is_new")
    assert len(make_store().pending_migrations()) == 1
    with opened(make_store) as store:
        assert make_store().pending_migrations() == []
        check(store, old)


def test_failed_jobs_of_before_are_found_by_task_and_time(make_store, namespace, sql):
    with opened(make_store) as store:
        old = failed_job(store, task="mail")
        succeeded_job(store, task="mail")
    sql(f"UPDATE {namespace}.meta SET value = '5' WHERE name = 'additions'")
    sql(f"DROP TRIGGER describe_rare ON {namespace}.finished")
    sql(f"ALTER TABLE {namespace}.finished DROP COLUMN task, DROP COLUMN created_at")
    with opened(make_store) as store:
        new = failed_job(store, task="mail", now=T0 + HOUR)
        failed = JobFilter(states=(State.FAILED,), task="mail")
        assert ids(store.list_jobs(failed).items) == [new, old]
        assert store.count_jobs(failed) == 2
        assert ids(store.list_jobs(JobFilter(states=(State.FAILED,), until=T0 + 1)).items) == [old]
    rows = sql(f"SELECT task, created_at FROM {namespace}.finished ORDER BY seq").fetchall()
    assert rows == [("mail", T0), (None, None), ("mail", T0 + HOUR)]
