"""Firing on PostgreSQL: what just makes its job is one call; what is in the way of one, a transaction for all."""
# ruff: noqa: S608 - the names in the statements are the tests' own

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import partial

import psycopg
import pytest

from rota import failpoints
from rota.errors import StoreSealed
from rota.model.jobs.outcome import Failed
from rota.model.schedules.edit import disable
from rota.model.schedules.firing import plan
from rota.store.contract import JobFilter, Seal
from rota.store.postgres.fast import firing as fast_firing
from rota.testing.servers.postgres import shared_url
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, fresh_id
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.notify import is_woken, listener_on
from rota.testing.store_suite.rivals import in_threads
from rota.testing.store_suite.steps import (
    add_schedule,
    all_jobs,
    change_schedule,
    claim,
    claim_one,
    fire,
    new_schedule,
    planned,
    read,
    read_schedule,
    settle_job,
    succeed,
)
from stores.postgres_stage import *  # noqa: F403 - its fixtures

CROWD = 60
NAMES = [f"s{number:02}" for number in range(CROWD)]


@pytest.fixture
def crowd(store):
    """What a scheduler decides about a crowd at one instant."""
    store.edit_schedules([new_schedule(name) for name in NAMES], now=T0)
    return lambda now: [planned(store, name, now=now) for name in NAMES]


def called(trips):
    """The functions that were called, by name."""
    return [statement.partition("(")[0].rpartition(".")[2] for statement in trips]


@contextmanager
def by_turns(monkeypatch):
    """As if nothing were plain."""
    with monkeypatch.context() as patch:
        patch.setattr(fast_firing, "number_plain", lambda _: -1)
        yield


class TestTrips:
    def test_one_firing_is_one_call(self, store, trips):
        add_schedule(store)
        firing = planned(store, now=T0 + MINUTE)
        trips.clear()
        (fired,) = store.fire([firing], now=T0 + MINUTE)
        assert (fired.is_accepted, fired.jobs) == (True, [firing.shots[0].job.id])
        assert called(trips) == ["fire"]

    def test_a_crowd_is_one_call_and_one_commit(self, store, crowd, trips, sql, namespace):
        firings = crowd(T0 + MINUTE)
        trips.clear()
        answers = store.fire(firings, now=T0 + MINUTE)
        assert called(trips) == ["fire"]
        assert {(fired.is_accepted, len(fired.jobs), fired.skipped) for fired in answers} == {(True, 1, 0)}
        assert sql(f"SELECT count(DISTINCT xmin::text) FROM {namespace}.ready").fetchone() == (1,)

    def test_a_scheduler_by_the_servers_clock_asks_no_more_than_what_is_due(self, store, trips):
        add_schedule(store, now=store.now() - MINUTE)
        store._database.clock.forget()
        trips.clear()
        due = store.due_schedules(10)
        (schedule,) = due.schedules
        (fired,) = store.fire([plan(schedule, due.now, fresh_id)])
        assert len(fired.jobs) == 1
        assert len(trips) == 2

    def test_one_that_was_changed_costs_one_more_for_all(self, store, crowd, trips):
        firings = crowd(T0 + MINUTE)
        change_schedule(store, disable(read_schedule(store, "s07"), T0 + 1))
        trips.clear()
        answers = store.fire(firings, now=T0 + MINUTE)
        assert len(trips) < 20
        assert [fired.schedule_id for fired in answers if not fired.is_accepted] == ["s07"]
        assert len(all_jobs(store)) == CROWD - 1

    def test_a_crowd_that_overlaps_is_looked_at_together(self, store, crowd, trips):
        store.fire(crowd(T0 + MINUTE), now=T0 + MINUTE)
        firings = crowd(T0 + 2 * MINUTE)
        trips.clear()
        answers = store.fire(firings, now=T0 + 2 * MINUTE)
        assert len(trips) < 20
        assert {(fired.jobs == [], fired.skipped) for fired in answers} == {(True, 1)}

    def test_who_comes_second_is_refused_by_one_call(self, store, crowd, trips):
        firings, theirs = crowd(T0 + MINUTE), crowd(T0 + MINUTE)
        store.fire(theirs, now=T0 + MINUTE)
        trips.clear()
        assert {fired.is_accepted for fired in store.fire(firings, now=T0 + MINUTE)} == {False}
        assert len(trips) == 1

    def test_behind_a_pooler_it_is_one_call_too(self, store, trips):
        store._database._calls = None
        add_schedule(store)
        firing = planned(store, now=T0 + MINUTE)
        trips.clear()
        assert store.fire([firing], now=T0 + MINUTE)[0].is_accepted
        assert called(trips) == ["fire"]


