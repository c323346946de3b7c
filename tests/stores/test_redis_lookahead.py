"""What only the Redis store has: indexes of lookahead jobs, of schedules by tenant, of entries and of audit records."""

from __future__ import annotations

import threading

import msgspec
import pytest

from rota import failpoints
from rota.model.audit_record import AuditRecord
from rota.model.entry import EntryEdit
from rota.model.jobs.job import State
from rota.model.schedules.edit import follow_spec, pause, register
from rota.store.contract import AuditFilter, Exchange, Retention, ScheduleFilter
from rota.testing.store_suite.builders import DAY, HOUR, LEASE, MINUTE, T0, WORKER, fresh_id
from rota.testing.store_suite.steps import (
    add_job,
    add_schedule,
    all_jobs,
    change_schedule,
    claim,
    claim_one,
    fire,
    history,
    ids,
    is_kept,
    ledger,
    new_schedule,
    read,
    read_schedule,
)
from stores.redis_stage import *  # noqa: F403 - its fixtures

SOON = 3 * MINUTE + 30_000_000  # three occurrences lie within it


@pytest.fixture
def at_commit():
    """Do something once, when the given number of writes have been reached."""

    def install(number, act):
        reached = []

        def hook(name):
            reached.append(name)
            if reached.count("exchange.before_commit") == number:
                failpoints.install(None)
                act()

        failpoints.install(hook)

    yield install
    failpoints.install(None)


def calls(raw, name, act):
    """How often the server is asked that while something is done."""
    before = raw.info("commandstats").get(f"cmdstat_{name}", {"calls": 0})["calls"]
    act()
    return raw.info("commandstats").get(f"cmdstat_{name}", {"calls": 0})["calls"] - before


def keys_of(store, raw, pattern):
    return [key.decode().partition(":")[2] for key in raw.keys(f"{{{store.namespace}}}:{pattern}")]


def created_early(store, name="tick", **spec):
    add_schedule(store, name, lookahead=SOON, grace=HOUR, **spec)
    return store.get_jobs(fire(store, name, now=T0).jobs)


def an_audit_record(**fields):
    return AuditRecord(
        **{"id": fresh_id(), "at": T0, "by": "ann", "verb": "made", "subject": "schedule:tick", **fields}
    )


