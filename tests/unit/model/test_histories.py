"""Histories: each move is one line, told the same whether it is packed or still in the job's fields."""

from __future__ import annotations

from itertools import pairwise

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.model.jobs.job import MOVES, Move, State, accept, history_of, pack_moves, unpack_moves
from rota.model.jobs.outcome import Failed, RetryAsked, Returned, Snoozed, Stopped, Succeeded, TaskUnknown, Undecodable
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import apply, cancel, claim, promote, release, rescue, retry_by_hand, settle
from rota.model.micros import SECOND, datetime_of
from unit.model.values import HOUR, MINUTE, NOON, a_request

IN_QUEUE = {"queue": "default", "priority": 0}


def words(job):
    return [(line.state.value, line.reason) for line in history_of(job)]


def test_a_job_that_simply_succeeded():
    job = claim(accept(a_request(), NOON), "worker-1", NOON + 1, NOON + MINUTE)
    job = apply(settle(job, Succeeded(), RetryPolicy(), NOON + 2, 0.0))
    assert history_of(job) == [
        Move(State.QUEUED, NOON, "enqueued", IN_QUEUE),
        Move(State.RUNNING, NOON + 1, "claimed", {"worker": "worker-1", "lease": 1}),
        Move(State.SUCCEEDED, NOON + 2, "returned", {"attempts": 1, "seconds": 1e-6}),
    ]


def test_a_job_that_was_simply_enqueued_stores_no_line():
    assert accept(a_request(), NOON).past == b""


def test_a_job_that_failed_once_and_then_succeeded():
    job = claim(accept(a_request(), NOON), "worker-1", NOON + 1, NOON + MINUTE)
    job = apply(settle(job, Failed("Boom: it broke\nTraceback …"), RetryPolicy(), NOON + 2, 0.0))
    retried_at = {"enqueue_at": datetime_of(job.run_at).isoformat().replace("+00:00", "Z"), "cause": "retry"}
    job = claim(promote(job, NOON + HOUR), "worker-2", NOON + HOUR + 1, NOON + 2 * HOUR)
    job = apply(settle(job, Succeeded(), RetryPolicy(), NOON + HOUR + 2, 0.0))
    error = "Boom: it broke\nTraceback …"
    assert history_of(job) == [
        Move(State.QUEUED, NOON, "enqueued", IN_QUEUE),
        Move(State.RUNNING, NOON + 1, "claimed", {"worker": "worker-1", "lease": 1}),
        Move(State.SCHEDULED, NOON + 2, "retry 1 of 3: Boom: it broke", {**retried_at, "error": error}),
        Move(State.QUEUED, NOON + HOUR, "due", IN_QUEUE),
        Move(State.RUNNING, NOON + HOUR + 1, "claimed", {"worker": "worker-2", "lease": 2}),
        Move(State.SUCCEEDED, NOON + HOUR + 2, "returned", {"attempts": 2, "seconds": 1e-6}),
    ]


def test_a_delayed_job_that_was_cancelled():
    job = apply(cancel(accept(a_request(delay=HOUR), NOON), NOON + 1, "not wanted"))
    assert words(job) == [("scheduled", "enqueued"), ("cancelled", "not wanted")]


def test_a_held_job_that_was_released_and_lost_its_worker():
    job = apply(release(accept(a_request(waits_for="another", reason="fired; waits for another"), NOON), NOON + 1))
    job = apply(rescue(claim(job, "worker-1", NOON + 2, NOON + 3), NOON + 4))
    assert words(job) == [
        ("held", "fired; waits for another"),
        ("queued", "released"),
        ("running", "claimed"),
        ("queued", "worker lost: worker-1 stopped renewing its lease (death 1 of 3)"),
    ]


def test_a_job_that_failed_for_good_and_was_retried_by_hand():
    job = claim(accept(a_request(), NOON), "worker-1", NOON + 1, NOON + MINUTE)
    job = apply(settle(job, Failed("Boom: it broke\nTraceback …"), RetryPolicy(retries=0), NOON + 2, 0.0))
    job = apply(retry_by_hand(job, NOON + 3, "retried by ann"))
    assert words(job) == [
        ("queued", "enqueued"),
        ("running", "claimed"),
        ("failed", "Boom: it broke"),
        ("queued", "retried by ann"),
    ]


