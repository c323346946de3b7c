"""Tests lists and counts of jobs by the number of their attempts, from two on: an index has those jobs."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from rota.errors import BadOption
from rota.model.jobs.job import State
from rota.model.jobs.outcome import Failed, Succeeded
from rota.model.jobs.settle import retry_by_hand
from rota.store.contract import JobFilter
from rota.store.shared.matching import matches
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, a_job
from rota.testing.store_suite.steps import add, all_jobs, cancel_waiting, claim, ids, read, settle_job, succeed

if TYPE_CHECKING:
    from rota.store.contract import Store

REPEATED = JobFilter(least_attempts=2)
BOUNDS = [(2, None), (2, 2), (3, None), (3, 3), (4, None), (7, 9)]
STATES = [(), (State.SUCCEEDED,), (State.SCHEDULED, State.QUEUED), (State.RUNNING,), (State.FAILED, State.CANCELLED)]


class TestRepeatedJobs:
    def test_lists_and_counts_show_what_the_filter_says(self, store: Store) -> None:
        _fill(store)
        listed = all_jobs(store)
        assert sorted(job.attempts for job in listed) == [0, 0, 1, 1, 2, 2, 3, 3, 3, 3]
        for (least, most), states, queue, task, since in product(
            BOUNDS, STATES, (None, "b"), (None, "mail.*"), (None, T0 + MINUTE)
        ):
            where = JobFilter(
                states=states, queue=queue, task=task, since=since, least_attempts=least, most_attempts=most
            )
            expected = [job.id for job in listed if matches(job, where)]
            assert ids(all_jobs(store, where, page=2)) == expected, where
            assert store.count_jobs(where) == len(expected), where

    def test_those_of_a_schedule_and_with_a_key(self, store: Store) -> None:
        add(store, a_job(schedule_id="tick", key="k"), a_job(schedule_id="tock"), a_job(key="l"))
        _fail_all(store, times=2)
        (kept,) = all_jobs(store, JobFilter(schedule_id="tick"))
        assert ids(all_jobs(store, JobFilter(schedule_id="tick", least_attempts=2))) == [kept.id]
        assert ids(all_jobs(store, JobFilter(key="k", least_attempts=2, most_attempts=2))) == [kept.id]
        assert all_jobs(store, JobFilter(key="k", least_attempts=3)) == []

    def test_a_job_that_is_deleted_is_shown_no_more(self, store: Store) -> None:
        first, second = add(store, a_job(), a_job())
        _fail_all(store, times=2)
        cancel_waiting(store, first)
        store.delete_jobs([first], now=T0)
        assert ids(all_jobs(store, REPEATED)) == [second]
        assert store.count_jobs(REPEATED) == 1

    def test_a_job_that_is_removed_as_it_ends_is_shown_no_more(self, store: Store) -> None:
        add(store, a_job())
        _fail_all(store, times=2)
        (job,) = claim(store, now=T0 + HOUR)
        assert ids(all_jobs(store, REPEATED)) == [job.id]
        succeed(store, job, now=T0 + HOUR, keep=False)
        assert all_jobs(store, REPEATED) == []
        assert store.count_jobs(REPEATED) == 0

    def test_a_job_that_is_retried_by_hand_keeps_its_attempts(self, store: Store) -> None:
        (job_id,) = add(store, a_job())
        _fail_all(store, times=1)
        settle_job(store, claim(store, now=T0 + HOUR)[0], Failed("boom", may_retry=False), now=T0 + HOUR)
        assert store.change_jobs([retry_by_hand(read(store, job_id), T0 + HOUR, "again")], now=T0 + HOUR) == []
        assert ids(all_jobs(store, JobFilter(states=(State.QUEUED,), least_attempts=2, most_attempts=2))) == [job_id]

    @pytest.mark.parametrize("bounds", [(1, None), (0, 0), (None, 3)])
    def test_fewer_attempts_are_refused(self, bounds: tuple[int | None, int | None]) -> None:
        least, most = bounds
        with pytest.raises(BadOption, match="attempts"):
            JobFilter(least_attempts=least, most_attempts=most)


def _fill(store: Store) -> None:
    """Add jobs with 0 to 3 attempts, in several states, of two queues, tasks and times."""
    old = [a_job(queue="ab"[n % 2], task=("mail.send", "pay")[n % 3 == 0]) for n in range(5)]
    add(store, *old)
    add(store, *[a_job(queue="ab"[n % 2], task=("mail.send", "pay")[n % 3 == 0]) for n in range(3)], now=T0 + MINUTE)
    _fail_all(store, times=1, now=T0 + MINUTE)
    for number, job in enumerate(claim(store, 6, queues=("a", "b"), now=T0 + HOUR)):
        last = Succeeded(b"1") if number == 0 else Failed("boom", may_retry=number != 1)
        settle_job(store, job, last, retries=9, now=T0 + HOUR)
    for number, job in enumerate(claim(store, 4, queues=("a", "b"), now=T0 + 2 * HOUR)):
        last = Succeeded(b"1") if number == 0 else Failed("boom", may_retry=number != 1)
        settle_job(store, job, last, retries=9, now=T0 + 2 * HOUR)
    claim(store, 1, queues=("a", "b"), now=T0 + 3 * HOUR)
    add(store, a_job(queue="a"), a_job(queue="b"), now=T0 + 3 * HOUR)


def _fail_all(store: Store, *, times: int, now: int = T0) -> None:
    """Let so many attempts of every waiting job fail; each may be repeated."""
    for _ in range(times):
        for job in claim(store, 100, queues=("default", "a", "b"), now=now):
            settle_job(store, job, Failed("boom"), retries=9, now=now)
        now += MINUTE