class TestAhead:
    def test_an_exchange_is_one_call_while_none_is_due(self, store, raw):
        created_early(store)
        add_job(store)
        ask = Exchange(holder=WORKER, want=1, lease_for=LEASE)
        assert calls(raw, "evalsha", lambda: store.exchange(ask, now=T0)) == 1
        assert store.exchange(ask, now=T0).next_due_at == T0 + MINUTE

    def test_where_some_are_due_they_are_judged_together(self, store, raw):
        names = [f"s{number}" for number in range(50)]
        for name in names:
            created_early(store, name)
        ask = Exchange(holder=WORKER, want=100, lease_for=LEASE)
        store.exchange(ask, now=T0)
        assert calls(raw, "evalsha", lambda: store.exchange(ask, now=T0 + MINUTE)) == 4  # ask, survey, commit, ask
        assert sorted(job.schedule_id for job in all_jobs(store) if job.state is State.RUNNING) == sorted(names)

    def test_they_leave_nothing_in_the_indexes(self, store, raw):
        created_early(store)
        change_schedule(store, pause(read_schedule(store), T0 + 1, reason="", by="", until=None), now=T0 + 1)
        assert [*keys_of(store, raw, "ahead*"), *keys_of(store, raw, "soon*"), *keys_of(store, raw, "due*")] == []
        assert keys_of(store, raw, "in:*") == []

    def test_a_claim_that_comes_in_between_judges_them_alone(self, store, at_commit):
        first, *_ = created_early(store)
        taken = []
        at_commit(2, lambda: taken.extend(claim(store, 9, now=T0 + MINUTE)))  # the decision is about to be written
        assert claim(store, 9, now=T0 + MINUTE) == []
        assert ids(taken) == [first.id]
        assert history(store, first.id) == [State.SCHEDULED, State.QUEUED, State.RUNNING]

    def test_two_that_are_judged_at_once_are_not_both_held(self, store, at_commit):
        """They are of two queues, so that no claim sees both; each alone would be held."""
        _, second, third = created_early(store, overlap="queue")
        schedule = read_schedule(store)
        spec = msgspec.structs.replace(schedule.spec, queue="other")
        change_schedule(store, register(schedule, "tick", spec, schedule.origin, T0, fresh_id))
        (other,) = fire(store, now=T0 + MINUTE).jobs
        claim_one(store, now=T0 + MINUTE)
        at_commit(2, lambda: claim(store, 9, queues=("other",), now=T0 + HOUR))
        assert claim(store, 9, now=T0 + HOUR) == []
        assert read(store, other).state is State.HELD
        assert not is_kept(store, second.id)
        assert not is_kept(store, third.id)
        assert [(line.outcome, line.count) for line in ledger(store)] == [("running", 1), ("skipped", 2), ("held", 1)]

    def test_an_edit_that_comes_in_between_unmakes_them(self, store, at_commit):
        created_early(store)

        def stop():
            change_schedule(store, pause(read_schedule(store), T0, reason="", by="", until=None), now=T0)

        at_commit(2, stop)
        assert claim(store, 9, now=T0 + MINUTE) == []
        assert all_jobs(store) == []

    def test_many_claims_at_once_judge_each_once(self, store):
        for number in range(40):
            created_early(store, f"s{number}")
        found = []

        def work():
            found.extend(claim(store, 15, now=T0 + MINUTE))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(job.schedule_id for job in found) == sorted(f"s{number}" for number in range(40))

    def test_one_that_cannot_be_read_is_failed_and_the_others_go_on(self, store, raw):
        first, *_ = created_early(store)
        (other, *_) = created_early(store, "tock")
        place = raw.hget(f"{{{store.namespace}}}:job", first.id).split(b"|", 1)[0]
        raw.hset(f"{{{store.namespace}}}:job", first.id, place + b"|0|\x94\xa1x\xc1default")
        assert ids(claim(store, 9, now=T0 + MINUTE)) == [other.id]
        spoilt = read(store, first.id)
        assert spoilt.state is State.FAILED
        assert "cannot be" in (spoilt.error or "")
        assert keys_of(store, raw, "due:*") == []

    def test_one_that_is_gone_is_in_nobodys_way(self, store, raw):
        first, *_ = created_early(store)
        for key in keys_of(store, raw, "*"):
            if raw.type(f"{{{store.namespace}}}:{key}") == b"zset" and not key.startswith("ahead"):
                raw.zrem(f"{{{store.namespace}}}:{key}", first.id)
        raw.hdel(f"{{{store.namespace}}}:job", first.id)
        raw.hincrby(f"{{{store.namespace}}}:count", "default|scheduled", -1)
        assert claim(store, 9, now=T0 + MINUTE) == []
        ask = Exchange(holder=WORKER, want=1, lease_for=LEASE)
        assert calls(raw, "evalsha", lambda: store.exchange(ask, now=T0 + MINUTE)) == 1


class TestSchedules:
    def test_a_tenants_list_reads_its_schedules_alone(self, store, raw):
        assert store.edit_schedules([new_schedule(f"s{number:03}") for number in range(300)], now=T0) == []
        for name in ("a", "s2", "z"):
            add_schedule(store, name, tenant="acme")
        for where in (ScheduleFilter(tenant="acme"), ScheduleFilter(tenant="acme", origin="api:")):
            assert [schedule.id for schedule in store.list_schedules(where).items] == ["a", "s2", "z"]
            assert calls(raw, "hgetall", lambda where=where: store.list_schedules(where)) == 3

    def test_a_page_goes_on_past_those_that_do_not_match(self, store):
        for number in range(40):
            tenant = "acme" if number % 10 == 9 else "globex"
            add_schedule(store, f"s{number:02}", tenant=tenant)
        for number in range(40, 60):
            add_schedule(store, f"s{number:02}", tenant="acme")
        wanted = ScheduleFilter(tenant="acme", origin="api:")
        found, cursor = [], None
        while True:
            page = store.list_schedules(wanted, cursor=cursor, limit=3)
            found += [schedule.id for schedule in page.items]
            cursor = page.cursor
            if cursor is None:
                break
        assert found == ["s09", "s19", "s29", "s39", *(f"s{number}" for number in range(40, 60))]

    def test_those_of_no_tenant_are_found_too(self, store):
        add_schedule(store, "a", tenant="acme")
        add_schedule(store, "b")
        assert [schedule.id for schedule in store.list_schedules(ScheduleFilter(tenant="")).items] == ["b"]

    def test_one_that_is_gone_is_in_no_index(self, store, raw):
        add_schedule(store, "a", tenant="acme")
        schedule = read_schedule(store, "a")
        spec = msgspec.structs.replace(schedule.spec, tenant="")
        change_schedule(store, register(schedule, "a", spec, schedule.origin, T0, fresh_id))
        assert keys_of(store, raw, "tenant:*") == []
        assert keys_of(store, raw, "origin:*") == ["origin:api:"]

    def test_one_that_could_not_be_read_is_found_after_its_repair(self, store, raw):
        add_schedule(store, "a", tenant="acme")
        raw.hset(f"{{{store.namespace}}}:schedule", "a", f"1|{T0}|spoilt")
        broken = read_schedule(store, "a")
        spec = new_schedule("a", tenant="globex").after.spec
        change_schedule(store, register(broken, "a", spec, broken.origin, T0, fresh_id))
        assert [schedule.id for schedule in store.list_schedules(ScheduleFilter(tenant="globex")).items] == ["a"]
        assert store.list_schedules(ScheduleFilter(tenant="acme")).items == []

    def test_a_kept_run_costs_no_call_of_its_own(self, store, raw):
        """A tenant moves to another zone, and each of its schedules keeps the run that was announced."""
        names = [f"s{number}" for number in range(50)]
        store.edit_schedules([new_schedule(name, trigger="cron 0 9 * * *", tz="Asia/Tokyo") for name in names], now=T0)
        edits, kept = [], [schedule.next_at for schedule in store.get_schedules(names)]
        for schedule in store.get_schedules(names):
            spec = msgspec.structs.replace(schedule.spec, tz="Europe/Paris")
            edits.append(follow_spec(schedule, spec, T0 + 1, keeps_next=True))
        assert calls(raw, "evalsha", lambda: store.edit_schedules(edits, now=T0 + 1)) == 2
        assert [schedule.next_at for schedule in store.get_schedules(names)] == kept


