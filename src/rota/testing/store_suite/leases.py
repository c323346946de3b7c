"""Tests leases: a worker renews those that it names, and learns which it lost and which jobs are to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.job import State, history_of
from rota.model.micros import SECOND
from rota.store.contract import Exchange, JobFilter
from rota.testing.store_suite.builders import HOUR, LEASE, MINUTE, RIVAL, T0, WORKER, a_job
from rota.testing.store_suite.steps import (
    add,
    add_job,
    cancel_waiting,
    claim,
    claim_one,
    ids,
    read,
    rescue_expired,
    running_job,
    succeed,
)

if TYPE_CHECKING:
    from rota.store.contract import Store

AT = T0 + 10 * SECOND


class TestExtendingLeases:
    def test_an_extended_lease_ends_later(self, store: Store) -> None:
        job = running_job(store)
        reply = store.extend_leases(WORKER, [(job.id, job.lease_no)], LEASE, now=AT)
        assert (reply.now, reply.lost, reply.cancels) == (AT, [], {})
        assert read(store, job.id).lease_until == AT + LEASE

    def test_extending_changes_nothing_else(self, store: Store) -> None:
        job = running_job(store)
        store.extend_leases(WORKER, [(job.id, job.lease_no)], LEASE, now=AT)
        kept = read(store, job.id)
        assert (kept.lease_no, kept.holder, kept.started_at) == (job.lease_no, job.holder, job.started_at)
        assert history_of(kept) == history_of(job)

    def test_exactly_the_listed_leases_are_extended(self, store: Store) -> None:
        """The lease of a claim whose reply was lost must expire."""
        add(store, a_job(), a_job())
        known, unknown = claim(store, 2)
        store.extend_leases(WORKER, [(known.id, known.lease_no)], HOUR, now=AT)
        assert ids(store.expired_jobs(10, now=T0 + LEASE)) == [unknown.id]

    def test_many_leases_are_extended_in_one_call(self, store: Store) -> None:
        add(store, *[a_job() for _ in range(150)])
        jobs = claim(store, 150)
        reply = store.extend_leases(WORKER, [(job.id, job.lease_no) for job in jobs], HOUR, now=AT)
        assert reply.lost == []
        assert store.expired_jobs(10, now=T0 + MINUTE) == []

    def test_an_extended_job_is_not_rescued(self, store: Store) -> None:
        job = running_job(store)
        store.extend_leases(WORKER, [(job.id, job.lease_no)], HOUR, now=AT)
        assert rescue_expired(store, now=T0 + MINUTE) == []
        assert read(store, job.id).deaths == 0

    def test_a_lease_may_be_extended_for_less_than_it_had(self, store: Store) -> None:
        job = running_job(store)
        store.extend_leases(WORKER, [(job.id, job.lease_no)], SECOND, now=T0 + 1)
        assert read(store, job.id).lease_until == T0 + 1 + SECOND

    def test_the_stores_clock_decides_when_a_lease_ends(self, store: Store) -> None:
        """A store may measure leases by another clock, but readers compare the end with the store's time."""
        add_job(store)
        ask = Exchange(holder=WORKER, want=1, queues=("default",), lease_for=HOUR)
        (job,) = store.exchange(ask, now=None).claimed
        for kept in (read(store, job.id), *store.list_jobs(JobFilter(states=(State.RUNNING,)), limit=1).items):
            assert kept.lease_until is not None
            assert store.now() < kept.lease_until <= store.now() + HOUR


