"""Tests cancels, retries, runs and deletions by hand, each only on the job that was decided on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rota.model.jobs.job import State, history_of
from rota.model.jobs.outcome import Failed, RetryAsked, Stopped, Succeeded
from rota.model.jobs.settle import cancel, retry_by_hand, settle
from rota.model.schedules.edit import start_edit, trigger_now
from rota.model.schedules.schedule import LastRun
from rota.store.contract import Exchange, Refusal
from rota.testing.store_suite.builders import HOUR, LEASE, MINUTE, T0, WORKER, a_job, a_line, a_policy
from rota.testing.store_suite.steps import (
    add,
    add_job,
    add_schedule,
    all_jobs,
    cancel_waiting,
    cancelled_job,
    change_schedule,
    claim,
    claim_one,
    fail,
    failed_job,
    fire,
    history,
    ids,
    is_kept,
    ledger,
    queue_info,
    read,
    read_schedule,
    running_job,
    settle_job,
    succeed,
    succeeded_job,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.jobs.outcome import Outcome
    from rota.store.contract import Store


class TestCancellingByHand:
    @pytest.mark.parametrize("fields", [{}, {"delay": HOUR}], ids=["queued", "scheduled"])
    def test_a_waiting_job_is_cancelled(self, store: Store, fields: dict[str, int]) -> None:
        job_id = add_job(store, **fields)
        assert cancel_waiting(store, job_id, now=T0 + 1, reason="by ann") == []
        kept = read(store, job_id)
        assert (kept.state, kept.cancel_reason, kept.finished_at) == (State.CANCELLED, "by ann", T0 + 1)
        assert claim(store, now=T0 + 2 * HOUR) == []

    def test_a_cancelled_job_spent_no_attempt(self, store: Store) -> None:
        assert read(store, cancelled_job(store)).attempts == 0

    def test_a_job_that_started_meanwhile_is_not_cancelled(self, store: Store) -> None:
        decided = cancel(read(store, add_job(store)), T0, "not needed")
        job = claim_one(store)
        assert store.change_jobs([decided], now=T0) == [Refusal(job.id, "lease")]
        assert read(store, job.id) == job

    def test_a_running_job_is_its_workers_alone(self, store: Store) -> None:
        job = running_job(store)
        decided = settle(job, Stopped("by hand"), a_policy(), T0, 0.0)
        assert store.change_jobs([decided], now=T0 + HOUR) == [Refusal(job.id, "lease")]
        assert read(store, job.id) == job

    def test_a_job_cancelled_twice_is_refused_the_second_time(self, store: Store) -> None:
        job_id = add_job(store)
        decided = cancel(read(store, job_id), T0, "first")
        assert store.change_jobs([decided], now=T0) == []
        assert store.change_jobs([decided], now=T0) == [Refusal(job_id, "lease")]

    def test_a_job_that_is_gone_is_refused(self, store: Store) -> None:
        job_id = add_job(store)
        decided = cancel(read(store, job_id), T0, "not needed")
        cancel_waiting(store, job_id)
        store.delete_jobs([job_id], now=T0)
        assert store.change_jobs([decided], now=T0) == [Refusal(job_id, "lease")]

    def test_many_are_changed_in_one_call_and_each_stands_alone(self, store: Store) -> None:
        first, second, third = (read(store, job_id) for job_id in add(store, a_job(), a_job(), a_job()))
        claim_one(store)
        refused = store.change_jobs([cancel(job, T0, "all") for job in (first, second, third)], now=T0)
        assert refused == [Refusal(first.id, "lease")]
        assert [job.state for job in store.get_jobs([second.id, third.id])] == [State.CANCELLED] * 2

    @pytest.mark.parametrize("turn", [1, -1], ids=["in order", "in reverse"])
    def test_a_job_and_the_one_that_waits_for_it_are_cancelled_together(self, store: Store, turn: int) -> None:
        first = add_job(store)
        held = add_job(store, waits_for=first)
        decided = [cancel(read(store, job_id), T0, "all") for job_id in (first, held)][::turn]
        assert store.change_jobs(decided, now=T0) == []
        assert [job.state for job in store.get_jobs([first, held])] == [State.CANCELLED] * 2


class TestRetryingByHand:
    @pytest.mark.parametrize("ended", [failed_job, cancelled_job], ids=["failed", "cancelled"])
    def test_an_ended_job_is_ready_again(self, store: Store, ended: Callable[[Store], str]) -> None:
        job_id = ended(store)
        assert store.change_jobs([retry_by_hand(read(store, job_id), T0 + 1, "by ann")], now=T0 + 1) == []
        kept = read(store, job_id)
        assert (kept.state, kept.finished_at, kept.run_at) == (State.QUEUED, None, T0 + 1)
        assert ids(claim(store, now=T0 + 1)) == [job_id]

    def test_one_that_was_waiting_for_its_own_retry_is_ready_at_once(self, store: Store) -> None:
        """The delay belonged to the cancelled retry. Only the job's own time is kept."""
        job = running_job(store)
        settle_job(store, job, RetryAsked(after=HOUR, error="boom"), retries=1)
        assert cancel_waiting(store, job.id, now=T0 + 1) == []
        assert store.change_jobs([retry_by_hand(read(store, job.id), T0 + 2, "by ann")], now=T0 + 2) == []
        assert read(store, job.id).run_at == T0 + 2
        assert ids(claim(store, now=T0 + 2)) == [job.id]

    def test_a_retry_by_hand_brings_fresh_budgets(self, store: Store) -> None:
        job_id = failed_job(store)
        store.change_jobs([retry_by_hand(read(store, job_id), T0, "by ann")], now=T0)
        kept = read(store, job_id)
        assert (kept.failures, kept.deaths, kept.attempts, kept.error) == (0, 0, 1, None)

    def test_the_lease_number_continues(self, store: Store) -> None:
        job_id = failed_job(store)
        store.change_jobs([retry_by_hand(read(store, job_id), T0, "by ann")], now=T0)
        assert claim_one(store).lease_no == 2

    def test_two_retries_by_hand_make_one(self, store: Store) -> None:
        job_id = failed_job(store)
        decided = retry_by_hand(read(store, job_id), T0, "by ann")
        assert store.change_jobs([decided], now=T0) == []
        assert store.change_jobs([decided], now=T0) == [Refusal(job_id, "lease")]
        assert queue_info(store).counts.get("queued") == 1

    def test_a_retried_job_may_end_another_way(self, store: Store) -> None:
        job_id = failed_job(store)
        store.change_jobs([retry_by_hand(read(store, job_id), T0, "by ann")], now=T0)
        succeed(store, claim_one(store))
        assert queue_info(store).totals == {"failed": 1, "succeeded": 1}

    @pytest.mark.parametrize("how", ["waiting", "made ahead"])
    def test_a_job_whose_time_is_still_to_come_waits_for_it(self, store: Store, how: str) -> None:
        if how == "waiting":
            job_id = add_job(store, run_at=T0 + HOUR)
        else:
            add_schedule(store, lookahead=HOUR)
            job_id = fire(store, now=T0).jobs[0]
        due = read(store, job_id).run_at
        cancel_waiting(store, job_id)
        assert store.change_jobs([retry_by_hand(read(store, job_id), T0 + 1, "by ann")], now=T0 + 1) == []
        kept = read(store, job_id)
        assert (kept.state, kept.run_at, kept.finished_at) == (State.SCHEDULED, due, None)
        assert job_id not in ids(claim(store, now=due - 1))
        assert job_id in ids(claim(store, now=due))

    def test_a_retried_job_whose_time_is_still_to_come_is_counted_as_scheduled(self, store: Store) -> None:
        job_id = add_job(store, run_at=T0 + HOUR)
        cancel_waiting(store, job_id)
        store.change_jobs([retry_by_hand(read(store, job_id), T0, "by ann")], now=T0)
        assert queue_info(store).counts == {"scheduled": 1}
        assert history(store, job_id) == [State.SCHEDULED, State.CANCELLED, State.SCHEDULED]


