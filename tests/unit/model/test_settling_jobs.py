"""What becomes of a job: every outcome, both budgets, back-off, rescue, and what people decide by hand."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadOption, UnlawfulMove
from rota.model.jobs.job import State, history_of
from rota.model.jobs.outcome import (
    Failed,
    RetryAsked,
    Returned,
    Snoozed,
    Stopped,
    Succeeded,
    TaskUnknown,
    Undecodable,
)
from rota.model.jobs.retry import MAX_DEATHS, UNKNOWN_TASK_PAUSE, Backoff, RetryPolicy, backoff
from rota.model.jobs.settle import apply, apply_to, cancel, claim, promote, release, rescue, retry_by_hand, settle
from rota.model.micros import SECOND
from unit.model.values import HOUR, MINUTE, NOON, a_job

THREE = RetryPolicy()
EVERY_OUTCOME = [
    Succeeded(b"1"),
    Failed("Boom: it broke"),
    Failed("Boom: it broke", may_retry=False),
    RetryAsked(None, "Retry: later"),
    RetryAsked(5 * SECOND, "Retry: later"),
    Snoozed(HOUR),
    Stopped("not wanted"),
    TaskUnknown(),
    Undecodable("BadPayload: cut short"),
    Returned(),
]


def settled(job, outcome, policy=THREE, random=0.0, **options):
    return apply(settle(job, outcome, policy, NOON, random, **options))


# A worker's clock.


@pytest.mark.parametrize("outcome", [Succeeded(b"1"), Failed("Boom: it broke", may_retry=False), Stopped("why")])
def test_no_attempt_ends_before_it_began_however_far_a_workers_clock_lags(outcome):
    job = a_job(started_at=NOON + SECOND)
    assert settled(job, outcome).finished_at == NOON + SECOND


def test_no_worker_is_lost_before_it_began():
    job = a_job(started_at=NOON + SECOND, deaths=MAX_DEATHS - 1)
    assert apply(rescue(job, NOON)).finished_at == NOON + SECOND


# Each outcome.


def test_a_return_ends_the_job_as_succeeded_with_its_result():
    job = settled(a_job(), Succeeded(b'"done"'))
    assert (job.state, job.result, job.finished_at, job.attempts, job.failures) == (
        State.SUCCEEDED,
        b'"done"',
        NOON,
        1,
        0,
    )


def test_a_job_that_is_not_kept_is_removed_once_it_has_succeeded():
    assert settle(a_job(), Succeeded(), THREE, NOON, 0.0, keep=False).is_removal


@pytest.mark.parametrize("outcome", [outcome for outcome in EVERY_OUTCOME if not isinstance(outcome, Succeeded)])
def test_a_job_that_is_not_kept_stays_while_it_has_not_succeeded(outcome):
    assert not settle(a_job(), outcome, THREE, NOON, 0.0, keep=False).is_removal


def test_a_failure_waits_for_its_next_attempt_and_keeps_its_error():
    job = settled(a_job(), Failed("Boom: it broke\nTraceback …"))
    assert (job.state, job.run_at, job.attempts, job.failures) == (State.SCHEDULED, NOON + 2 * SECOND, 1, 1)
    assert job.error == "Boom: it broke\nTraceback …"


def test_a_failure_beyond_the_last_retry_ends_the_job_as_failed():
    job = settled(a_job(failures=3, attempts=3), Failed("Boom: it broke"))
    assert (job.state, job.attempts, job.failures, job.error) == (State.FAILED, 4, 4, "Boom: it broke")


def test_without_retries_the_first_failure_is_the_last():
    assert settled(a_job(), Failed("Boom"), RetryPolicy(retries=0)).state is State.FAILED


def test_a_failure_that_the_task_gives_up_on_ends_the_job_at_once():
    job = settled(a_job(), Failed("Boom: it broke", may_retry=False))
    assert (job.state, job.attempts, job.error) == (State.FAILED, 1, "Boom: it broke")


def test_a_retry_that_was_asked_for_spends_a_retry_and_waits_as_long_as_it_said():
    job = settled(a_job(), RetryAsked(30 * SECOND, "Retry: busy"))
    assert (job.state, job.run_at, job.failures, job.attempts) == (State.SCHEDULED, NOON + 30 * SECOND, 1, 1)


def test_a_retry_that_names_no_time_waits_by_the_back_off():
    assert settled(a_job(), RetryAsked(None, "Retry: busy")).run_at == NOON + 2 * SECOND


def test_asking_for_a_retry_when_none_is_left_ends_the_job_as_failed():
    job = settled(a_job(failures=3), RetryAsked(30 * SECOND, "Retry: busy"))
    assert (job.state, job.error) == (State.FAILED, "Retry: busy")


def test_a_snooze_spends_no_retry():
    job = settled(a_job(failures=2, attempts=2), Snoozed(HOUR, "the shop is closed"))
    assert (job.state, job.run_at, job.failures, job.deaths) == (State.SCHEDULED, NOON + HOUR, 2, 0)


def test_a_job_can_be_snoozed_far_more_often_than_it_may_fail():
    job = a_job()
    for turn in range(20):
        waiting = settled(job, Snoozed(SECOND))
        assert waiting.state is State.SCHEDULED
        job = claim(promote(waiting, NOON + turn), "worker-1", NOON + turn, NOON + MINUTE)
    assert (job.failures, job.attempts) == (0, 20)


def test_a_stopped_job_is_cancelled_with_the_reason():
    job = settled(a_job(), Stopped("the order is gone"))
    assert (job.state, job.cancel_reason, job.attempts) == (State.CANCELLED, "the order is gone", 1)


def test_a_task_that_this_worker_does_not_know_is_given_back_for_half_a_minute_and_spends_nothing():
    before = a_job(attempts=1, failures=1, deaths=1)
    job = settled(before, TaskUnknown())
    assert (job.state, job.run_at - NOON) == (State.SCHEDULED, UNKNOWN_TASK_PAUSE)
    assert UNKNOWN_TASK_PAUSE == 30 * SECOND
    assert (job.attempts, job.failures, job.deaths) == (1, 1, 1)


def test_a_payload_that_cannot_be_read_parks_the_job_with_the_reason():
    job = settled(a_job(), Undecodable("BadPayload: cut short"))
    assert (job.state, job.error) == (State.FAILED, "BadPayload: cut short")


def test_giving_back_spends_nothing_and_keeps_the_place_in_the_line():
    before = a_job(attempts=1, failures=1, deaths=1)
    job = settled(before, Returned())
    assert (job.state, job.run_at, job.seq, job.priority) == (State.QUEUED, before.run_at, before.seq, before.priority)
    assert (job.attempts, job.failures, job.deaths) == (1, 1, 1)


@pytest.mark.parametrize("outcome", EVERY_OUTCOME)
def test_whatever_becomes_of_a_job_its_lease_is_over(outcome):
    job = settled(a_job(), outcome)
    assert job.lease_until is None
    assert job.state.is_final or job.holder is None


@pytest.mark.parametrize("outcome", EVERY_OUTCOME)
def test_nothing_becomes_of_a_job_that_has_succeeded(outcome):
    with pytest.raises(UnlawfulMove):
        settle(a_job(State.SUCCEEDED), outcome, THREE, NOON, 0.0)


# A job that was asked to stop.


@pytest.mark.parametrize("outcome", EVERY_OUTCOME)
def test_a_job_that_was_asked_to_stop_never_goes_back_into_the_line(outcome):
    assert settled(a_job(cancel_reason="not wanted"), outcome).state.is_final


@pytest.mark.parametrize(
    "outcome", [Failed("Boom"), RetryAsked(None, "Retry"), Snoozed(HOUR), TaskUnknown(), Returned()]
)
def test_what_would_have_been_another_attempt_ends_a_stopped_job_as_cancelled(outcome):
    job = settled(a_job(cancel_reason="not wanted"), outcome)
    assert (job.state, job.cancel_reason) == (State.CANCELLED, "not wanted")


def test_a_job_that_returned_although_it_was_asked_to_stop_has_succeeded():
    job = settled(a_job(cancel_reason="not wanted"), Succeeded(b"1"))
    assert (job.state, job.cancel_reason) == (State.SUCCEEDED, "not wanted")
    assert history_of(job)[-1].reason == "returned; the cancel came too late (not wanted)"


@pytest.mark.parametrize(
    ("outcome", "reason"), [(Succeeded(b"1"), "not wanted"), (Failed("Boom", may_retry=False), None)], ids=str
)
def test_a_cancel_that_the_decision_did_not_know_of_stays_with_a_success_alone(outcome, reason):
    job = a_job()
    change = settle(job, outcome, RetryPolicy(), NOON, 0.0)
    assert apply_to(msgspec.structs.replace(job, cancel_reason="not wanted"), change).cancel_reason == reason


# The two budgets.


def test_failures_and_deaths_are_counted_apart():
    job = a_job()
    for _ in range(MAX_DEATHS - 1):
        job = claim(apply(rescue(job, NOON)), "worker-2", NOON, NOON + MINUTE)
    assert (job.deaths, job.failures, job.attempts) == (2, 0, 0)
    for failure in range(1, 4):
        waiting = settled(job, Failed("Boom"))
        assert (waiting.state, waiting.failures, waiting.deaths) == (State.SCHEDULED, failure, 2)
        job = claim(promote(waiting, NOON), "worker-2", NOON, NOON + MINUTE)
    assert settled(job, Failed("Boom")).state is State.FAILED


@given(
    retries=st.integers(0, 12),
    turns=st.lists(st.sampled_from(["fail", "snooze", "return", "unknown"]), max_size=60),
)
def test_a_job_fails_exactly_once_more_than_it_has_retries(retries, turns):
    job, policy, failed = a_job(), RetryPolicy(retries=retries), 0
    outcomes = {"fail": Failed("Boom"), "snooze": Snoozed(1), "return": Returned(), "unknown": TaskUnknown()}
    for turn in turns:
        job = settled(job, outcomes[turn], policy)
        failed += turn == "fail"
        assert job.failures == failed
        if job.state is State.FAILED:
            break
        ready = job if job.state is State.QUEUED else promote(job, NOON)
        job = claim(ready, "worker-1", NOON, NOON + MINUTE)
    assert (job.state is State.FAILED) == (failed > retries)


# Back-off.

pauses = st.builds(
    Backoff,
    first=st.integers(1, 10**10),
    factor=st.floats(1, 100, allow_nan=False),
    longest=st.integers(1, 10**11),
)


@given(pauses, st.integers(1, 5_000), st.floats(0, 1, exclude_max=True))
def test_a_pause_lies_between_half_of_the_grown_value_and_the_whole(policy, failures, random):
    grown = min(policy.first * policy.factor ** min(failures - 1, 64), policy.longest)
    pause = policy.pause(failures, random)
    assert math.floor(grown / 2) <= pause <= grown


@given(pauses, st.integers(1, 100))
def test_pauses_grow_and_never_pass_the_longest(policy, failures):
    assert policy.pause(failures, 0.0) <= policy.pause(failures + 1, 0.0) <= policy.longest


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 20))
def test_a_retry_is_due_after_its_pause(random, failures):
    job = settled(a_job(failures=failures - 1), Failed("Boom"), RetryPolicy(retries=1_000), random)
    assert job.run_at == NOON + Backoff().pause(failures, random)


def test_the_usual_pauses_are_2_6_18_seconds_and_so_on():
    assert [Backoff().pause(failures, 0.0) // SECOND for failures in (1, 2, 3, 4, 9)] == [2, 6, 18, 54, 3600]


def test_jitter_spreads_a_crowd():
    assert len({Backoff().pause(3, crowd / 100) for crowd in range(100)}) == 100


def test_a_back_off_is_said_in_words():
    assert backoff("10s", factor=2, longest="30m") == Backoff(10 * SECOND, 2.0, 30 * MINUTE)


@pytest.mark.parametrize("factor", [0.5, 0, -1, 101, math.nan, math.inf])
def test_a_back_off_that_shrinks_or_explodes_is_refused(factor):
    with pytest.raises(BadOption, match="factor"):
        backoff("10s", factor=factor)


# By type of exception.


class Hopeless(ValueError):
    """An error that no retry mends."""


@pytest.mark.parametrize(
    ("policy", "error", "is_tried_again"),
    [
        (RetryPolicy(), ValueError(), True),
        (RetryPolicy(), SystemExit(), False),
        (RetryPolicy(), KeyboardInterrupt(), False),
        (RetryPolicy(give_up_on=(Hopeless,)), Hopeless(), False),
        (RetryPolicy(give_up_on=(Hopeless,)), ValueError(), True),
        (RetryPolicy(give_up_on=(ValueError,)), Hopeless(), False),
        (RetryPolicy(retry_on=(OSError,)), TimeoutError(), True),
        (RetryPolicy(retry_on=(OSError,)), ValueError(), False),
        (RetryPolicy(retry_on=(ValueError,), give_up_on=(Hopeless,)), Hopeless(), False),
        (RetryPolicy(retry_on=(BaseException,)), SystemExit(), True),
        (RetryPolicy(retry_on=()), ValueError(), False),
    ],
)
def test_a_policy_decides_by_the_type_of_the_exception(policy, error, is_tried_again):
    assert policy.may_retry(error) is is_tried_again


# Rescue.


def test_a_job_of_a_lost_worker_is_ready_again_and_its_history_says_so():
    job = apply(rescue(a_job(), NOON))
    assert (job.state, job.deaths, job.failures, job.attempts, job.holder) == (State.QUEUED, 1, 0, 0, None)
    assert b"worker lost: worker-1" in job.past


def test_a_job_that_outlived_three_workers_is_parked_with_what_is_known():
    job = apply(rescue(a_job(deaths=2), NOON))
    assert (job.state, job.deaths) == (State.FAILED, 3)
    assert "3 workers died" in job.error
    assert "worker-1" in job.error


def test_a_stopped_job_whose_worker_died_is_cancelled():
    for deaths in range(4):
        job = apply(rescue(a_job(deaths=deaths, cancel_reason="not wanted"), NOON))
        assert (job.state, job.cancel_reason, job.deaths) == (State.CANCELLED, "not wanted", deaths + 1)


@pytest.mark.parametrize("state", [State.QUEUED, State.SUCCEEDED])
def test_a_job_that_waits_or_has_succeeded_is_not_rescued(state):
    with pytest.raises(UnlawfulMove):
        rescue(a_job(state), NOON)


# Keys.


def test_a_job_whose_key_holds_for_a_period_stays_until_that_is_over():
    job = a_job(key="user-42", key_until=NOON + 1)
    assert not settle(job, Succeeded(), THREE, NOON, 0.0, keep=False).is_removal
    assert settle(job, Succeeded(), THREE, NOON + 1, 0.0, keep=False).is_removal


def test_a_job_that_is_retried_by_hand_does_not_take_its_old_key_from_another():
    assert apply(retry_by_hand(a_job(State.FAILED, key="user-42", key_until=NOON), NOON, "again")).key is None


def test_a_key_goes_with_the_end_of_its_job():
    assert settled(a_job(key="user-42"), Succeeded()).key is None


@pytest.mark.parametrize("outcome", [Failed("Boom"), Snoozed(HOUR), TaskUnknown(), Returned()])
def test_a_key_stays_while_its_job_is_live(outcome):
    assert settled(a_job(key="user-42"), outcome).key == "user-42"


def test_a_key_that_holds_for_a_period_outlives_its_job():
    assert settled(a_job(key="user-42", key_until=NOON + 1), Succeeded()).key == "user-42"
    assert settled(a_job(key="user-42", key_until=NOON), Succeeded()).key is None


def test_a_released_occurrence_takes_over_its_schedules_slot():
    held = a_job(State.HELD, schedule_id="nightly", fire_at=NOON, run_at=NOON)
    job = apply(release(held, NOON))
    assert (job.state, job.slot, job.key, job.queued_at) == (State.QUEUED, "nightly", None, NOON)


def test_a_released_job_that_is_no_occurrence_keeps_its_own_key():
    job = apply(release(a_job(State.HELD, schedule_id="nightly", key="user-42"), NOON))
    assert (job.state, job.key) == (State.QUEUED, "user-42")


def test_a_job_that_is_released_before_its_time_waits_for_it():
    job = apply(release(a_job(State.HELD, run_at=NOON + HOUR), NOON))
    assert (job.state, job.run_at) == (State.SCHEDULED, NOON + HOUR)


# By hand.


@pytest.mark.parametrize("state", [State.SCHEDULED, State.QUEUED, State.HELD])
def test_a_waiting_job_is_cancelled_at_once(state):
    job = apply(cancel(a_job(state), NOON, "not wanted"))
    assert (job.state, job.cancel_reason, job.finished_at, job.attempts) == (
        State.CANCELLED,
        "not wanted",
        NOON,
        0,
    )


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED, State.CANCELLED])
def test_a_job_that_has_ended_cannot_be_cancelled(state):
    with pytest.raises(UnlawfulMove, match="cannot become cancelled"):
        cancel(a_job(state), NOON, "not wanted")


@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED])
def test_a_failed_or_cancelled_job_is_tried_anew_with_fresh_budgets(state):
    before = a_job(state, failures=4, deaths=3, attempts=4)
    job = apply(retry_by_hand(before, NOON, "retried by ann"))
    assert (job.state, job.failures, job.deaths, job.attempts) == (State.QUEUED, 0, 0, 4)
    assert (job.run_at, job.error, job.cancel_reason, job.finished_at, job.result) == (NOON, None, None, None, None)
    assert job.lease_no == before.lease_no


@pytest.mark.parametrize("state", [state for state in State if state not in {State.FAILED, State.CANCELLED}])
def test_only_a_failed_or_cancelled_job_can_be_retried_by_hand(state):
    """A held job would overtake the one it waits for, a delayed one would run early."""
    with pytest.raises(UnlawfulMove):
        retry_by_hand(a_job(state), NOON, "retried by ann")


def test_every_claim_raises_the_number_of_the_lease():
    job = a_job(State.QUEUED)
    for number in range(1, 6):
        job = claim(job, f"worker-{number}", NOON, NOON + MINUTE)
        assert (job.lease_no, job.holder, job.lease_until) == (number, f"worker-{number}", NOON + MINUTE)
        job = apply(settle(job, Returned(), THREE, NOON, 0.0))


def test_the_line_of_a_retry_by_hand_keeps_the_time_that_it_was_written_with():
    cancelled = apply(cancel(a_job(State.SCHEDULED), NOON, "by hand"))
    again = apply(retry_by_hand(cancelled, NOON, "retried by hand"))
    line = history_of(again)[-1]
    assert (line.state, line.data["cause"]) == (State.SCHEDULED, "delay")
    later = msgspec.structs.replace(again, run_at=again.run_at + HOUR)
    assert history_of(later)[-1].data == line.data