class TestSameAsByTurns:
    @pytest.mark.parametrize(
        "spec",
        [
            {},
            {"overlap": "allow", "queue": "mail", "priority": 4, "payload": "[[1]]"},
            {"overlap": "queue", "max_runs": 1},
            {"overlap": "cancel", "tenant": "acme", "description": "nightly"},
        ],
        ids=["usual", "allow", "spent", "tenant"],
    )
    def test_what_is_written_is_the_same(self, store, monkeypatch, sql, namespace, spec):
        """Every column of every table, but for ids and places."""
        seen = []
        for name in ("at-once", "by-turns"):
            add_schedule(store, name, **spec)
            firing = planned(store, name, now=T0 + MINUTE)
            if name == "at-once":
                answer = store.fire([firing], now=T0 + MINUTE + 5)
            else:
                with by_turns(monkeypatch):
                    answer = store.fire([firing], now=T0 + MINUTE + 5)
            (job_id,) = answer[0].jobs
            written = written_of(sql, namespace, name, read(store, job_id).seq)
            seen.append(written.replace(job_id, "ID").replace(name, "NAME"))
        assert seen[0] == seen[1]

    def test_places_go_by_the_order_of_firings(self, store):
        names = ["m", "z", "a", "q"]
        for name in names:
            add_schedule(store, name, queue=f"q-{name}", overlap="allow" if name == "a" else "skip")
        store.fire([planned(store, name, now=T0 + MINUTE) for name in names], now=T0 + MINUTE)
        assert [job.schedule_id for job in sorted(all_jobs(store), key=lambda job: job.seq)] == names
        assert {(job.queue, job.slot) for job in all_jobs(store)} == {
            (f"q-{name}", None if name == "a" else name) for name in names
        }
        for name in names:
            assert len(store.list_jobs(JobFilter(queue=f"q-{name}")).items) == 1


class TestInTheWay:
    def test_two_schedulers_race_for_a_crowd(self, make_store, store, crowd):
        """Each schedule fires once, whichever process is first, and nobody gets an error."""
        with opened(make_store) as other:
            for minute in range(1, 6):
                at = T0 + minute * MINUTE
                orders = [crowd(at), crowd(at)[::-1]]
                answers = in_threads(partial(fire_mine, orders, at), [store, other])
                assert sum(fired.is_accepted for fired in [*answers[0], *answers[1]]) == CROWD
                for job in claim(store, CROWD, now=at):
                    succeed(store, job, now=at)
        made = [(job.schedule_id, job.fire_at) for job in all_jobs(store)]
        assert len(made) == len(set(made)) == 5 * CROWD

    def test_schedulers_race_with_workers_and_edits(self, make_store, store, crowd):
        """Every process locks many schedules in one order."""
        store.fire(crowd(T0 + MINUTE), now=T0 + MINUTE)

        def work(handle, number):
            at = T0 + 2 * MINUTE
            if number == 0:
                return [store.fire(crowd(at), now=at) for _ in range(5)]
            if number == 1:
                return [succeed(handle, job, now=at) for job in claim(handle, CROWD, now=at)]
            return [handle.edit_schedules([disable(read_schedule(handle, name), at)], now=at) for name in NAMES[::-7]]

        with opened(make_store) as second, opened(make_store) as third:
            in_threads(work, [store, second, third])
        made = [(job.schedule_id, job.fire_at) for job in all_jobs(store)]
        assert len(made) == len(set(made))

    def test_an_occurrence_that_has_its_job_makes_none(self, store, sql, namespace):
        """The clock stepped back, and a schedule of that name fires the same time again."""
        add_schedule(store, overlap="allow")
        fire(store, now=T0 + MINUTE)
        sql(f"UPDATE {namespace}.schedule SET fired_through = {T0}, next_at = {T0 + MINUTE}")
        assert fire(store, now=T0 + MINUTE).jobs == []
        assert len(all_jobs(store)) == 1

    @pytest.mark.parametrize("taken", ["overlap_slot VALUES ('tick'", "unique_key VALUES ('k'"])
    def test_a_slot_or_key_that_is_taken_meanwhile_is_met(self, store, namespace, taken):
        """Somebody else takes it in a transaction that is open while the schedule fires."""
        add_schedule(store, key="k")
        firing = planned(store, now=T0 + MINUTE)

        def fire_or_commit(handle, number):
            if number:
                return handle.fire([firing], now=T0 + MINUTE)
            wait_for_a_lock(other)
            return other.commit()

        with psycopg.connect(shared_url()) as other:
            other.execute(f"INSERT INTO {namespace}.{taken}, -1, 'theirs')")
            _, (fired,) = in_threads(fire_or_commit, [store, store])
        assert (fired.is_accepted, fired.jobs, fired.skipped) == (True, [], 1)

    def test_a_job_that_overlaps_is_held_as_ever(self, store):
        add_schedule(store, overlap="queue")
        (first,) = fire(store, now=T0 + MINUTE).jobs
        (second,) = fire(store, now=T0 + 2 * MINUTE).jobs
        assert read(store, second).waits_for == first

    def test_a_sealed_store_fires_nothing(self, store):
        add_schedule(store)
        firing = planned(store, now=T0 + MINUTE)
        store.seal(Seal(target="elsewhere", id="move-1", at=T0))
        with pytest.raises(StoreSealed):
            store.fire([firing], now=T0 + MINUTE)
        store.seal(None)
        assert store.fire([firing], now=T0 + MINUTE)[0].is_accepted

    def test_a_clock_that_was_set_back_is_asked_again(self, store, crowd):
        """What is fired is never dated by a clock that was ahead of the server's."""
        firings = crowd(T0 + MINUTE)
        store._database.clock.set(store.now() + HOUR)
        assert {fired.is_accepted for fired in store.fire(firings)} == {True}
        assert {job.created_at <= store.now() for job in all_jobs(store)} == {True}


