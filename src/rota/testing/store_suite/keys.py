"""Tests unique keys over time: when they become free again, and keys that hold for a period."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rota.model.jobs.job import State
from rota.model.jobs.outcome import Failed, Outcome, Stopped, Succeeded, Undecodable
from rota.model.jobs.settle import retry_by_hand
from rota.store.contract import Added
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, a_job
from rota.testing.store_suite.steps import (
    add_job,
    cancel_waiting,
    cancelled_job,
    claim_one,
    fail,
    read,
    rescue_expired,
    running_job,
    settle_job,
    succeed,
    succeeded_job,
)

if TYPE_CHECKING:
    from rota.store.contract import Store

ENDS: list[Outcome] = [Succeeded(), Failed("boom", may_retry=False), Stopped("enough"), Undecodable("not JSON")]


class TestFreedKeys:
    @pytest.mark.parametrize("outcome", ENDS, ids=lambda outcome: type(outcome).__name__)
    def test_a_key_is_free_when_its_job_has_ended(self, store: Store, outcome: Outcome) -> None:
        job = running_job(store, key="k")
        settle_job(store, job, outcome)
        assert add_job(store, key="k") != job.id

    def test_an_ended_job_no_longer_has_its_key(self, store: Store) -> None:
        assert read(store, succeeded_job(store, key="k")).key is None

    def test_a_key_is_free_when_its_waiting_job_is_cancelled(self, store: Store) -> None:
        first = add_job(store, key="k")
        cancel_waiting(store, first)
        assert add_job(store, key="k") != first

    def test_a_key_is_free_when_its_job_is_removed_at_its_end(self, store: Store) -> None:
        job = running_job(store, key="k")
        succeed(store, job, keep=False)
        assert add_job(store, key="k") != job.id

    def test_a_key_is_held_while_its_job_waits_for_a_retry(self, store: Store) -> None:
        job = running_job(store, key="k")
        settle_job(store, job, Failed("boom"), retries=1)
        assert add_job(store, key="k") == job.id

    def test_a_key_is_held_by_a_rescued_job(self, store: Store) -> None:
        job = running_job(store, key="k")
        rescue_expired(store, now=T0 + HOUR)
        assert add_job(store, key="k", now=T0 + HOUR) == job.id

    def test_the_next_job_with_a_key_holds_it_again(self, store: Store) -> None:
        succeeded_job(store, key="k")
        second = add_job(store, key="k")
        assert store.add_jobs([a_job(key="k")], now=T0) == [Added(second, existed=True)]


class TestKeysForAPeriod:
    def test_a_key_outlives_its_job_for_its_period(self, store: Store) -> None:
        first = succeeded_job(store, key="k", key_for=HOUR)
        assert add_job(store, key="k", now=T0 + HOUR - 1) == first

    def test_a_key_is_free_when_its_period_is_over(self, store: Store) -> None:
        first = succeeded_job(store, key="k", key_for=HOUR)
        assert add_job(store, key="k", now=T0 + HOUR) != first

    def test_the_period_counts_from_creation(self, store: Store) -> None:
        job = running_job(store, key="k", key_for=HOUR)
        succeed(store, job, now=T0 + 59 * MINUTE)
        assert add_job(store, key="k", now=T0 + 61 * MINUTE) != job.id

    def test_a_live_job_holds_its_key_beyond_its_period(self, store: Store) -> None:
        first = add_job(store, key="k", key_for=MINUTE)
        assert add_job(store, key="k", now=T0 + HOUR) == first

    def test_a_job_that_ends_after_its_period_frees_its_key(self, store: Store) -> None:
        job = running_job(store, key="k", key_for=MINUTE)
        fail(store, job, now=T0 + HOUR)
        assert add_job(store, key="k", now=T0 + HOUR) != job.id

    def test_a_cancelled_job_keeps_its_key_for_the_period(self, store: Store) -> None:
        first = cancelled_job(store, key="k", key_for=HOUR)
        assert add_job(store, key="k", now=T0 + MINUTE) == first

    def test_the_second_period_belongs_to_the_second_job(self, store: Store) -> None:
        succeeded_job(store, key="k", key_for=HOUR)
        second = succeeded_job(store, key="k", key_for=HOUR, now=T0 + HOUR)
        assert add_job(store, key="k", now=T0 + 2 * HOUR - 1) == second

    def test_a_job_retried_by_hand_within_its_period_holds_its_key(self, store: Store) -> None:
        first = cancelled_job(store, key="k", key_for=HOUR)
        store.change_jobs([retry_by_hand(read(store, first), T0 + 1, "again")], now=T0 + 1)
        claimed = claim_one(store, now=T0 + 2)
        assert (claimed.id, claimed.key) == (first, "k")
        assert add_job(store, key="k", now=T0 + 2 * HOUR) == first

    def test_a_late_retry_by_hand_never_gives_one_key_to_two_live_jobs(self, store: Store) -> None:
        """The retry was decided while the ended job still had its key. Meanwhile another job has got it."""
        first = cancelled_job(store, key="k", key_for=MINUTE)
        retry = retry_by_hand(read(store, first), T0 + HOUR, "again")
        second = add_job(store, key="k", now=T0 + HOUR)
        store.change_jobs([retry], now=T0 + HOUR)
        live = [job for job in store.get_jobs([first, second]) if job.state is State.QUEUED and job.key == "k"]
        assert [job.id for job in live] == [second]
