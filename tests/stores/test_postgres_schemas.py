"""The schema on PostgreSQL: made once by many, planned, refused, and used by roles that may not make it."""
# ruff: noqa: S608 - the names in the statements are the tests' own

from __future__ import annotations

from functools import partial
from uuid import uuid4

import pytest

from rota.errors import BadStoreUrl, SchemaMismatch, StoreError
from rota.store.postgres import PostgresStore, from_url
from rota.store.postgres.schema import VERSION
from rota.testing.servers.postgres import PASSWORD, shared_url
from rota.testing.store_suite.builders import MINUTE, T0, a_line
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.notify import is_woken, listener_on
from rota.testing.store_suite.rivals import in_processes
from rota.testing.store_suite.steps import (
    add_job,
    add_schedule,
    all_jobs,
    claim,
    fire,
    ids,
    running_job,
    succeed,
)
from stores.postgres_stage import *  # noqa: F403 - its fixtures


class TestSchemas:
    def test_twenty_processes_make_the_schema_at_once(self, namespace):
        made = in_processes(open_anew, partial(PostgresStore, shared_url(), namespace=namespace), 20)
        assert made == [True] * 20

    @pytest.mark.usefixtures("store")
    def test_a_newer_schema_is_refused(self, make_store, namespace, sql):
        sql(f"UPDATE {namespace}.meta SET value = '99' WHERE name = 'version'")
        with pytest.raises(SchemaMismatch, match=f"version 99, this Rota knows up to {VERSION}"):
            make_store().open()
        with pytest.raises(SchemaMismatch):
            make_store().pending_migrations()
        sql(f"UPDATE {namespace}.meta SET value = '{VERSION}' WHERE name = 'version'")

    def test_a_schema_of_somebody_else_is_refused(self, make_store, namespace, sql):
        sql(f"CREATE SCHEMA {namespace}")
        sql(f"CREATE TABLE {namespace}.job (id int)")
        with pytest.raises(SchemaMismatch, match="did not make"):
            make_store().open()

    def test_a_meta_table_of_somebody_else_is_refused(self, make_store, namespace, sql):
        sql(f"CREATE SCHEMA {namespace}")
        sql(f"CREATE TABLE {namespace}.meta AS SELECT 'version' AS name, 'yes' AS value")
        with pytest.raises(SchemaMismatch, match="did not make"):
            make_store().open()

    def test_the_plan_can_be_run_by_hand(self, make_store, sql):
        scripts = make_store().pending_migrations()
        assert make_store().pending_migrations() == scripts  # asking changed nothing
        for script in scripts:
            sql(script.encode())
        assert make_store().pending_migrations() == []
        with opened(make_store) as store:
            assert ids(claim(store)) == []
            check_store(store)

    def test_dropped_tables_are_told(self, make_store, namespace, sql):
        with opened(make_store) as store:
            sql(f"DROP SCHEMA {namespace} CASCADE")
            with pytest.raises(SchemaMismatch, match="rota migrate"):
                all_jobs(store)

    @pytest.mark.parametrize("odd", ["", "1a", "a-b", "pg_mine", "a" * 40, 'x"; DROP TABLE job; --', "ä"])
    def test_an_odd_namespace_is_refused(self, odd):
        with pytest.raises(BadStoreUrl, match="namespace"):
            from_url(shared_url(), namespace=odd)

    def test_two_namespaces_share_a_database_and_nothing_else(self, store):
        with opened(partial(PostgresStore, shared_url(), namespace=f"T{uuid4().hex[:12]}_Upper")) as other:
            add_job(store)
            assert all_jobs(other) == []
            with listener_on(other, "jobs") as listener:
                assert is_woken(listener, lambda: add_job(other))


def open_anew(store, number):
    """Open a namespace that nobody has made yet."""
    del number
    fresh = PostgresStore(shared_url_of(store), namespace=store.namespace + "x")
    with opened(lambda: fresh) as handle:
        return handle.recount() == {}


def shared_url_of(store):
    return store._database._server.conninfo


class TestPrivileges:
    @pytest.fixture
    def guest(self, sql):
        name = f"g{uuid4().hex[:12]}"
        sql(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
        yield name
        sql(f"DROP OWNED BY {name}")
        sql(f"DROP ROLE {name}")

    def test_a_role_that_may_not_make_a_schema_is_told_so(self, guest, namespace):
        url = shared_url().replace("rota:", f"{guest}:", 1)
        with pytest.raises(StoreError, match=r"permission denied.*rota migrate"):
            PostgresStore(url, namespace=namespace).open()

    @pytest.mark.usefixtures("store")
    def test_a_role_with_the_use_of_a_schema_needs_no_more(self, guest, namespace, sql):
        sql(f"GRANT USAGE ON SCHEMA {namespace} TO {guest}")
        sql(f"GRANT ALL ON ALL TABLES IN SCHEMA {namespace} TO {guest}")
        sql(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA {namespace} TO {guest}")
        url = shared_url().replace("rota:", f"{guest}:", 1)
        with opened(partial(PostgresStore, url, namespace=namespace)) as other:
            succeed(other, running_job(other))
            add_schedule(other)
            fire(other, now=T0 + MINUTE)
            other.append_logs([a_line(all_jobs(other)[0].id, "hello")])
