"""Tests rescues: a job whose worker stopped renewing is queued again, and fails after three deaths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.jobs.job import State
from rota.model.jobs.retry import MAX_DEATHS
from rota.model.jobs.settle import rescue
from rota.model.micros import SECOND
from rota.store.contract import Refusal
from rota.testing.store_suite.builders import HOUR, LEASE, MINUTE, RIVAL, T0, WORKER, a_job
from rota.testing.store_suite.steps import (
    add,
    add_job,
    cancel_waiting,
    claim,
    claim_one,
    ids,
    queue_info,
    read,
    rescue_expired,
    running_job,
    succeed,
)

if TYPE_CHECKING:
    from rota.store.contract import Store

EXPIRED = T0 + LEASE


class TestExpiredJobs:
    def test_a_lease_lapses_at_its_end_and_not_before(self, store: Store) -> None:
        job = running_job(store)
        assert store.expired_jobs(10, now=EXPIRED - 1) == []
        assert store.expired_jobs(10, now=EXPIRED) == [job]

    def test_jobs_that_do_not_run_never_lapse(self, store: Store) -> None:
        waiting = add_job(store)
        add_job(store, delay=SECOND)
        add_job(store, waits_for=waiting)
        cancel_waiting(store, add_job(store))
        assert store.expired_jobs(10, now=T0 + HOUR) == []

    def test_the_longest_expired_come_first_and_the_list_is_bounded(self, store: Store) -> None:
        add(store, *[a_job() for _ in range(3)])
        leases = [claim(store, now=T0 + at, lease_for=LEASE)[0].id for at in (5, 3, 4)]
        assert ids(store.expired_jobs(2, now=T0 + HOUR)) == [leases[1], leases[2]]

    def test_looking_changes_nothing(self, store: Store) -> None:
        job = running_job(store)
        store.expired_jobs(10, now=T0 + HOUR)
        assert read(store, job.id) == job


class TestRescuing:
    def test_a_rescued_job_is_ready_for_another_worker(self, store: Store) -> None:
        job = running_job(store)
        assert store.rescue_jobs([rescue(job, EXPIRED)], now=EXPIRED) == []
        again = claim_one(store, holder=RIVAL, now=EXPIRED)
        assert (again.id, again.lease_no, again.holder, again.deaths) == (job.id, 2, RIVAL, 1)

    def test_a_death_spends_no_retry(self, store: Store) -> None:
        job = running_job(store)
        rescue_expired(store, now=EXPIRED)
        kept = read(store, job.id)
        assert (kept.state, kept.attempts, kept.failures, kept.deaths) == (State.QUEUED, 0, 0, 1)

    def test_a_rescued_job_keeps_its_place(self, store: Store) -> None:
        job = running_job(store)
        later = add_job(store)
        rescue_expired(store, now=EXPIRED)
        assert ids(claim(store, 2, now=EXPIRED)) == [job.id, later]

    def test_a_live_lease_is_not_rescued(self, store: Store) -> None:
        job = running_job(store)
        assert store.rescue_jobs([rescue(job, EXPIRED - 1)], now=EXPIRED - 1) == [Refusal(job.id, "lease")]
        assert read(store, job.id) == job

    def test_a_lease_that_was_renewed_meanwhile_is_not_rescued(self, store: Store) -> None:
        job = running_job(store)
        decided = rescue(job, EXPIRED)
        store.extend_leases(WORKER, [(job.id, job.lease_no)], LEASE, now=EXPIRED)
        assert store.rescue_jobs([decided], now=EXPIRED) == [Refusal(job.id, "lease")]
        assert read(store, job.id).state is State.RUNNING

    def test_a_job_is_rescued_once_however_many_see_it(self, store: Store) -> None:
        job = running_job(store)
        decided = rescue(job, EXPIRED)
        assert store.rescue_jobs([decided], now=EXPIRED) == []
        assert store.rescue_jobs([decided], now=EXPIRED) == [Refusal(job.id, "lease")]
        assert read(store, job.id).deaths == 1

    def test_a_stale_rescue_leaves_the_next_lease_alone(self, store: Store) -> None:
        job = running_job(store)
        decided = rescue(job, EXPIRED)
        rescue_expired(store, now=EXPIRED)
        claim_one(store, holder=RIVAL, now=EXPIRED)
        late = EXPIRED + HOUR  # the second lease has expired too, but it is another lease
        assert store.rescue_jobs([decided], now=late) == [Refusal(job.id, "lease")]
        assert read(store, job.id).holder == RIVAL

    def test_a_job_that_ended_meanwhile_stays_ended(self, store: Store) -> None:
        job = running_job(store)
        decided = rescue(job, EXPIRED)
        succeed(store, job, now=EXPIRED)
        assert store.rescue_jobs([decided], now=EXPIRED) == [Refusal(job.id, "lease")]
        assert read(store, job.id).state is State.SUCCEEDED

    def test_a_refused_rescue_does_not_stop_the_others(self, store: Store) -> None:
        add(store, a_job(), a_job())
        ended, lost = claim(store, 2)
        decided = [rescue(ended, EXPIRED), rescue(lost, EXPIRED)]
        succeed(store, ended, now=EXPIRED)
        assert store.rescue_jobs(decided, now=EXPIRED) == [Refusal(ended.id, "lease")]
        assert read(store, lost.id).state is State.QUEUED


class TestLastDeath:
    def test_the_third_death_parks_a_job_as_failed(self, store: Store) -> None:
        job_id = add_job(store)
        for n in range(MAX_DEATHS):
            claim_one(store, now=T0 + n * HOUR)
            assert rescue_expired(store, now=T0 + n * HOUR + MINUTE) == []
        kept = read(store, job_id)
        assert (kept.state, kept.deaths, kept.attempts) == (State.FAILED, MAX_DEATHS, 0)
        assert "kept as failed" in (kept.error or "")
        assert queue_info(store).totals == {"failed": 1}

    def test_a_job_that_failed_by_deaths_is_not_claimed_again(self, store: Store) -> None:
        add_job(store)
        for n in range(MAX_DEATHS):
            claim_one(store, now=T0 + n * HOUR)
            rescue_expired(store, now=T0 + n * HOUR + MINUTE)
        assert claim(store, now=T0 + DAYS) == []

    def test_a_job_asked_to_stop_is_not_put_back(self, store: Store) -> None:
        job = running_job(store)
        decided = rescue(job, EXPIRED)
        store.request_cancels([job.id], "enough", now=T0)
        assert store.rescue_jobs([decided], now=EXPIRED) == [Refusal(job.id, "cancel", "enough")]

    def test_a_job_asked_to_stop_is_cancelled_when_its_worker_dies(self, store: Store) -> None:
        job = running_job(store)
        store.request_cancels([job.id], "enough", now=T0)
        assert rescue_expired(store, now=EXPIRED) == []
        kept = read(store, job.id)
        assert (kept.state, kept.cancel_reason, kept.deaths) == (State.CANCELLED, "enough", 1)

    def test_a_forged_lease_number_rescues_nothing(self, store: Store) -> None:
        job = running_job(store)
        forged = msgspec.structs.replace(job, lease_no=7)
        assert store.rescue_jobs([rescue(forged, EXPIRED)], now=EXPIRED) == [Refusal(job.id, "lease")]


DAYS = 30 * 24 * HOUR