OUTCOMES = [
    Succeeded(b"1"),
    Failed("Boom: it broke\nTraceback …"),
    Failed("Boom", may_retry=False),
    RetryAsked(SECOND, "Retry: busy"),
    Snoozed(HOUR, "closed"),
    Stopped("not wanted"),
    TaskUnknown(),
    Undecodable("BadPayload: cut short"),
    Returned(),
]


def moved(job, draw, now):
    """One lawful step of a job, whichever its state allows."""
    match job.state:
        case State.SCHEDULED:
            return draw(st.sampled_from([promote(job, now), apply(cancel(job, now, "not wanted"))]))
        case State.HELD:
            return draw(st.sampled_from([apply(release(job, now)), apply(cancel(job, now, "not wanted"))]))
        case State.QUEUED:
            choices = [claim(job, "worker-1", now, now + MINUTE), apply(cancel(job, now, "not wanted"))]
            return draw(st.sampled_from(choices))
        case State.RUNNING:
            outcome = draw(st.sampled_from([None, *OUTCOMES]))
            change = rescue(job, now) if outcome is None else settle(job, outcome, RetryPolicy(), now, 0.5)
            return apply(change)
        case State.FAILED | State.CANCELLED:
            return apply(retry_by_hand(job, now, "retried by ann"))
        case _:
            return None


@given(st.data())
def test_every_move_is_one_line_and_every_history_is_a_path_of_the_table(data):
    start = data.draw(st.sampled_from([{}, {"delay": HOUR}, {"waits_for": "another"}, {"reason": "fired"}]))
    job = accept(a_request(**start), NOON)
    states, now = [job.state], NOON
    for _ in range(data.draw(st.integers(0, 25))):
        now += data.draw(st.integers(0, HOUR))
        if job.state is State.SCHEDULED:
            now = max(now, job.run_at)
        after = moved(job, data.draw, now)
        if after is None:
            break
        job = after
        states.append(job.state)
        lines = history_of(job)
        assert [line.state for line in lines] == states
        assert lines[-1].at == now
    lines = history_of(job)
    assert all(line.reason for line in lines)
    assert all(after.state in MOVES[before.state] for before, after in pairwise(lines))
    assert [line.at for line in lines] == sorted(line.at for line in lines)


lines_of_text = st.builds(
    Move,
    st.sampled_from(State),
    st.integers(0, 2**53),
    st.text(max_size=50),
    st.none() | st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers(-(2**53), 2**53)),
)


@settings(max_examples=40)
@given(st.lists(lines_of_text, max_size=10))
def test_packed_lines_are_unpacked_the_same(moves):
    assert unpack_moves(pack_moves(moves)) == moves


def test_old_lines_stay_readable():
    """Lines as they are kept in stores today; a change of the format must go on reading them."""
    packed = b'[["queued",1,"enqueued",null],["running",2,"claimed",{"worker":"w","lease":1}]]'
    assert unpack_moves(packed) == [
        Move(State.QUEUED, 1, "enqueued"),
        Move(State.RUNNING, 2, "claimed", {"worker": "w", "lease": 1}),
    ]


def test_a_history_survives_a_journey_as_json():
    job = promote(accept(a_request(delay=HOUR), NOON), NOON + HOUR)
    again = msgspec.json.decode(msgspec.json.encode(job), type=type(job))
    assert history_of(again) == history_of(job)


def test_no_line_is_earlier_than_the_one_before_it_though_its_writer_began_earlier():
    job = claim(promote(accept(a_request(delay=20), NOON), NOON + 20), "worker-1", NOON + 15, NOON + MINUTE)
    failed = apply(settle(job, RetryAsked(2, "busy"), RetryPolicy(), NOON + 16, 0.0))
    again = claim(promote(failed, NOON + 22), "worker-1", NOON + 17, NOON + MINUTE)
    ended = apply(settle(again, Succeeded(), RetryPolicy(), NOON + 23, 0.0))
    assert [line.at - NOON for line in history_of(ended)] == [0, 20, 20, 20, 22, 22, 23]


def test_what_is_claimed_ahead_of_its_time_is_queued_and_started_at_its_time():
    job = claim(promote(accept(a_request(delay=20), NOON), NOON + 15), "worker-1", NOON + 15, NOON + MINUTE)
    assert (job.queued_at, job.started_at) == (NOON + 20, NOON + 20)
    given = apply(settle(job, Returned(), RetryPolicy(), NOON + 17, 0.0))
    dropped = apply(cancel(given, NOON + 18, "not wanted"))
    assert [line.at - NOON for line in history_of(dropped)] == [0, 20, 20, 20, 20]
