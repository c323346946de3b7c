"""Tests the series: what happened in each minute, counted in the same write as the runs that ended in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.outcome import Failed, Returned, Snoozed, Stopped, Succeeded, TaskUnknown
from rota.model.jobs.series import KEPT_MINUTES, SPANS
from rota.model.jobs.settle import settle
from rota.model.micros import SECOND
from rota.store.contract import Exchange, Retention
from rota.testing.store_suite.builders import HOUR, LEASE, MINUTE, T0, WORKER, a_job, a_policy
from rota.testing.store_suite.steps import (
    FAR,
    add,
    cancelled_job,
    claim,
    claim_one,
    failed_job,
    rescue_expired,
    running_job,
    settle_job,
    succeed,
    succeeded_job,
)

if TYPE_CHECKING:
    from rota.model.jobs.series import Bucket
    from rota.store.contract import Store


def series(store: Store) -> list[Bucket]:
    return store.read_series(0, FAR)


def only_bucket(store: Store) -> Bucket:
    (bucket,) = series(store)
    return bucket


class TestSeries:
    def test_an_empty_store_has_no_minutes(self, store: Store) -> None:
        assert series(store) == []

    def test_every_end_is_counted_in_its_minute(self, store: Store) -> None:
        add(store, *(a_job() for _ in range(5)))
        for number, job in enumerate(claim(store, 5)):
            succeed(store, job, now=T0 + number * 30 * SECOND)
        assert [(bucket.at, bucket.succeeded) for bucket in series(store)] == [
            (T0, 2),
            (T0 + MINUTE, 2),
            (T0 + 2 * MINUTE, 1),
        ]

    def test_many_that_end_at_once_are_all_counted(self, store: Store) -> None:
        add(store, *(a_job(queue=queue) for queue in ("a", "b") for _ in range(60)))
        jobs = claim(store, 120, queues=("a", "b"))
        outcomes = [Succeeded() if number % 3 else Failed("boom", may_retry=False) for number in range(120)]
        changes = [
            settle(job, outcome, a_policy(), T0 + SECOND, 0.0) for job, outcome in zip(jobs, outcomes, strict=True)
        ]
        store.exchange(Exchange(holder=WORKER, settled=changes), now=T0 + SECOND)
        bucket = only_bucket(store)
        assert (bucket.succeeded, bucket.failed, bucket.failed_attempts) == (80, 40, 40)
        assert (bucket.ran.count, bucket.ran.total) == (120, 120 * SECOND)

    def test_one_bucket_has_what_several_calls_settled(self, store: Store) -> None:
        succeeded_job(store)
        failed_job(store)
        succeeded_job(store)
        bucket = only_bucket(store)
        assert (bucket.succeeded, bucket.failed, bucket.waited.count) == (2, 1, 3)

    def test_how_long_runs_waited_and_ran_is_known(self, store: Store) -> None:
        add(store, a_job())
        job = claim_one(store, now=T0 + 3 * SECOND)
        succeed(store, job, now=T0 + 43 * SECOND)
        bucket = only_bucket(store)
        assert (bucket.waited.total, bucket.ran.total) == (3 * SECOND, 40 * SECOND)
        assert (bucket.waited.within(95), bucket.ran.within(95)) == (5 * SECOND, MINUTE)

    def test_a_span_longer_than_every_class_is_counted_too(self, store: Store) -> None:
        job = running_job(store)
        succeed(store, job, now=T0 + SPANS[-1] + 1)
        assert (only_bucket(store).ran.count, only_bucket(store).ran.within(95)) == (1, None)

    def test_a_retry_is_a_failed_attempt_and_no_failed_job(self, store: Store) -> None:
        settle_job(store, running_job(store), Failed("boom"), retries=1, now=T0 + SECOND)
        bucket = only_bucket(store)
        assert (bucket.failed, bucket.failed_attempts, bucket.ran.total) == (0, 1, SECOND)

    def test_a_snooze_and_a_stop_are_runs_that_did_not_fail(self, store: Store) -> None:
        settle_job(store, running_job(store), Snoozed(HOUR))
        settle_job(store, running_job(store), Stopped("asked to"))
        bucket = only_bucket(store)
        assert (bucket.succeeded, bucket.failed, bucket.cancelled, bucket.failed_attempts) == (0, 0, 1, 0)
        assert bucket.ran.count == 2

    def test_a_returned_job_counts_nothing(self, store: Store) -> None:
        settle_job(store, running_job(store), Returned())
        settle_job(store, claim_one(store), TaskUnknown())
        assert series(store) == []

    def test_a_lost_worker_counts_once_its_job_is_given_up(self, store: Store) -> None:
        add(store, a_job())
        for turn in range(3):
            assert series(store) == []
            claim_one(store, now=T0 + turn * HOUR)
            rescue_expired(store, now=T0 + turn * HOUR + LEASE)
        bucket = only_bucket(store)
        assert (bucket.failed, bucket.failed_attempts, bucket.ran.count) == (1, 0, 0)

    def test_a_job_that_never_ran_counts_nothing(self, store: Store) -> None:
        cancelled_job(store)
        assert series(store) == []

    def test_a_refused_end_counts_nothing(self, store: Store) -> None:
        job = running_job(store)
        succeed(store, job, holder="somebody")
        assert series(store) == []

    def test_of_a_batch_only_what_was_taken_is_counted(self, store: Store) -> None:
        add(store, a_job(), a_job())
        first, second = claim(store, 2)
        succeed(store, second)
        changes = [settle(job, Succeeded(), a_policy(), T0, 0.0) for job in (first, second)]
        reply = store.exchange(Exchange(holder=WORKER, settled=changes), now=T0)
        assert [refusal.id for refusal in reply.refused] == [second.id]
        assert only_bucket(store).succeeded == 2

    def test_a_job_that_is_not_kept_is_counted(self, store: Store) -> None:
        succeed(store, running_job(store), keep=False)
        assert only_bucket(store).succeeded == 1

    def test_an_end_that_releases_another_job_is_counted(self, store: Store) -> None:
        job = running_job(store)
        add(store, a_job(waits_for=job.id))
        succeed(store, job)
        assert only_bucket(store).succeeded == 1

    def test_the_stores_clock_decides_the_minute(self, store: Store) -> None:
        job = running_job(store)
        change = settle(job, Succeeded(), a_policy(), T0 + 59 * SECOND, 0.0)  # as its worker knows the time
        store.exchange(Exchange(holder=WORKER, settled=[change]), now=T0 + MINUTE)
        assert (only_bucket(store).at, only_bucket(store).ran.total) == (T0 + MINUTE, 59 * SECOND)

    def test_the_minutes_of_a_time_are_read(self, store: Store) -> None:
        for minute in range(4):
            succeeded_job(store, now=T0 + minute * MINUTE)
        found = store.read_series(T0 + MINUTE, T0 + 3 * MINUTE)
        assert [bucket.at for bucket in found] == [T0 + MINUTE, T0 + 2 * MINUTE]
        found = store.read_series(T0 + 1, T0 + MINUTE + 1)
        assert [bucket.at for bucket in found] == [T0 + MINUTE]

    def test_upkeep_keeps_a_day_of_minutes(self, store: Store) -> None:
        for minute in (0, 1, 5):
            succeeded_job(store, now=T0 + minute * MINUTE)
        store.prune(Retention(), 100, now=T0 + KEPT_MINUTES * MINUTE)
        assert [bucket.at for bucket in series(store)] == [T0 + MINUTE, T0 + 5 * MINUTE]
        assert [bucket.succeeded for bucket in series(store)] == [1, 1]

    def test_minutes_of_a_clock_that_was_ahead_go_too(self, store: Store) -> None:
        succeeded_job(store, now=T0 + HOUR)
        store.prune(Retention(), 100, now=T0)
        assert series(store) == []

    def test_a_recount_and_a_pruned_job_change_nothing(self, store: Store) -> None:
        job_id = succeeded_job(store)
        store.recount()
        store.delete_jobs([job_id], now=T0)
        assert only_bucket(store).succeeded == 1
