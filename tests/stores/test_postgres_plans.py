"""Plans on PostgreSQL: whatever grows large is reached by an index."""
# ruff: noqa: S608 - the names in the statements are the tests' own

from __future__ import annotations

import time

import pytest

from rota.model.audit_record import AuditRecord
from rota.model.jobs.job import State
from rota.model.schedules.edit import pause
from rota.store.contract import AuditFilter, JobFilter, ScheduleFilter
from rota.store.shared.batching import FEW_DUE
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, WORKER, a_job
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.steps import (
    add_job,
    change_schedule,
    claim,
    fire_due,
    new_schedule,
    planned,
    read,
    read_schedule,
    succeed,
)
from stores.postgres_stage import *  # noqa: F403 - its fixtures


class TestPlans:
    """Whatever grows large is reached by an index: the server itself counts its scans."""

    @pytest.fixture
    def scans(self, make_store, namespace, sql):
        def counted():
            wait_until_reported(sql)
            rows = sql(f"SELECT relname, seq_scan FROM pg_stat_user_tables WHERE schemaname = '{namespace}'")
            return dict(rows.fetchall())

        with opened(make_store) as store:
            for _ in range(12):
                store.add_jobs([a_job(queue=f"q{n % 3}", priority=n % 5) for n in range(1_000)], now=T0)
            store.add_jobs([a_job(delay=HOUR) for _ in range(1_000)], now=T0)
            for job in claim(store, 500, queues=("q0",)):
                succeed(store, job)
            store.edit_schedules([new_schedule(f"s{n:04}", trigger="every 1h") for n in range(3_000)], now=T0)
            store.edit_schedules([new_schedule(f"due{n}", overlap="queue") for n in range(10)], now=T0)
            early = {"trigger": "every 20m", "lookahead": 50 * MINUTE, "queue": "q3", "tenant": "acme"}
            ahead = [new_schedule(f"ahead{n}", **early) for n in range(8)]
            store.edit_schedules(ahead, now=T0)
            store.fire([planned(store, edit.id, now=T0) for edit in ahead], now=T0)
            store.add_audit_records([an_audit_record(number) for number in range(5_000)])
        sql(
            f"INSERT INTO {namespace}.occurrence SELECT 's' || n / 100, n, n - 1, 1, 'skipped', 'overlap' "
            "FROM generate_series(1, 5000) AS n"
        )
        sql(
            f"INSERT INTO {namespace}.finished (seq, run_at, rank, queue, finished_at, state) "
            "SELECT -n, n, 0, 'q9', n, 'succeeded' FROM generate_series(1, 20000) AS n"
        )
        sql(f"INSERT INTO {namespace}.log SELECT n, n, n, 'info', 'so far so good' FROM generate_series(1, 5000) AS n")
        sql("ANALYZE")
        before = counted()
        yield
        assert_no_scan(before, counted)

    @pytest.mark.usefixtures("scans")
    def test_nothing_that_grows_is_scanned(self, make_store):
        with opened(make_store) as store:
            (job, *_) = claim(store, 100, queues=("q0",), now=T0 + 1)
            assert len(claim(store, 100, queues=("q1", "q2"), now=T0 + 1)) == 100
            assert len(store.due_schedules(100, now=T0 + MINUTE).schedules) == 10
            made = fire_due(store, now=T0 + MINUTE)
            assert sum(len(fired.jobs) for fired in made) == 10
            succeed(store, job, now=T0 + 2)
            add_job(store, key="k", waits_for=made[0].jobs[0], now=T0 + 2)
            store.extend_leases(WORKER, [(job.id, job.lease_no)], HOUR)
            assert store.expired_jobs(10, now=T0 + HOUR) != []
            read(store, job.id)
            for where in (
                JobFilter(),
                JobFilter(schedule_id="due1"),
                JobFilter(key="k"),
                JobFilter(states=(State.FAILED, State.CANCELLED)),
            ):
                store.list_jobs(where, limit=50)
            store.list_occurrences("due1", 0, T0 + HOUR)

    @pytest.mark.usefixtures("scans")
    def test_nothing_is_scanned_for_what_was_made_ahead(self, make_store):
        with opened(make_store) as store:
            assert len(claim(store, 100, queues=("q3",), now=T0 + 20 * MINUTE)) == 8
            schedule = read_schedule(store, "ahead7")
            change_schedule(store, pause(schedule, T0 + 30 * MINUTE, reason="", by="", until=None))
            assert claim(store, 100, queues=("q3",), now=T0 + 40 * MINUTE) == []

    @pytest.mark.usefixtures("scans")
    def test_nothing_is_scanned_for_a_tenant_or_an_audit_record(self, make_store):
        with opened(make_store) as store:
            assert len(store.list_schedules(ScheduleFilter(tenant="acme")).items) == 8
            assert store.list_schedules(ScheduleFilter(origin="code:shop")).items == []
            assert len(store.list_audit_records(AuditFilter(subject="s7")).items) == 5
            assert len(store.list_audit_records(AuditFilter(until=T0 + 7)).items) == 7
            store._database.call(lambda tx: store._records.prune(tx, T0 + 3, 10))

    @pytest.mark.usefixtures("scans")
    @pytest.mark.parametrize("limit", [1_000, 5])
    def test_a_scheduler_reads_what_is_due_and_one_more(self, make_store, namespace, sql, limit):
        before = entries_read(sql, namespace, "schedule_due")
        with opened(make_store) as store:
            due = store.due_schedules(limit, now=T0 + MINUTE)
        assert len(due.schedules) == min(limit, 10)
        assert entries_read(sql, namespace, "schedule_due") - before <= 2 * FEW_DUE

    @pytest.mark.usefixtures("scans")
    def test_queues_are_listed_without_reading_their_jobs(self, make_store, namespace, sql):
        before = entries_read(sql, namespace, "ready%")
        with opened(make_store) as store:
            assert {queue.name: queue.oldest_at for queue in store.list_queues()}["q2"] == T0
        assert entries_read(sql, namespace, "ready%") - before < 2_000  # of 12,500, with those that were claimed