class TestLostLeases:
    def test_a_job_that_another_took_over_is_lost(self, store: Store) -> None:
        job = running_job(store)
        rescue_expired(store, now=T0 + HOUR)
        taken = claim_one(store, holder=RIVAL, now=T0 + HOUR)
        reply = store.extend_leases(WORKER, [(job.id, job.lease_no)], LEASE, now=T0 + HOUR)
        assert reply.lost == [job.id]
        assert read(store, job.id) == taken

    def test_the_holders_own_older_lease_is_lost(self, store: Store) -> None:
        job = running_job(store)
        rescue_expired(store, now=T0 + HOUR)
        taken = claim_one(store, now=T0 + HOUR)
        reply = store.extend_leases(WORKER, [(job.id, job.lease_no)], LEASE, now=T0 + HOUR)
        assert reply.lost == [job.id]
        assert read(store, job.id) == taken

    def test_another_holders_lease_cannot_be_extended(self, store: Store) -> None:
        job = running_job(store)
        assert store.extend_leases(RIVAL, [(job.id, job.lease_no)], HOUR, now=AT).lost == [job.id]
        assert read(store, job.id) == job

    def test_a_job_that_has_ended_is_lost(self, store: Store) -> None:
        job = running_job(store)
        succeed(store, job)
        assert store.extend_leases(WORKER, [(job.id, job.lease_no)], LEASE, now=AT).lost == [job.id]

    def test_a_job_that_is_gone_is_lost(self, store: Store) -> None:
        assert store.extend_leases(WORKER, [("nowhere", 1)], LEASE, now=AT).lost == ["nowhere"]

    def test_a_lost_lease_does_not_stop_the_others(self, store: Store) -> None:
        add(store, a_job(), a_job())
        ended, mine = claim(store, 2)
        succeed(store, ended)
        reply = store.extend_leases(WORKER, [(ended.id, 1), (mine.id, 1)], HOUR, now=AT)
        assert reply.lost == [ended.id]
        assert read(store, mine.id).lease_until == AT + HOUR


class TestCancelRequests:
    def test_a_worker_learns_which_jobs_to_stop_and_why(self, store: Store) -> None:
        add(store, a_job(), a_job())
        asked, other = claim(store, 2)
        assert store.request_cancels([asked.id], "by ann", now=AT) == [asked.id]
        reply = store.extend_leases(WORKER, [(asked.id, 1), (other.id, 1)], LEASE, now=AT)
        assert (reply.lost, reply.cancels) == ([], {asked.id: "by ann"})

    def test_a_worker_learns_of_jobs_that_it_did_not_list(self, store: Store) -> None:
        job = running_job(store)
        store.request_cancels([job.id], "by ann", now=AT)
        assert store.extend_leases(WORKER, [], LEASE, now=AT).cancels == {job.id: "by ann"}

    def test_a_worker_learns_nothing_of_other_workers_jobs(self, store: Store) -> None:
        job = running_job(store)
        store.request_cancels([job.id], "by ann", now=AT)
        assert store.extend_leases(RIVAL, [], LEASE, now=AT).cancels == {}

    def test_a_job_asked_to_stop_keeps_its_lease(self, store: Store) -> None:
        job = running_job(store)
        store.request_cancels([job.id], "by ann", now=AT)
        store.extend_leases(WORKER, [(job.id, 1)], HOUR, now=AT)
        assert read(store, job.id).lease_until == AT + HOUR

    def test_the_first_reason_stays(self, store: Store) -> None:
        job = running_job(store)
        store.request_cancels([job.id], "first", now=AT)
        assert store.request_cancels([job.id], "second", now=AT) == [job.id]
        assert read(store, job.id).cancel_reason == "first"

    def test_only_running_jobs_are_asked(self, store: Store) -> None:
        running = running_job(store)
        waiting, ended = add_job(store), add_job(store)
        cancel_waiting(store, ended)
        asked = store.request_cancels([waiting, running.id, ended, "nowhere"], "enough", now=AT)
        assert asked == [running.id]
        assert read(store, waiting).cancel_reason is None

    def test_a_job_that_has_stopped_is_returned_no_more(self, store: Store) -> None:
        job = running_job(store)
        store.request_cancels([job.id], "enough", now=AT)
        succeed(store, job, now=AT)
        assert store.extend_leases(WORKER, [], LEASE, now=AT).cancels == {}
