"""Tests counts of jobs that match a filter, up to a limit, and lists of failures, newest first."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from rota.model.jobs.job import State
from rota.model.jobs.outcome import Failed, Returned
from rota.model.jobs.settle import retry_by_hand
from rota.store.contract import Failure, JobFilter
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, a_job
from rota.testing.store_suite.steps import (
    add,
    add_job,
    all_jobs,
    cancel_waiting,
    cancelled_job,
    claim,
    claim_one,
    fail,
    failed_job,
    read,
    running_job,
    settle_job,
    succeed,
    succeeded_job,
)

if TYPE_CHECKING:
    from rota.store.contract import Store

STATES = [(), (State.FAILED,), (State.QUEUED,), (State.RUNNING,), (State.SUCCEEDED, State.FAILED), tuple(State)]
TIMES = [(None, None), (T0 + MINUTE, None), (None, T0 + HOUR), (T0 + 1, T0 + 2 * HOUR + 1), (T0 + HOUR, T0 + 2 * HOUR)]
WHERE = [
    JobFilter(states=states, queue=queue, task=task, since=since, until=until)
    for states, queue, task, (since, until) in product(STATES, [None, "a"], [None, "mail.send", "mail.*"], TIMES)
]


class TestCountingJobs:
    def test_an_empty_store_has_none(self, store: Store) -> None:
        assert store.count_jobs(JobFilter()) == 0

    def test_every_filter_counts_what_its_list_shows(self, store: Store) -> None:
        _fill(store)
        counted = {where: store.count_jobs(where) for where in WHERE}
        assert counted == {where: len(all_jobs(store, where)) for where in WHERE}
        assert counted[JobFilter()] == 24
        assert counted[JobFilter(states=(State.RUNNING,), queue="a")] == 4

    def test_a_job_is_counted_in_the_state_that_it_has(self, store: Store) -> None:
        assert store.count_jobs(JobFilter(states=(State.SUCCEEDED,))) == 0
        succeed(store, running_job(store))
        assert store.count_jobs(JobFilter(states=(State.SUCCEEDED, State.SUCCEEDED))) == 1
        assert store.count_jobs(JobFilter(states=(State.QUEUED, State.RUNNING))) == 0

    @pytest.mark.parametrize("limit", [1, 4, 5, 6])
    def test_a_count_ends_at_its_limit(self, store: Store, limit: int) -> None:
        add(store, *(a_job() for _ in range(5)))
        for where in (JobFilter(), JobFilter(states=(State.QUEUED,)), JobFilter(task="mail.*", since=T0)):
            assert store.count_jobs(where, limit=limit) == min(5, limit)

    def test_jobs_of_a_key_and_a_time_are_counted(self, store: Store) -> None:
        add_job(store, key="k")
        add_job(store, now=T0 + HOUR)
        assert store.count_jobs(JobFilter(key="k")) == 1
        assert store.count_jobs(JobFilter(key="other")) == 0
        assert store.count_jobs(JobFilter(until=T0 + 1)) == 1
        assert store.count_jobs(JobFilter(since=T0 + 1)) == 1

    def test_few_in_a_state_are_counted_among_many_of_a_schedule(self, store: Store) -> None:
        add(store, *(a_job(schedule_id="tick") for _ in range(2_100)))
        failed, retried, succeeded, cancelled, running, _ = claim(store, 6)
        fail(store, failed)
        settle_job(store, retried, Failed("boom"), retries=1)
        succeed(store, succeeded)
        settle_job(store, cancelled, Returned())
        assert cancel_waiting(store, cancelled.id) == []
        few = dict.fromkeys((State.FAILED, State.SCHEDULED, State.SUCCEEDED, State.CANCELLED), 1)
        for state, number in {**few, State.RUNNING: 2, State.QUEUED: 2_094, State.HELD: 0}.items():
            where = JobFilter(states=(state,), schedule_id="tick")
            assert store.count_jobs(where) == len(all_jobs(store, where, page=1_000)) == number, where
        both = JobFilter(states=(State.RUNNING, State.FAILED), schedule_id="tick")
        assert {failed.id, running.id} <= {job.id for job in all_jobs(store, both)}
        assert store.count_jobs(JobFilter(states=(State.FAILED,), schedule_id="tock")) == 0

    def test_counts_among_thousands_are_exact_whatever_state_most_of_them_have(self, store: Store) -> None:
        for now, number in ((T0, 2_050), (T0 + HOUR, 80)):
            add(store, *(a_job(schedule_id="tick", queue="ab"[n % 2]) for n in range(number)), now=now)
            add(store, *(a_job(task="pay") for _ in range(90)), now=now)
        failed, succeeded, cancelled, *_ = claim(store, 5, queues=("a", "b"), now=T0 + HOUR)
        fail(store, failed, now=T0 + HOUR)
        succeed(store, succeeded, now=T0 + HOUR)
        settle_job(store, cancelled, Failed("boom", may_retry=True), now=T0 + HOUR)
        for states, since in product([*STATES, (State.QUEUED, State.FAILED)], (None, T0 + 1, T0 + HOUR)):
            where = JobFilter(states=states, schedule_id="tick", since=since)
            assert store.count_jobs(where) == len(all_jobs(store, where, page=1_000)), where


def _fill(store: Store) -> None:
    """Add jobs of two queues, two tasks and three hours: waiting, running, succeeded and failed."""
    for now, queue, task in product((T0, T0 + HOUR, T0 + 2 * HOUR), "ab", ("mail.send", "pay")):
        add(store, *(a_job(queue=queue, task=task) for _ in range(2)), now=now)
    for number, job in enumerate(claim(store, 18, queues=("a", "b"), now=T0 + 2 * HOUR)):
        if number % 3 == 0:
            succeed(store, job, now=T0 + 2 * HOUR)
        elif number % 3 == 1:
            fail(store, job, now=T0 + 2 * HOUR)


class TestFailures:
    def test_the_last_to_fail_comes_first(self, store: Store) -> None:
        first, second = running_job(store, task="a"), running_job(store, task="b")
        settle_job(store, second, Failed("ValueError: x\nTraceback", may_retry=False), now=T0 + 1)
        settle_job(store, first, Failed("boom", may_retry=False), now=T0 + 2)
        assert store.list_failures(T0) == [
            Failure(id=first.id, task="a", at=T0 + 2, error="boom"),
            Failure(id=second.id, task="b", at=T0 + 1, error="ValueError: x\nTraceback"),
        ]

    def test_only_those_of_a_time_are_shown(self, store: Store) -> None:
        for n in range(3):
            failed_job(store, now=T0 + n * MINUTE)
        assert [failure.at for failure in store.list_failures(T0 + MINUTE)] == [T0 + 2 * MINUTE, T0 + MINUTE]
        assert [failure.at for failure in store.list_failures(T0, limit=1)] == [T0 + 2 * MINUTE]

    def test_what_did_not_fail_or_will_run_again_is_not_shown(self, store: Store) -> None:
        succeeded_job(store)
        cancelled_job(store)
        settle_job(store, running_job(store), Failed("boom"), retries=1)
        again = failed_job(store)
        store.change_jobs([retry_by_hand(read(store, again), T0, "again")], now=T0)
        assert store.list_failures(0) == []
        fail(store, claim_one(store, now=T0 + 1), now=T0 + 1)
        assert [(failure.id, failure.at) for failure in store.list_failures(0)] == [(again, T0 + 1)]