@pytest.mark.parametrize(
    "where", [JobFilter(states=(State.SUCCEEDED,)), JobFilter(states=(State.SUCCEEDED,), task="mail")]
)
def test_the_newest_successes_are_read_without_statistics(make_store, namespace, sql, where):
    """After a bulk load the server knows nothing yet of a table, and takes the successes in it for few."""
    with opened(make_store) as store:
        sql(f"ALTER TABLE {namespace}.finished SET (autovacuum_enabled = false)")
        add_job(store)
        sql(
            f"INSERT INTO {namespace}.finished (seq, run_at, rank, queue, finished_at, state) "
            "SELECT -n, n, 0, 'q9', n, 'succeeded' FROM generate_series(1, 50000) AS n"
        )
        store.list_jobs(where, limit=20)
    wait_until_reported(sql)
    by_time = "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'finished_at' AND schemaname = %s"
    assert sql(by_time, (namespace,)).fetchone() == (0,)


def an_audit_record(number):
    return AuditRecord(id=f"n{number:05}", at=T0 + number, by="ann", verb="changed", subject=f"s{number % 1_000}")


GROWING = {"audit", "job", "ready", "later", "finished", "schedule", "occurrence", "log"}


def wait_until_reported(sql):
    """Connections tell their numbers when they close, and that takes them a moment."""
    while sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rota'").fetchone() != (0,):
        time.sleep(0.02)  # a connection that ends sends no signal


def entries_read(sql, namespace, indexes):
    """How many entries of these indexes their scans have returned so far."""
    wait_until_reported(sql)
    query = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = %s AND indexrelname LIKE %s"
    return sql(query, (namespace, indexes)).fetchone()[0]


def assert_no_scan(before, counted):
    after = counted()
    grown = {name: after[name] - before[name] for name in GROWING if after[name] > before[name]}
    assert grown == {}
