"""Tests histories: every change of state is one entry, written with the change, along the allowed moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.job import State, history_of
from rota.model.jobs.outcome import Failed, Returned, Snoozed, TaskUnknown
from rota.model.jobs.settle import retry_by_hand
from rota.model.micros import SECOND
from rota.testing.store_suite.builders import HOUR, MINUTE, RIVAL, T0, WORKER
from rota.testing.store_suite.steps import (
    add_job,
    add_schedule,
    cancel_waiting,
    claim_one,
    fail,
    fire,
    history,
    read,
    rescue_expired,
    settle_job,
    succeed,
)

if TYPE_CHECKING:
    from rota.store.contract import Store

QUEUED, RUNNING, SCHEDULED = State.QUEUED, State.RUNNING, State.SCHEDULED


class TestHistories:
    def test_a_plain_success_has_three_lines(self, store: Store) -> None:
        job_id = add_job(store)
        succeed(store, claim_one(store, now=T0 + 1), now=T0 + 2)
        lines = history_of(read(store, job_id))
        assert [(line.state, line.at) for line in lines] == [
            (QUEUED, T0),
            (RUNNING, T0 + 1),
            (State.SUCCEEDED, T0 + 2),
        ]

    def test_every_move_of_a_long_life_is_one_entry(self, store: Store) -> None:
        job_id = add_job(store, delay=MINUTE)
        job = claim_one(store, now=T0 + MINUTE)
        settle_job(store, job, Failed("boom"), now=T0 + MINUTE, retries=3)
        job = claim_one(store, now=T0 + 2 * MINUTE)
        settle_job(store, job, Snoozed(MINUTE), now=T0 + 2 * MINUTE)
        job = claim_one(store, now=T0 + 3 * MINUTE)
        settle_job(store, job, Returned(), now=T0 + 3 * MINUTE)
        claim_one(store, now=T0 + 4 * MINUTE)
        rescue_expired(store, now=T0 + HOUR)
        fail(store, claim_one(store, now=T0 + HOUR), now=T0 + HOUR)
        assert history(store, job_id) == [
            *(SCHEDULED, QUEUED, RUNNING),
            *(SCHEDULED, QUEUED, RUNNING),
            *(SCHEDULED, QUEUED, RUNNING),
            *(QUEUED, RUNNING),
            *(QUEUED, RUNNING),
            State.FAILED,
        ]

    def test_each_claim_names_its_worker_and_lease(self, store: Store) -> None:
        job_id = add_job(store)
        settle_job(store, claim_one(store), Returned())
        claim_one(store, holder=RIVAL)
        data = [line.data for line in history_of(read(store, job_id)) if line.state is RUNNING]
        assert data == [{"worker": WORKER, "lease": 1}, {"worker": RIVAL, "lease": 2}]

    def test_a_retry_says_why(self, store: Store) -> None:
        job_id = add_job(store)
        settle_job(store, claim_one(store), Failed("boom: 東京\nTraceback"), retries=2)
        line = history_of(read(store, job_id))[-1]
        assert line.reason == "retry 1 of 2: boom: 東京"
        enqueue_at = "2026-01-01T00:00:10Z"
        assert line.data == {"enqueue_at": enqueue_at, "cause": "retry", "error": "boom: 東京\nTraceback"}

    def test_every_entry_of_a_long_life_has_a_reason_and_data(self, store: Store) -> None:
        first = add_job(store, queue="mail", priority=3)
        held = add_job(store, queue="mail", waits_for=first)
        job = claim_one(store, queues=("mail",))
        settle_job(store, job, TaskUnknown(), now=T0)
        settle_job(
            store, claim_one(store, queues=("mail",), now=T0 + MINUTE), Snoozed(MINUTE, "later"), now=T0 + MINUTE
        )
        job = claim_one(store, queues=("mail",), now=T0 + 2 * MINUTE)
        settle_job(store, job, Failed("boom"), now=T0 + 2 * MINUTE + 5 * SECOND)
        lines = history_of(read(store, first)) + history_of(read(store, held))
        assert all(line.reason for line in lines)
        in_queue = {"queue": "mail", "priority": 3}
        assert [(line.state.value, line.data) for line in lines if line.state is not RUNNING] == [
            ("queued", in_queue),
            ("scheduled", {"enqueue_at": "2026-01-01T00:00:30Z", "cause": "unknown task"}),
            ("queued", in_queue),
            ("scheduled", {"enqueue_at": "2026-01-01T00:02:00Z", "cause": "snooze"}),
            ("queued", in_queue),
            ("failed", {"attempts": 2, "seconds": 5.0, "error": "boom"}),
            ("held", {"waits_for": first}),
            ("queued", {"queue": "mail", "priority": 0}),
        ]

    def test_a_delayed_job_says_when_it_is_due(self, store: Store) -> None:
        (line,) = history_of(read(store, add_job(store, delay=MINUTE, reason="enqueued by ann")))
        assert (line.state, line.reason) == (SCHEDULED, "enqueued by ann")
        assert line.data == {"enqueue_at": "2026-01-01T00:01:00Z", "cause": "delay", "delay": 60.0}

    def test_a_job_created_early_says_when_it_is_due(self, store: Store) -> None:
        add_schedule(store, lookahead=2 * MINUTE)
        made = fire(store, now=T0 + 1).jobs[0]
        (line,) = history_of(read(store, made))
        assert (line.reason, line.data) == ("made ahead", {"enqueue_at": "2026-01-01T00:01:00Z", "cause": "delay"})

    def test_a_lost_worker_is_named(self, store: Store) -> None:
        job_id = add_job(store)
        claim_one(store)
        rescue_expired(store, now=T0 + HOUR)
        line = history_of(read(store, job_id))[-1]
        assert (line.state, line.at) == (QUEUED, T0 + HOUR)
        assert "worker lost" in line.reason
        assert WORKER in line.reason

    def test_a_cancelled_job_says_who_and_why(self, store: Store) -> None:
        job_id = add_job(store)
        cancel_waiting(store, job_id, reason="cancelled by ann")
        line = history_of(read(store, job_id))[-1]
        assert (line.state, line.reason) == (State.CANCELLED, "cancelled by ann")

    def test_a_retry_by_hand_keeps_the_story(self, store: Store) -> None:
        job_id = add_job(store)
        fail(store, claim_one(store))
        store.change_jobs([retry_by_hand(read(store, job_id), T0 + 1, "retried by ann")], now=T0 + 1)
        succeed(store, claim_one(store, now=T0 + 2), now=T0 + 3)
        assert history(store, job_id) == [QUEUED, RUNNING, State.FAILED, QUEUED, RUNNING, State.SUCCEEDED]

    def test_a_retry_by_hand_before_its_time_says_when_it_is_due(self, store: Store) -> None:
        job_id = add_job(store, delay=MINUTE)
        cancel_waiting(store, job_id)
        store.change_jobs([retry_by_hand(read(store, job_id), T0 + 1, "retried by ann")], now=T0 + 1)
        line = history_of(read(store, job_id))[-1]
        assert (line.state, line.reason) == (SCHEDULED, "retried by ann")
        assert line.data == {"enqueue_at": "2026-01-01T00:01:00Z", "cause": "delay"}

    def test_a_refused_write_leaves_no_entry(self, store: Store) -> None:
        job_id = add_job(store)
        job = claim_one(store)
        succeed(store, job, holder=RIVAL)
        rescue_expired(store, now=T0)
        cancel = store.request_cancels([job_id], "enough", now=T0)
        assert cancel == [job_id]
        settle_job(store, job, Returned())
        assert history(store, job_id) == [QUEUED, RUNNING]
