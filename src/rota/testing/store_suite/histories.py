"""Histories: every change of state is exactly one line, in the same write, along the lawful moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.history import history_of
from rota.model.outcome import Failed, GivenBack, Snoozed
from rota.model.settle import retry_by_hand
from rota.model.state import State
from rota.testing.store_suite.builders import HOUR, MINUTE, RIVAL, T0, WORKER
from rota.testing.store_suite.steps import (
    add_job,
    cancel_waiting,
    claim_one,
    fail,
    history,
    read,
    rescue_lapsed,
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

    def test_every_move_of_a_long_life_is_one_line(self, store: Store) -> None:
        job_id = add_job(store, delay=MINUTE)
        job = claim_one(store, now=T0 + MINUTE)
        settle_job(store, job, Failed("boom"), now=T0 + MINUTE, retries=3)
        job = claim_one(store, now=T0 + 2 * MINUTE)
        settle_job(store, job, Snoozed(MINUTE), now=T0 + 2 * MINUTE)
        job = claim_one(store, now=T0 + 3 * MINUTE)
        settle_job(store, job, GivenBack(), now=T0 + 3 * MINUTE)
        claim_one(store, now=T0 + 4 * MINUTE)
        rescue_lapsed(store, now=T0 + HOUR)
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
        settle_job(store, claim_one(store), GivenBack())
        claim_one(store, holder=RIVAL)
        data = [line.data for line in history_of(read(store, job_id)) if line.state is RUNNING]
        assert data == [{"worker": WORKER, "lease": 1}, {"worker": RIVAL, "lease": 2}]

    def test_a_retry_says_why(self, store: Store) -> None:
        job_id = add_job(store)
        settle_job(store, claim_one(store), Failed("boom: 東京\nTraceback"), retries=2)
        line = history_of(read(store, job_id))[-1]
        assert line.reason == "retry 1 of 2: boom: 東京"
        assert line.data == {"error": "boom: 東京\nTraceback"}

    def test_a_lost_worker_is_named(self, store: Store) -> None:
        job_id = add_job(store)
        claim_one(store)
        rescue_lapsed(store, now=T0 + HOUR)
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

    def test_a_refused_write_leaves_no_line(self, store: Store) -> None:
        job_id = add_job(store)
        job = claim_one(store)
        succeed(store, job, holder=RIVAL)
        rescue_lapsed(store, now=T0)
        cancel = store.request_cancels([job_id], "enough", now=T0)
        assert cancel == [job_id]
        settle_job(store, job, GivenBack())
        assert history(store, job_id) == [QUEUED, RUNNING]
