"""Look-ahead, filters and notes on PostgreSQL: what they cost, which index finds them, and who waits for whom."""

from __future__ import annotations

from collections import Counter

import msgspec
import psycopg
import pytest

from rota.model.audit_record import AuditRecord
from rota.model.jobs.job import State
from rota.model.schedules.edit import register
from rota.store.contract import AuditFilter, ScheduleFilter
from rota.store.postgres.address import parse
from rota.store.postgres.connection import Database
from rota.store.postgres.records import Records
from rota.store.postgres.schedules import Schedules
from rota.testing.servers.postgres import shared_url
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, fresh_id
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.rivals import in_threads
from rota.testing.store_suite.steps import (
    add_job,
    add_schedule,
    all_jobs,
    claim,
    fire,
    fire_due,
    ids,
    ledger,
    new_schedule,
    read,
)
from stores.postgres_stage import *  # noqa: F403 - its fixtures

CLOSED = Database(parse("postgresql://localhost/closed"), "closed", 10.0)  # queries are made without it
SOON = 3 * MINUTE + 30_000_000  # three occurrences lie within it


def an_audit_record(number=0):
    return AuditRecord(id=fresh_id(), at=T0 + number, by="ann", verb="changed", subject=f"schedule:s{number % 9}")


def explained(sql, query, values, namespace):
    text = query.replace("{ns}", namespace).replace("?", "%s")
    return "\n".join(line for (line,) in sql(f"EXPLAIN {text}", values).fetchall())


class TestTrips:
    @pytest.mark.parametrize("now", [T0, T0 + 30_000_000])
    def test_a_claim_is_one_call_while_nothing_made_ahead_is_due(self, store, trips, now):
        add_schedule(store, lookahead=SOON)
        fire(store, now=T0)
        plain, due = add_job(store), add_job(store, run_at=T0 + 30_000_000)
        trips.clear()
        claimed = claim(store, 9, now=now)
        assert ids(claimed) == ([plain] if now == T0 else [plain, due])
        assert len(trips) == 1

    def test_an_audit_record_of_each_edit_costs_no_trip_of_its_own(self, store, trips):
        names = [f"s{number:03}" for number in range(200)]
        assert store.edit_schedules([new_schedule(name, tenant="acme") for name in names], now=T0) == []
        numbers = []
        for some in (names[:2], names[2:]):
            schedules = store.get_schedules(some)
            trips.clear()
            edits = [_reworded(schedule, an_audit_record()) for schedule in schedules]
            assert store.edit_schedules(edits, now=T0) == []
            numbers.append(len(trips))
        assert numbers[0] == numbers[1]
        assert len(store.list_audit_records(AuditFilter(), limit=500).items) == 200


class TestIndexes:
    @pytest.fixture
    def filled(self, store, sql):
        edits = [new_schedule(f"s{number:04}", tenant=f"t{number % 100 or ''}") for number in range(2_000)]
        store.edit_schedules(edits, now=T0)
        store.add_audit_records([an_audit_record(number) for number in range(2_000)])
        sql("ANALYZE")

    @pytest.mark.usefixtures("filled")
    @pytest.mark.parametrize(
        ("where", "index"),
        [
            (ScheduleFilter(tenant="t7"), "schedule_tenant"),
            (ScheduleFilter(tenant="nobody"), "schedule_tenant"),
            (ScheduleFilter(origin="code:shop"), "schedule_origin"),
            (ScheduleFilter(tenant="t7", origin="code:shop"), "schedule_"),
        ],
    )
    def test_a_list_by_tenant_or_origin_goes_through_its_index(self, sql, namespace, where, index):
        query, values = Schedules(CLOSED, *[None] * 4).found_by(where, "s0100", 51)
        assert index in explained(sql, query, values, namespace)

    @pytest.mark.usefixtures("filled")
    @pytest.mark.parametrize(
        ("where", "index"),
        [
            (AuditFilter(subject="schedule:s7"), "audit_subject"),
            (AuditFilter(subject="schedule:s7", since=T0 + 50), "audit_subject"),
            (AuditFilter(until=T0 + 50), "audit_at"),
        ],
    )
    def test_a_list_of_audit_records_goes_through_its_index(self, sql, namespace, where, index):
        query, values = Records(CLOSED).found_by(where, f"{T0 + 100}-x", 51)
        assert index in explained(sql, query, values, namespace)

    def test_schedules_without_a_tenant_can_be_listed(self, store):
        for name, tenant in (("a", ""), ("b", "acme"), ("c", "")):
            add_schedule(store, name, tenant=tenant)
        found = store.list_schedules(ScheduleFilter(tenant="")).items
        assert [schedule.id for schedule in found] == ["a", "c"]


class TestRivals:
    @pytest.mark.parametrize("overlap", ["skip", "queue", "cancel"])
    def test_each_job_is_judged_once(self, store, make_store, overlap):
        names = [f"s{number}" for number in range(12)]
        spec = {"lookahead": SOON, "overlap": overlap, "grace": HOUR}
        store.edit_schedules([new_schedule(name, **spec) for name in names], now=T0)
        fire_due(store, now=T0)
        with opened(make_store) as second, opened(make_store) as third:
            handles = [store, second, third]
            rounds = in_threads(lambda handle, _: [claim(handle, 3, now=T0 + HOUR) for _ in range(8)], handles)
        claimed = Counter(job.id for got in rounds for jobs in got for job in jobs)
        claimed.update(ids(claim(store, 99, now=T0 + HOUR)))
        assert set(claimed.values()) == {1}
        running = [job for job in all_jobs(store) if job.state is State.RUNNING]
        assert sorted(job.schedule_id for job in running) == sorted(names)
        assert {len(ledger(store, name)) for name in names} == {2 if overlap == "skip" else 3}

    def test_a_claim_does_not_wait_for_a_schedule_that_another_has_locked(self, store, namespace):
        add_schedule(store, lookahead=SOON)
        (first, *_) = fire(store, now=T0).jobs
        plain = add_job(store, now=T0)
        with psycopg.connect(shared_url()) as other:
            other.execute(f"SELECT FROM {namespace}.schedule WHERE id = 'tick' FOR UPDATE")
            assert ids(claim(store, 9, now=T0 + MINUTE)) == [plain]
            assert read(store, first).state is State.SCHEDULED
        assert ids(claim(store, 9, now=T0 + MINUTE)) == [first]


def _reworded(schedule, record):
    spec = msgspec.structs.replace(schedule.spec, payload="[[2]]")
    edit = register(schedule, schedule.id, spec, schedule.origin, T0, fresh_id)
    return msgspec.structs.replace(edit, audit=record)
