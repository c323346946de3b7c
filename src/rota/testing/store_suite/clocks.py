"""Tests that `now=` decides if it is given, and the store's own clock otherwise, never the caller's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.contract import Exchange
from rota.testing.store_suite.builders import DAY, HOUR, LEASE, MINUTE, T0, WORKER, a_job, a_node
from rota.testing.store_suite.steps import add_job, add_schedule, all_jobs, claim, fire_due, read, running_job

if TYPE_CHECKING:
    from rota.store.contract import Store


class TestInjectedClock:
    def test_an_injected_instant_decides_what_is_due(self, store: Store) -> None:
        far = store.now() + 1000 * DAY
        job_id = add_job(store, delay=HOUR, now=far)
        assert claim(store, now=far + HOUR - 1) == []
        assert [job.id for job in claim(store, now=far + HOUR)] == [job_id]

    def test_an_injected_instant_decides_which_lease_has_expired(self, store: Store) -> None:
        """By the store's own clock this lease expired long ago."""
        running_job(store, now=T0)
        assert store.expired_jobs(10, now=T0 + LEASE - 1) == []

    def test_an_injected_instant_decides_which_schedule_is_due(self, store: Store) -> None:
        add_schedule(store, now=T0)
        assert store.due_schedules(10, now=T0).schedules == []

    def test_every_answer_names_the_instant_that_it_was_given(self, store: Store) -> None:
        add_schedule(store)
        assert store.exchange(Exchange(holder=WORKER), now=T0 + 1).now == T0 + 1
        assert store.extend_leases(WORKER, [], LEASE, now=T0 + 2).now == T0 + 2
        assert store.due_schedules(10, now=T0 + 3).now == T0 + 3
        assert store.record_heartbeat(a_node(), now=T0 + 4) == T0 + 4

    def test_an_hour_passes_when_it_is_injected(self, store: Store) -> None:
        add_schedule(store, overlap="allow")
        for minute in range(61):
            fire_due(store, now=T0 + minute * MINUTE)
        assert [job.created_at for job in all_jobs(store)] == [T0 + minute * MINUTE for minute in range(60, 0, -1)]


class TestStoresOwnClock:
    def test_it_counts_microseconds_and_does_not_go_back(self, store: Store) -> None:
        readings = [store.now() for _ in range(100)]
        assert readings == sorted(readings)
        assert readings[0] > T0

    def test_a_new_job_is_dated_by_it(self, store: Store) -> None:
        before = store.now()
        (added,) = store.add_jobs([a_job(delay=MINUTE)])
        job = read(store, added.id)
        assert before <= job.created_at <= store.now()
        assert job.run_at == job.created_at + MINUTE

    def test_a_lease_is_counted_by_it(self, store: Store) -> None:
        store.add_jobs([a_job()])
        reply = store.exchange(Exchange(holder=WORKER, want=1, lease_for=HOUR))
        (job,) = reply.claimed
        assert job.started_at == reply.now
        assert store.expired_jobs(10) == []

    def test_a_lease_of_no_length_has_run_out_by_it(self, store: Store) -> None:
        store.add_jobs([a_job()])
        (job,) = store.exchange(Exchange(holder=WORKER, want=1, lease_for=0)).claimed
        assert [expired.id for expired in store.expired_jobs(10)] == [job.id]

    def test_answers_are_dated_by_it(self, store: Store) -> None:
        before = store.now()
        answers = [
            store.exchange(Exchange(holder=WORKER)).now,
            store.extend_leases(WORKER, [], LEASE).now,
            store.due_schedules(10).now,
            store.record_heartbeat(a_node()),
        ]
        readings = [before, *answers, store.now()]
        assert readings == sorted(readings)
