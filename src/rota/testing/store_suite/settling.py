"""Tests that a worker's report is recorded while it holds the lease, and refused afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from rota.model.jobs.job import State
from rota.model.jobs.outcome import (
    Died,
    Failed,
    Outcome,
    RetryAsked,
    Returned,
    Snoozed,
    Stopped,
    Succeeded,
    TaskUnknown,
    Undecodable,
)
from rota.model.jobs.retry import UNKNOWN_TASK_PAUSE
from rota.model.jobs.settle import Change, apply, apply_to, settle
from rota.model.micros import SECOND
from rota.store.contract import Exchange, Refusal
from rota.testing.store_suite.builders import HOUR, MINUTE, RIVAL, T0, WORKER, a_job, a_line, a_policy
from rota.testing.store_suite.steps import (
    add,
    add_job,
    add_schedule,
    claim,
    claim_one,
    fire,
    ids,
    is_kept,
    queue_info,
    read,
    rescue_expired,
    running_job,
    settle_job,
    succeed,
)

if TYPE_CHECKING:
    from rota.store.contract import Store

OUTCOMES: list[Outcome] = [
    Succeeded(),
    Succeeded(b"\x00\xff"),
    Failed("ValueError: 東京 'x'\nTraceback …"),
    Failed("boom", may_retry=False),
    RetryAsked(None, "not yet"),
    RetryAsked(HOUR, "not yet"),
    Snoozed(MINUTE),
    Stopped("asked to"),
    TaskUnknown(),
    Undecodable("not JSON"),
    Returned(),
    Died("killed by signal 9"),
]
GOING_ON: list[Outcome] = [Failed("boom"), RetryAsked(None, "later"), Snoozed(MINUTE), TaskUnknown(), Returned()]
AT = T0 + 5 * SECOND
AGAIN = T0 + 2 * MINUTE


def change_of_scheduled_job(store: Store, outcome: Outcome) -> Change:
    """A change of a job with a slot, a key and a failed attempt: the outcomes together set every field of a change."""
    add_schedule(store, "tick", overlap="skip", key="k")
    fire(store, "tick", now=T0 + MINUTE)
    settle_job(store, claim_one(store, now=T0 + MINUTE), Failed("first"), now=T0 + MINUTE, retries=2)
    return settle(claim_one(store, now=AGAIN), outcome, a_policy(2), AGAIN + SECOND, 0.0)


class TestOutcomes:
    @pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
    def test_every_outcome_is_kept_as_it_was_decided(self, store: Store, outcome: Outcome) -> None:
        change = change_of_scheduled_job(store, outcome)
        reply = store.exchange(Exchange(holder=WORKER, settled=[change]), now=AGAIN + SECOND)
        assert (reply.now, reply.refused) == (AGAIN + SECOND, [])
        assert read(store, change.id) == apply(change)

    def test_a_success_keeps_its_result(self, store: Store) -> None:
        job = running_job(store)
        settle_job(store, job, Succeeded(b'"done"'), now=AT)
        kept = read(store, job.id)
        assert (kept.state, kept.result, kept.finished_at) == (State.SUCCEEDED, b'"done"', AT)

    def test_a_failure_with_retries_left_waits_for_the_next_attempt(self, store: Store) -> None:
        job = running_job(store)
        settle_job(store, job, Failed("boom"), retries=1)
        kept = read(store, job.id)
        assert (kept.state, kept.run_at, kept.error) == (State.SCHEDULED, T0 + 10 * SECOND, "boom")
        assert (kept.attempts, kept.failures) == (1, 1)

    def test_a_job_fails_when_its_retries_are_spent(self, store: Store) -> None:
        job = running_job(store)
        for n in range(3):
            settle_job(store, job, Failed(f"boom {n}"), now=T0 + n * MINUTE, retries=2)
            job = (claim(store, now=T0 + n * MINUTE + 10 * SECOND) or [job])[0]
        kept = read(store, job.id)
        assert (kept.state, kept.error, kept.attempts, kept.failures) == (State.FAILED, "boom 2", 3, 3)

    def test_a_snooze_spends_no_retry(self, store: Store) -> None:
        job = running_job(store)
        settle_job(store, job, Snoozed(MINUTE))
        kept = read(store, job.id)
        assert (kept.state, kept.run_at, kept.attempts, kept.failures) == (State.SCHEDULED, T0 + MINUTE, 1, 0)

    def test_an_unknown_task_is_given_back_and_spends_nothing(self, store: Store) -> None:
        job = running_job(store)
        settle_job(store, job, TaskUnknown())
        kept = read(store, job.id)
        assert (kept.state, kept.run_at) == (State.SCHEDULED, T0 + UNKNOWN_TASK_PAUSE)
        assert (kept.attempts, kept.failures, kept.deaths) == (0, 0, 0)

    def test_a_job_given_back_is_ready_and_spent_nothing(self, store: Store) -> None:
        job = running_job(store)
        settle_job(store, job, Returned())
        kept = read(store, job.id)
        assert (kept.state, kept.holder, kept.lease_until) == (State.QUEUED, None, None)
        assert (kept.attempts, kept.failures, kept.deaths) == (0, 0, 0)

    def test_the_last_error_is_forgotten_by_a_success(self, store: Store) -> None:
        job = running_job(store)
        settle_job(store, job, Failed("boom"), retries=1)
        job = claim_one(store, now=T0 + MINUTE)
        succeed(store, job, now=T0 + MINUTE)
        assert read(store, job.id).error is None


class TestSettlingManyAtOnce:
    def test_one_exchange_settles_many_jobs(self, store: Store) -> None:
        add(store, *[a_job() for _ in range(20)])
        jobs = claim(store, 20)
        changes = [settle(job, Succeeded(), a_policy(), AT, 0.0) for job in jobs]
        assert store.exchange(Exchange(holder=WORKER, settled=changes), now=AT).refused == []
        assert queue_info(store).counts.get("running", 0) == 0
        assert queue_info(store).totals == {"succeeded": 20}

    def test_each_of_many_jobs_has_its_own_result(self, store: Store) -> None:
        results = [b"1", None, b"2", b"", b"$queue", b"x" * 5_000, b"2", b"\x00\xff", None]
        add(store, *[a_job() for _ in results])
        jobs = claim(store, len(results))
        succeed(store, jobs[0])
        changes = [
            settle(job, Succeeded(result), a_policy(), AT, 0.0) for job, result in zip(jobs, results, strict=True)
        ]
        refused = store.exchange(Exchange(holder=WORKER, settled=changes), now=AT).refused
        assert refused == [Refusal(jobs[0].id, "lease")]
        assert [read(store, job.id).result for job in jobs[1:]] == results[1:]
        assert [read(store, change.id) for change in changes[1:]] == [apply(change) for change in changes[1:]]

    def test_one_exchange_settles_and_claims(self, store: Store) -> None:
        first = running_job(store)
        second = add_job(store)
        change = settle(first, Succeeded(), a_policy(), AT, 0.0)
        reply = store.exchange(Exchange(holder=WORKER, settled=[change], want=5), now=AT)
        assert (reply.refused, ids(reply.claimed)) == ([], [second])
        assert read(store, first.id).state is State.SUCCEEDED

    def test_a_refused_change_does_not_touch_the_others(self, store: Store) -> None:
        add(store, a_job(), a_job())
        lost, mine = claim(store, 2)
        succeed(store, lost)
        changes = [settle(job, Succeeded(b"2"), a_policy(), AT, 0.0) for job in (lost, mine)]
        reply = store.exchange(Exchange(holder=WORKER, settled=changes), now=AT)
        assert reply.refused == [Refusal(lost.id, "lease")]
        assert read(store, mine.id).result == b"2"

    def test_a_stale_change_does_not_affect_the_current_one_of_the_same_job(self, store: Store) -> None:
        """A worker may lose a job, claim it again, and report both runs in one call."""
        stale = running_job(store)
        rescue_expired(store, now=T0 + HOUR)
        current = claim_one(store, now=T0 + HOUR)
        changes = [settle(job, Succeeded(b"2"), a_policy(), T0 + HOUR, 0.0) for job in (stale, current)]
        reply = store.exchange(Exchange(holder=WORKER, settled=changes), now=T0 + HOUR)
        assert reply.refused == [Refusal(stale.id, "lease")]
        assert read(store, stale.id).result == b"2"

    def test_of_two_changes_to_one_job_the_first_counts(self, store: Store) -> None:
        job = running_job(store)
        outcomes: list[Outcome] = [Succeeded(b"1"), Failed("boom")]
        changes = [settle(job, outcome, a_policy(), AT, 0.0) for outcome in outcomes]
        reply = store.exchange(Exchange(holder=WORKER, settled=changes), now=AT)
        assert reply.refused == [Refusal(job.id, "lease")]
        assert read(store, job.id).state is State.SUCCEEDED

    @pytest.mark.parametrize("outcome", GOING_ON, ids=str)
    def test_the_first_change_counts_where_it_is_not_final_too(self, store: Store, outcome: Outcome) -> None:
        job = running_job(store)
        changes = [settle(job, said, a_policy(1), AT, 0.0) for said in (outcome, Succeeded(b"2"))]
        reply = store.exchange(Exchange(holder=WORKER, settled=changes), now=AT)
        assert reply.refused == [Refusal(job.id, "lease")]
        assert read(store, job.id) == apply(changes[0])

    def test_the_first_change_counts_if_its_job_is_claimed_again_in_that_step(self, store: Store) -> None:
        job = running_job(store)
        changes = [settle(job, said, a_policy(), AT, 0.0) for said in (Returned(), Succeeded(b"2"))]
        reply = store.exchange(Exchange(holder=WORKER, settled=changes, want=1), now=AT)
        assert reply.refused == [Refusal(job.id, "lease")]
        assert [(again.id, again.lease_no, again.result) for again in reply.claimed] == [(job.id, 2, None)]
        assert read(store, job.id) == reply.claimed[0]

    def test_a_change_refused_for_a_cancel_leaves_the_job_to_the_next_one(self, store: Store) -> None:
        job = running_job(store)
        store.request_cancels([job.id], "enough", now=T0)
        asked_to_stop = read(store, job.id)
        outcomes: list[Outcome] = [Snoozed(MINUTE), Returned(), Succeeded(b"2"), Failed("boom", may_retry=False)]
        changes = [settle(job, outcome, a_policy(), AT, 0.0) for outcome in outcomes]
        reply = store.exchange(Exchange(holder=WORKER, settled=changes), now=AT)
        asked = Refusal(job.id, "cancel", "enough")
        assert reply.refused == [asked, asked, Refusal(job.id, "lease")]
        assert read(store, job.id) == apply_to(asked_to_stop, changes[2])


class TestRefusedSettles:
    @pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
    def test_a_repeated_settle_is_refused_and_changes_nothing(self, store: Store, outcome: Outcome) -> None:
        job = running_job(store)
        settle_job(store, job, outcome, now=AT, retries=1)
        before = read(store, job.id)
        assert settle_job(store, job, outcome, now=AT + 1, retries=1) == [Refusal(job.id, "lease")]
        assert read(store, job.id) == before

    def test_another_holder_is_refused(self, store: Store) -> None:
        job = running_job(store)
        assert succeed(store, job, holder=RIVAL) == [Refusal(job.id, "lease")]
        assert read(store, job.id) == job

    def test_an_older_lease_of_the_same_holder_is_refused(self, store: Store) -> None:
        first = running_job(store)
        settle_job(store, first, Returned())
        second = claim_one(store)
        assert (second.id, second.holder) == (first.id, first.holder)
        assert succeed(store, first) == [Refusal(first.id, "lease")]
        assert read(store, first.id) == second

    def test_a_lease_that_was_never_given_is_refused(self, store: Store) -> None:
        job = running_job(store)
        forged = msgspec.structs.replace(job, lease_no=job.lease_no + 1)
        assert succeed(store, forged) == [Refusal(job.id, "lease")]

    def test_a_worker_that_was_taken_for_dead_is_refused(self, store: Store) -> None:
        job = running_job(store)
        rescue_expired(store, now=T0 + HOUR)
        before = read(store, job.id)
        assert succeed(store, job, now=T0 + HOUR) == [Refusal(job.id, "lease")]
        assert read(store, job.id) == before

    def test_a_late_settle_counts_where_nobody_took_the_job(self, store: Store) -> None:
        job = running_job(store)
        assert succeed(store, job, now=T0 + HOUR) == []
        assert read(store, job.id).state is State.SUCCEEDED

    def test_a_job_that_is_gone_is_refused(self, store: Store) -> None:
        job = running_job(store)
        succeed(store, job, keep=False)
        assert succeed(store, job) == [Refusal(job.id, "lease")]


class TestCancelRequestedMeanwhile:
    @pytest.mark.parametrize("outcome", GOING_ON, ids=str)
    def test_a_job_that_was_asked_to_stop_does_not_go_on(self, store: Store, outcome: Outcome) -> None:
        job = running_job(store)
        store.request_cancels([job.id], "enough", now=T0)
        assert settle_job(store, job, outcome, now=AT, retries=1) == [Refusal(job.id, "cancel", "enough")]
        assert read(store, job.id).state is State.RUNNING

    @pytest.mark.parametrize("outcome", GOING_ON, ids=str)
    def test_decided_again_it_is_cancelled(self, store: Store, outcome: Outcome) -> None:
        job = running_job(store)
        store.request_cancels([job.id], "enough", now=T0)
        (refusal,) = settle_job(store, job, outcome, now=AT, retries=1)
        requested = msgspec.structs.replace(job, cancel_reason=refusal.reason)
        assert settle_job(store, requested, outcome, now=AT, retries=1) == []
        kept = read(store, job.id)
        assert (kept.state, kept.cancel_reason) == (State.CANCELLED, "enough")

    def test_a_success_comes_before_a_cancel(self, store: Store) -> None:
        job = running_job(store)
        store.request_cancels([job.id], "enough", now=T0)
        assert succeed(store, job, now=AT) == []
        assert read(store, job.id).state is State.SUCCEEDED

    def test_a_final_failure_is_kept_as_such(self, store: Store) -> None:
        job = running_job(store)
        store.request_cancels([job.id], "enough", now=T0)
        assert settle_job(store, job, Failed("boom", may_retry=False), now=AT) == []
        assert read(store, job.id).state is State.FAILED


class TestAutoRemove:
    def test_a_success_that_is_not_kept_is_gone(self, store: Store) -> None:
        job = running_job(store)
        assert succeed(store, job, keep=False) == []
        assert not is_kept(store, job.id)

    def test_what_was_removed_still_counts_as_done(self, store: Store) -> None:
        succeed(store, running_job(store), keep=False)
        info = queue_info(store)
        assert info.totals == {"succeeded": 1}
        assert sum(info.counts.values()) == 0

    def test_a_failure_is_kept_all_the_same(self, store: Store) -> None:
        job = running_job(store)
        settle_job(store, job, Failed("boom"), keep=False)
        assert read(store, job.id).state is State.FAILED

    def test_its_logs_go_with_it(self, store: Store) -> None:
        job = running_job(store)
        store.append_logs([a_line(job.id, "hello")])
        succeed(store, job, keep=False)
        assert store.list_logs(job.id) == []