class TestRunningByHand:
    def test_a_run_by_hand_is_the_last_run_and_counts(self, store: Store) -> None:
        add_schedule(store, max_runs=2)
        for number in (1, 2):
            edit = trigger_now(read_schedule(store), T0 + number, f"by-hand-{number}")
            kept = change_schedule(store, edit, now=T0 + number)
            assert (kept.runs, kept.last.enqueued_at, kept.last.job_id) == (number, T0 + number, f"by-hand-{number}")

    def test_max_runs_counts_the_triggers_runs_alone(self, store: Store) -> None:
        add_schedule(store, max_runs=1)
        change_schedule(store, trigger_now(read_schedule(store), T0, "by-hand"))
        succeed(store, claim_one(store))
        assert len(fire(store, now=T0 + MINUTE).jobs) == 1
        kept = read_schedule(store)
        assert (kept.runs, kept.run_count, kept.next_at) == (2, 1, None)

    def test_what_workers_wrote_stays_when_a_run_is_started_by_hand(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        succeed(store, claim_one(store, now=T0 + MINUTE), now=T0 + 2 * MINUTE)
        change_schedule(store, trigger_now(read_schedule(store), T0 + HOUR, "by-hand"), now=T0 + HOUR)
        last = read_schedule(store).last
        assert (last.status, last.success_at, last.enqueued_at) == ("succeeded", T0 + 2 * MINUTE, T0 + HOUR)
        succeed(store, claim_one(store, now=T0 + HOUR), now=T0 + HOUR + 1)
        fire(store, now=T0 + 2 * HOUR)
        assert read_schedule(store).last.by_hand == 1

    def test_a_run_on_start_is_the_first_run(self, store: Store) -> None:
        kept = add_schedule(store, run_on_start=True)
        assert (kept.runs, kept.run_count, kept.last.enqueued_at) == (1, 0, T0)
        assert kept.last.job_id == claim_one(store).id

    def test_a_run_that_its_key_refuses_is_no_run(self, store: Store) -> None:
        schedule = add_schedule(store, key="k")
        before = change_schedule(store, trigger_now(schedule, T0, "first")).last
        after = change_schedule(store, trigger_now(read_schedule(store), T0 + 1, "second"), now=T0 + 1)
        assert (before.job_id, before.enqueued_at, before.by_hand) == ("first", T0, 1)
        assert after.last == before
        assert not is_kept(store, "second")

    def test_a_run_that_its_key_refuses_leaves_what_workers_wrote(self, store: Store) -> None:
        add_schedule(store, key="k")
        fire(store, now=T0 + MINUTE)
        succeed(store, claim_one(store, now=T0 + MINUTE), now=T0 + 2 * MINUTE)
        running_job(store, key="k", now=T0 + HOUR)
        before = read_schedule(store)
        after = change_schedule(store, trigger_now(before, T0 + HOUR, "by-hand"), now=T0 + HOUR)
        assert (after.last, after.runs, before.last.status) == (before.last, 1, "succeeded")

    def test_a_run_that_its_slot_refuses_is_no_run(self, store: Store) -> None:
        schedule = add_schedule(store)
        before = change_schedule(store, start_edit(schedule, T0, "first", "ann")).last
        after = change_schedule(store, start_edit(read_schedule(store), T0 + 1, "second", "ann"), now=T0 + 1)
        assert (before.job_id, after.last) == ("first", before)

    def test_a_run_on_start_that_its_key_refuses_is_no_run(self, store: Store) -> None:
        running_job(store, key="k")
        kept = add_schedule(store, key="k", run_on_start=True)
        assert (kept.runs, kept.last) == (0, LastRun())


TOO_LATE = "returned; the cancel came too late (by ann)"


def assert_came_too_late(store: Store, job_id: str) -> None:
    """It has succeeded, its history and every list show the request to stop, and no worker gets the request again."""
    kept = read(store, job_id)
    assert (kept.state, kept.cancel_reason, history_of(kept)[-1].reason) == (State.SUCCEEDED, "by ann", TOO_LATE)
    assert kept in all_jobs(store)
    assert store.extend_leases(WORKER, [], LEASE, now=T0 + 1).cancels == {}


class TestCancelsThatComeTooLate:
    def test_a_job_that_returned_all_the_same_succeeded_and_its_history_says_so(self, store: Store) -> None:
        job = running_job(store)
        store.request_cancels([job.id], "by ann", now=T0)
        requested = msgspec.structs.replace(job, cancel_reason="by ann")  # its worker knows of the request
        assert succeed(store, requested, now=T0 + 1) == []
        kept = read(store, job.id)
        assert kept.state is State.SUCCEEDED
        assert history_of(kept)[-1].reason == TOO_LATE

    @pytest.mark.parametrize("fields", [{}, {"key": "k"}, {"key": "k", "key_for": HOUR}], ids=str)
    def test_a_cancel_that_its_worker_did_not_learn_of_is_in_its_history(
        self, store: Store, fields: dict[str, Any]
    ) -> None:
        job = running_job(store, **fields)
        store.request_cancels([job.id], "by ann", now=T0)
        assert succeed(store, job, now=T0 + 1) == []
        assert_came_too_late(store, job.id)

    @pytest.mark.parametrize("others", [Succeeded(b"2"), Failed("boom", may_retry=False)], ids=str)
    def test_it_is_kept_for_one_of_many_that_end_together(self, store: Store, others: Outcome) -> None:
        add(store, *(a_job() for _ in range(8)))
        jobs = claim(store, 8)
        asked = jobs[3]
        store.request_cancels([asked.id], "by ann", now=T0)
        outcomes = {job.id: others for job in jobs} | {asked.id: Succeeded(b"1")}
        changes = [settle(job, outcomes[job.id], a_policy(0), T0 + 1, 0.0) for job in jobs]
        waiting = add_job(store)
        ask = Exchange(holder=WORKER, settled=changes, want=1, queues=("default",), lease_for=LEASE)
        reply = store.exchange(ask, now=T0 + 1)
        assert (reply.refused, ids(reply.claimed)) == ([], [waiting])
        assert_came_too_late(store, asked.id)
        assert [read(store, job.id).cancel_reason for job in jobs if job is not asked] == [None] * 7

    def test_it_is_kept_for_a_second_attempt(self, store: Store) -> None:
        settle_job(store, running_job(store), RetryAsked(0, "again"), retries=1)
        job = claim_one(store)
        store.request_cancels([job.id], "by ann", now=T0)
        assert succeed(store, job, now=T0 + 1) == []
        assert_came_too_late(store, job.id)

    def test_it_is_kept_for_a_job_that_another_waits_for(self, store: Store) -> None:
        job = running_job(store)
        held = add_job(store, waits_for=job.id)
        store.request_cancels([job.id], "by ann", now=T0)
        assert succeed(store, job, now=T0 + 1) == []
        assert_came_too_late(store, job.id)
        assert claim_one(store, now=T0 + 1).id == held

    def test_it_is_kept_for_a_run_of_a_schedule(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        job = claim_one(store, now=T0 + MINUTE)
        store.request_cancels([job.id], "by ann", now=T0 + MINUTE)
        assert succeed(store, job, now=T0 + 2 * MINUTE) == []
        assert_came_too_late(store, job.id)
        last = read_schedule(store).last
        assert (last.status, last.error) == ("succeeded", None)

    def test_it_is_kept_where_a_retry_under_the_same_lease_was_refused_first(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        job = claim_one(store, now=T0 + MINUTE)
        store.request_cancels([job.id], "by ann", now=T0 + MINUTE)
        outcomes = (Failed("boom"), Succeeded(b"1"))
        changes = [settle(job, outcome, a_policy(1), T0 + 2 * MINUTE, 0.0) for outcome in outcomes]
        reply = store.exchange(Exchange(holder=WORKER, settled=changes), now=T0 + 2 * MINUTE)
        assert reply.refused == [Refusal(job.id, "cancel", "by ann")]
        assert_came_too_late(store, job.id)

    def test_a_job_that_is_not_kept_is_still_deleted(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        scheduled = claim_one(store, now=T0 + MINUTE)
        plain = running_job(store, now=T0 + MINUTE)
        for job in (plain, scheduled):
            store.request_cancels([job.id], "by ann", now=T0 + MINUTE)
            assert succeed(store, job, now=T0 + 2 * MINUTE, keep=False) == []
            assert not is_kept(store, job.id)
        assert [(line.outcome, line.reason) for line in ledger(store)] == [("succeeded", "")]
        assert store.extend_leases(WORKER, [], LEASE, now=T0 + 2 * MINUTE).cancels == {}

    def test_a_final_failure_keeps_its_error_alone(self, store: Store) -> None:
        job = running_job(store)
        store.request_cancels([job.id], "by ann", now=T0)
        assert fail(store, job, now=T0 + 1) == []
        kept = read(store, job.id)
        assert (kept.state, kept.error, kept.cancel_reason) == (State.FAILED, "boom", None)


class TestDeletingByHand:
    @pytest.mark.parametrize("ended", [succeeded_job, failed_job, cancelled_job])
    def test_an_ended_job_is_deleted(self, store: Store, ended: Callable[[Store], str]) -> None:
        job_id = ended(store)
        assert store.delete_jobs([job_id], now=T0) == [job_id]
        assert not is_kept(store, job_id)

    def test_live_jobs_are_not_deleted(self, store: Store) -> None:
        running = running_job(store)
        waiting = [add_job(store), add_job(store, delay=MINUTE), add_job(store, waits_for=running.id)]
        assert store.delete_jobs([running.id, *waiting], now=T0) == []
        assert len(store.get_jobs([running.id, *waiting])) == 4

    def test_only_what_was_deleted_is_named(self, store: Store) -> None:
        ended, waiting = succeeded_job(store), add_job(store)
        assert store.delete_jobs(["nowhere", waiting, ended], now=T0) == [ended]

    def test_a_job_named_twice_is_deleted_once(self, store: Store) -> None:
        ended = succeeded_job(store)
        assert set(store.delete_jobs([ended, ended], now=T0)) == {ended}

    def test_its_logs_go_with_it(self, store: Store) -> None:
        ended = succeeded_job(store)
        store.append_logs([a_line(ended, "hello")])
        store.delete_jobs([ended], now=T0)
        assert store.list_logs(ended) == []

    def test_deleting_frees_a_key_that_holds_for_a_period(self, store: Store) -> None:
        ended = succeeded_job(store, key="k", key_for=HOUR)
        store.delete_jobs([ended], now=T0)
        assert add_job(store, key="k", now=T0 + 1) != ended

    def test_totals_outlive_what_was_deleted(self, store: Store) -> None:
        store.delete_jobs([succeeded_job(store)], now=T0)
        info = queue_info(store)
        assert (sum(info.counts.values()), info.totals) == (0, {"succeeded": 1})
