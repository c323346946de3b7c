"""Tests pruning: ended jobs are deleted by age, by state and by number, in bounded batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rota.model.jobs.outcome import Succeeded
from rota.model.jobs.settle import settle
from rota.store.contract import Exchange, Retention
from rota.testing.store_suite.builders import DAY, HOUR, MINUTE, T0, WORKER, a_job, a_line, a_policy, fresh_id
from rota.testing.store_suite.steps import (
    add,
    add_job,
    all_jobs,
    cancelled_job,
    claim,
    failed_job,
    ids,
    is_kept,
    queue_info,
    running_job,
    succeeded_job,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.jobs.job import NewJob
    from rota.store.contract import Store

SHORT = Retention(succeeded_for=HOUR, failed_for=3 * HOUR, cancelled_for=2 * HOUR)
ENDS = [(succeeded_job, HOUR), (cancelled_job, 2 * HOUR), (failed_job, 3 * HOUR)]


def end_all(store: Store, jobs: list[NewJob], *, now: int = T0) -> list[str]:
    """Add jobs, claim them, and let them succeed, each in one call."""
    add(store, *jobs, now=now)
    claimed = claim(store, len(jobs), now=now)
    changes = [settle(job, Succeeded(b"1"), a_policy(), now, 0.0) for job in claimed]
    assert store.exchange(Exchange(holder=WORKER, settled=changes), now=now).refused == []
    return ids(claimed)


class TestPruningByAge:
    @pytest.mark.parametrize(("ended", "kept_for"), ENDS, ids=["succeeded", "cancelled", "failed"])
    def test_each_state_has_its_own_time(self, store: Store, ended: Callable[[Store], str], kept_for: int) -> None:
        job_id = ended(store)
        assert store.prune(SHORT, 100, now=T0 + kept_for - 1).jobs == 0
        assert store.prune(SHORT, 100, now=T0 + kept_for).jobs == 1
        assert not is_kept(store, job_id)

    def test_the_time_counts_from_the_end(self, store: Store) -> None:
        job_id = succeeded_job(store, now=T0 + HOUR)
        store.prune(SHORT, 100, now=T0 + HOUR + MINUTE)
        assert is_kept(store, job_id)

    def test_live_jobs_are_never_pruned(self, store: Store) -> None:
        running = running_job(store)
        waiting = [add_job(store), add_job(store, delay=MINUTE), add_job(store, waits_for=running.id)]
        assert store.prune(SHORT, 100, now=T0 + 1000 * DAY).jobs == 0
        assert len(store.get_jobs([running.id, *waiting])) == 4

    def test_a_key_that_holds_for_a_period_keeps_its_job(self, store: Store) -> None:
        job_id = succeeded_job(store, key="k", key_for=DAY)
        assert store.prune(SHORT, 100, now=T0 + DAY - 1).jobs == 0
        assert add_job(store, key="k", now=T0 + DAY - 1) == job_id
        assert store.prune(SHORT, 100, now=T0 + DAY).jobs == 1

    def test_logs_go_with_their_job(self, store: Store) -> None:
        job_id = succeeded_job(store)
        store.append_logs([a_line(job_id, "hello")])
        store.prune(SHORT, 100, now=T0 + DAY)
        assert store.list_logs(job_id) == []

    def test_the_counters_follow_and_totals_stay(self, store: Store) -> None:
        succeeded_job(store)
        store.prune(SHORT, 100, now=T0 + DAY)
        info = queue_info(store)
        assert (sum(info.counts.values()), info.totals) == (0, {"succeeded": 1})

    def test_an_empty_store_has_nothing_to_prune(self, store: Store) -> None:
        assert store.prune(SHORT, 100, now=T0).total == 0


class TestPruningInBatches:
    def test_a_batch_is_bounded_and_takes_the_oldest(self, store: Store) -> None:
        made = [succeeded_job(store, now=T0 + n) for n in range(5)]
        assert store.prune(SHORT, 2, now=T0 + DAY).jobs == 2
        assert ids(all_jobs(store)) == made[:1:-1]

    def test_of_all_states_together_the_first_to_have_ended_go_first(self, store: Store) -> None:
        ends = (succeeded_job, failed_job, cancelled_job, failed_job, succeeded_job, cancelled_job)
        made = [end(store, now=T0 + n) for n, end in enumerate(ends)]
        assert store.prune(SHORT, 2, now=T0 + DAY).jobs == 2
        assert ids(all_jobs(store)) == made[:1:-1]
        assert store.prune(SHORT, 3, now=T0 + DAY).jobs == 3
        assert ids(all_jobs(store)) == made[5:]

    def test_batch_after_batch_takes_everything_that_is_due(self, store: Store) -> None:
        for n in range(7):
            (succeeded_job, failed_job, cancelled_job)[n % 3](store, now=T0 + n)
        fresh = succeeded_job(store, now=T0 + DAY)
        batches = []
        while removed := store.prune(SHORT, 3, now=T0 + DAY).jobs:
            batches.append(removed)
        assert (sum(batches), max(batches)) == (7, 3)
        assert ids(all_jobs(store)) == [fresh]

    def test_of_those_that_ended_at_one_instant_the_first_to_be_added_go_first(self, store: Store) -> None:
        made = end_all(store, [a_job(id=f"{99 - n}{fresh_id()}") for n in range(60)])
        for first in (2, 4):
            assert store.prune(SHORT, 2, now=T0 + DAY).jobs == 2
            assert ids(all_jobs(store)) == made[first:][::-1]

    def test_any_number_of_jobs_whose_keys_hold_are_passed_over(self, store: Store) -> None:
        keyed = end_all(store, [a_job(key=f"key-{n}", key_for=2 * DAY) for n in range(600)])
        others = [succeeded_job(store, now=T0 + n) for n in range(3)]
        assert [store.prune(SHORT, 1, now=T0 + DAY).jobs for _ in range(4)] == [1, 1, 1, 0]
        assert not store.get_jobs(others)
        assert store.prune(SHORT, 1000, now=T0 + 2 * DAY).jobs == len(keyed)

    def test_a_second_pruner_finds_nothing_left(self, store: Store) -> None:
        succeeded_job(store)
        assert [store.prune(SHORT, 100, now=T0 + DAY).jobs for _ in range(2)] == [1, 0]


class TestPruningByNumber:
    def test_no_more_than_so_many_ended_jobs_are_kept(self, store: Store) -> None:
        made = [succeeded_job(store, now=T0 + n) for n in range(5)]
        assert store.prune(Retention(most_finished=2), 100, now=T0 + MINUTE).jobs == 3
        assert ids(all_jobs(store)) == [made[4], made[3]]

    def test_live_jobs_do_not_count(self, store: Store) -> None:
        succeeded_job(store)
        waiting = [add_job(store) for _ in range(5)]
        assert store.prune(Retention(most_finished=1), 100, now=T0 + MINUTE).jobs == 0
        assert len(store.get_jobs(waiting)) == 5

    def test_a_batch_is_bounded_here_too(self, store: Store) -> None:
        for n in range(5):
            succeeded_job(store, now=T0 + n)
        batches = [store.prune(Retention(most_finished=0), 2, now=T0 + MINUTE).jobs for _ in range(4)]
        assert batches == [2, 2, 1, 0]

    def test_a_job_whose_key_holds_stays_and_the_next_oldest_is_deleted(self, store: Store) -> None:
        keyed = succeeded_job(store, key="k", key_for=DAY)
        made = [succeeded_job(store, now=T0 + n) for n in range(1, 6)]
        assert store.prune(Retention(most_finished=2), 100, now=T0 + MINUTE).jobs == 4
        assert ids(all_jobs(store)) == [made[-1], keyed]
        assert store.prune(Retention(most_finished=0), 100, now=T0 + MINUTE).jobs == 1
        assert ids(all_jobs(store)) == [keyed]

    def test_of_all_states_together_the_oldest_are_too_many(self, store: Store) -> None:
        made = [end(store, now=T0 + n) for n, end in enumerate((failed_job, succeeded_job, cancelled_job, failed_job))]
        assert store.prune(Retention(most_finished=2), 100, now=T0 + MINUTE).jobs == 2
        assert ids(all_jobs(store)) == made[:1:-1]

    def test_one_batch_takes_what_is_too_old_and_what_is_too_many(self, store: Store) -> None:
        for n in range(2):
            succeeded_job(store, now=T0 + n)
        fresh = [succeeded_job(store, now=T0 + HOUR + n) for n in range(3)]
        retention = Retention(succeeded_for=HOUR, most_finished=1)
        assert store.prune(retention, 100, now=T0 + HOUR + MINUTE).jobs == 4
        assert ids(all_jobs(store)) == fresh[-1:]

    def test_the_oldest_stays_where_enough_others_were_kept_long_enough(self, store: Store) -> None:
        oldest = failed_job(store)
        for n in range(2):
            succeeded_job(store, now=T0 + 1 + n)
        retention = Retention(succeeded_for=HOUR, failed_for=DAY, most_finished=2)
        assert store.prune(retention, 100, now=T0 + HOUR + MINUTE).jobs == 2
        assert ids(all_jobs(store)) == [oldest]