class TestRecords:
    def test_a_note_per_edit_costs_no_call(self, store, raw):
        add_schedule(store)
        plain = [new_schedule(f"a{number}") for number in range(200)]
        noted = [msgspec.structs.replace(new_schedule(f"b{number}"), audit=an_audit_record()) for number in range(200)]
        numbers = [calls(raw, "evalsha", lambda edits=edits: store.edit_schedules(edits)) for edits in (plain, noted)]
        assert numbers == [2, 2]
        assert len(store.list_audit_records(AuditFilter(subject="schedule:tick"), limit=500).items) == 200

    def test_many_entries_are_read_in_one_call_and_edited_in_another(self, store, raw):
        edits = [
            EntryEdit(kind="tenant", name=f"n{number}", expect_version=0, data="{}", audit=an_audit_record())
            for number in range(200)
        ]
        store.edit_entries(edits[:1])
        assert calls(raw, "evalsha", lambda: store.edit_entries(edits[1:])) == 2

    def test_more_than_one_call_takes(self, store):
        edits = [EntryEdit(kind="t", name="a", expect_version=number, data=str(number)) for number in range(1_100)]
        assert store.edit_entries(edits) == []
        assert store.get_entries("t", ["a"])[0].version == 1_100
        store.add_audit_records([an_audit_record() for _ in range(1_100)])
        assert len(store.list_audit_records(AuditFilter(), limit=2_000).items) == 1_100

    def test_names_are_data(self, store):
        odd = "'); redis.call('FLUSHALL') -- \n{x}|:*?\\ é"
        note = an_audit_record(subject=odd, id=odd, by=odd)
        assert store.edit_entries([EntryEdit(kind=odd, name=odd, expect_version=0, data=odd, audit=note)]) == []
        (entry,) = store.list_entries(odd).items
        assert (entry.kind, entry.name, entry.data) == (odd, odd, odd)
        assert store.list_audit_records(AuditFilter(subject=odd)).items == [note]
        assert store.prune(Retention(audit_for=0), 9, now=T0).audit_records == 1
        assert store.list_audit_records(AuditFilter(subject=odd)).items == []

    def test_pruned_audit_records_leave_no_key(self, store, raw):
        store.add_audit_records([an_audit_record(subject=f"tenant:{number}") for number in range(5)])
        assert store.prune(Retention(audit_for=DAY), 10, now=T0 + DAY).audit_records == 5
        assert keys_of(store, raw, "audit*") == []

    def test_a_page_goes_on_where_its_last_audit_record_was_pruned(self, store):
        store.add_audit_records([an_audit_record(at=T0 + number, verb=str(number)) for number in range(6)])
        page = store.list_audit_records(AuditFilter(), limit=3)
        store.prune(Retention(audit_for=0), 1, now=T0 + 9)
        rest = store.list_audit_records(AuditFilter(), cursor=page.cursor)
        assert [note.verb for note in [*page.items, *rest.items]] == ["5", "4", "3", "2", "1"]
