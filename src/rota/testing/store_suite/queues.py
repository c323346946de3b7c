"""Tests queues and their counters, written with what they count, so that a recount finds no difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.outcome import Failed, Returned
from rota.model.jobs.settle import retry_by_hand
from rota.testing.store_suite.builders import DAY, HOUR, MINUTE, T0, a_job
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.steps import (
    add,
    add_job,
    add_schedule,
    cancel_waiting,
    claim,
    claim_one,
    fail,
    failed_job,
    fire,
    queue_info,
    read,
    rescue_expired,
    running_job,
    settle_job,
    succeed,
    succeeded_job,
)

if TYPE_CHECKING:
    from rota.store.contract import Store


class TestQueues:
    def test_a_queue_is_listed_once_it_has_a_job(self, store: Store) -> None:
        add_job(store, queue="mail")
        assert [info.name for info in store.list_queues(now=T0)] == ["mail"]

    def test_queues_are_listed_by_name(self, store: Store) -> None:
        add(store, a_job(queue="b"), a_job(queue="c"), a_job(queue="a"))
        assert [info.name for info in store.list_queues(now=T0)] == ["a", "b", "c"]

    def test_a_paused_queue_says_so(self, store: Store) -> None:
        add_job(store)
        store.pause_queue("default", paused=True)
        assert queue_info(store).is_paused

    def test_a_queue_can_be_paused_before_it_has_jobs(self, store: Store) -> None:
        store.pause_queue("mail", paused=True)
        assert queue_info(store, "mail").is_paused

    def test_pausing_twice_and_resuming_once_resumes(self, store: Store) -> None:
        add_job(store)
        for paused in (True, True, False):
            store.pause_queue("default", paused=paused)
        assert not queue_info(store).is_paused

    def test_the_oldest_ready_job_is_shown(self, store: Store) -> None:
        add_job(store, delay=HOUR)
        assert queue_info(store).oldest_at is None
        add_job(store, now=T0 + 1)
        add_job(store, now=T0 + 2)
        assert queue_info(store).oldest_at == T0 + 1

    def test_the_oldest_may_have_any_priority(self, store: Store) -> None:
        add_job(store, priority=-1)
        add_job(store, priority=1, now=T0 + 1)
        assert queue_info(store).oldest_at == T0
        claim(store, now=T0 + 1)
        assert queue_info(store).oldest_at == T0

    def test_a_running_job_is_not_waiting(self, store: Store) -> None:
        running_job(store)
        assert queue_info(store).oldest_at is None

    def test_a_job_promoted_late_has_waited_since_it_was_ready(self, store: Store) -> None:
        first, _ = add(store, a_job(priority=1), a_job(delay=MINUTE))
        assert claim_one(store, now=T0 + HOUR).id == first
        assert queue_info(store).oldest_at == T0 + HOUR


class TestCounters:
    def test_live_jobs_are_counted_by_state(self, store: Store) -> None:
        add(store, a_job(), a_job(), a_job(), a_job(delay=HOUR))
        first = claim_one(store)
        add_job(store, waits_for=first.id)
        assert queue_info(store).counts == {"queued": 2, "scheduled": 1, "running": 1, "held": 1}

    def test_what_ended_is_counted_for_ever(self, store: Store) -> None:
        succeeded_job(store)
        failed_job(store)
        cancel_waiting(store, add_job(store))
        assert queue_info(store).totals == {"succeeded": 1, "failed": 1, "cancelled": 1}

    def test_each_queue_is_counted_apart(self, store: Store) -> None:
        succeeded_job(store, queue="a")
        failed_job(store, queue="b")
        assert queue_info(store, "a").totals == {"succeeded": 1}
        assert queue_info(store, "b").totals == {"failed": 1}

    def test_a_refused_write_counts_nothing(self, store: Store) -> None:
        job = running_job(store)
        succeed(store, job, holder="somebody")
        assert queue_info(store).counts == {"running": 1}
        assert queue_info(store).totals == {}

    def test_a_key_that_was_taken_counts_nothing(self, store: Store) -> None:
        add(store, a_job(key="k"), a_job(key="k"))
        assert queue_info(store).counts == {"queued": 1}

    def test_an_empty_store_has_nothing_to_recount(self, store: Store) -> None:
        assert store.recount() == {}
        assert store.list_queues(now=T0) == []

    def test_a_recount_finds_no_difference_after_every_kind_of_move(self, store: Store) -> None:
        add_schedule(store, overlap="queue")
        fire(store, now=T0 + MINUTE)
        fire(store, now=T0 + 2 * MINUTE)
        _live_a_life(store)
        store.delete_jobs([job.id for job in check_store(store)], now=T0 + DAY)
        check_store(store)


def _live_a_life(store: Store) -> None:
    now = T0 + 3 * MINUTE
    add(store, a_job(queue="a"), a_job(queue="a", delay=HOUR), a_job(queue="b"), now=now)
    first, second, third = claim(store, 3, queues=("default", "a", "b"), now=now)
    settle_job(store, first, Returned(), now=now)
    settle_job(store, second, Failed("boom"), now=now, retries=1)
    fail(store, third, now=now)
    check_store(store)
    store.change_jobs([retry_by_hand(read(store, third.id), now, "again")], now=now)
    claim(store, 9, queues=("default", "a", "b"), now=now + HOUR)
    rescue_expired(store, now=now + 2 * HOUR)
    check_store(store)
    for job in claim(store, 9, queues=("default", "a", "b"), now=now + 2 * HOUR):
        succeed(store, job, now=now + 2 * HOUR, keep=job.queue == "a")