class TestLastRuns:
    def test_what_workers_noted_meanwhile_stays(self, store):
        add_schedule(store, overlap="allow")
        fire(store, now=T0 + MINUTE)
        job = claim_one(store, now=T0 + MINUTE)
        firing = planned(store, now=T0 + 2 * MINUTE)
        settle_job(store, job, Failed('it "broke" \x00 \\ \u20ac', may_retry=False), now=T0 + MINUTE + 7)
        noted = read_schedule(store).last
        (fired,) = store.fire([firing], now=T0 + 2 * MINUTE)
        last = read_schedule(store).last
        assert (last.enqueued_at, last.job_id) == (T0 + 2 * MINUTE, fired.jobs[0])
        assert (last.status, last.error, last.finished_at) == (noted.status, noted.error, noted.finished_at)
        assert last.error == 'it "broke" \u2400 \\ \u20ac'

    def test_it_is_one_call_whatever_they_noted(self, store, trips):
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        settle_job(store, claim_one(store, now=T0 + MINUTE), Failed("nul \x00", may_retry=False), now=T0 + MINUTE)
        firing = planned(store, now=T0 + 2 * MINUTE)
        trips.clear()
        assert len(store.fire([firing], now=T0 + 2 * MINUTE)[0].jobs) == 1
        assert called(trips) == ["fire"]

    def test_what_was_made_unreadable_by_hand_is_replaced(self, store, sql, namespace):
        add_schedule(store)
        firing = planned(store, now=T0 + MINUTE)
        sql(f"UPDATE {namespace}.schedule SET last = 'nonsense'")
        (fired,) = store.fire([firing], now=T0 + MINUTE)
        assert read_schedule(store).last.job_id == fired.jobs[0]


class TestTold:
    def test_who_waits_for_an_empty_line_is_woken(self, make_store, store):
        add_schedule(store)
        firing = planned(store, now=T0 + MINUTE)
        with opened(make_store) as other, listener_on(other, "jobs") as listener:
            assert listener.wait(20)  # its line is up
            assert is_woken(listener, lambda: store.fire([firing], now=T0 + MINUTE))

    def test_its_failpoints_are_reached_once(self, store):
        add_schedule(store)
        firing = planned(store, now=T0 + MINUTE)
        passed = []
        failpoints.install(passed.append)
        try:
            store.fire([firing], now=T0 + MINUTE)
            store.fire([firing], now=T0 + MINUTE)
        finally:
            failpoints.install(None)
        assert passed == ["fire.before_commit", "fire.after_commit", "fire.before_commit"]


def fire_mine(orders, at, handle, number):
    return handle.fire(orders[number], now=at)


def written_of(sql, namespace, name, seq):
    """What the tables say of a schedule and its job, as text, without the job's place."""
    rows = {
        table: sql(f"SELECT to_jsonb(t) - 'seq' FROM {namespace}.{table} t WHERE {where}", (value,)).fetchall()
        for table, where, value in (
            ("schedule", "id = %s", name),
            ("job", "seq = %s", seq),
            ("ready", "seq = %s", seq),
            ("unique_key", "seq = %s", seq),
        )
    }
    ((schedule,),) = rows["schedule"]
    schedule["last"] = json.loads(schedule["last"])
    return json.dumps(rows, sort_keys=True)


def wait_for_a_lock(other):
    """Until another transaction waits for what this open transaction has written."""
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
    while other.execute(waiting).fetchone() == (0,):
        other.execute("SELECT pg_sleep(0.01)")
