"""Occurrences: the line of each expected time, and how lines are folded into ranges when their jobs go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.model.jobs.job import State, accept
from rota.model.jobs.outcome import Failed, Stopped, Succeeded
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import apply, cancel, settle
from rota.model.micros import SECOND
from rota.model.schedules.firing import plan
from rota.model.schedules.occurrence import Occurrence, fold, noted, of_job, of_skip
from rota.model.schedules.schedule import LastRun
from rota.model.schedules.slots import Skip
from unit.model.values import MINUTE, NOON, a_job, a_schedule, some_id


def a_line(after, through, outcome="succeeded", reason="", **fields):
    return Occurrence(
        schedule_id="nightly", after_at=after, through_at=through, outcome=outcome, reason=reason, **fields
    )


def test_a_line_joins_the_range_that_it_follows_without_a_break():
    before = a_line(0, 10, count=3)
    assert fold(a_line(10, 20, job_id="job-1"), before) == (a_line(0, 20, count=4), [before])


def test_a_line_joins_the_ranges_on_both_sides():
    before, after = a_line(0, 10, count=3), a_line(20, 50, count=2)
    assert fold(a_line(10, 20), before, after) == (a_line(0, 50, count=6), [before, after])


@pytest.mark.parametrize(
    "other",
    [
        a_line(0, 9),
        a_line(21, 30),
        a_line(0, 10, outcome="failed"),
        a_line(20, 30, outcome="failed"),
        a_line(0, 10, reason="other"),
    ],
)
def test_a_line_stays_alone_after_a_break_or_another_outcome(other):
    assert fold(a_line(10, 20, job_id="job-1"), other) == (a_line(10, 20), [])


def test_a_folded_line_names_no_job():
    assert fold(a_line(10, 20, job_id="job-1"))[0].job_id is None


outcomes = st.sampled_from([("succeeded", ""), ("failed", ""), ("skipped", "overlap"), ("coalesced", "catch-up")])
runs = st.lists(
    st.tuples(outcomes, st.integers(1, 5), st.booleans()),  # outcome, count, whether the line before is missing
    max_size=30,
)


def lines_of(runs):
    lines, at = [], 0
    for (outcome, reason), number, is_broken in runs:
        at += 10 * is_broken
        lines.append(a_line(at, at + 10, outcome, reason, count=number))
        at += 10
    return lines


def ranges_of(lines):
    """One range for each unbroken run of one outcome, found by walking the lines once."""
    ranges: list[Occurrence] = []
    for line in lines:
        last = ranges[-1] if ranges else None
        if last and (last.outcome, last.reason, last.through_at) == (line.outcome, line.reason, line.after_at):
            ranges[-1] = a_line(
                last.after_at, line.through_at, line.outcome, line.reason, count=last.count + line.count
            )
        else:
            ranges.append(line)
    return ranges


@given(runs, st.randoms(use_true_random=False))
def test_folding_in_any_order_gives_one_range_for_each_unbroken_run_of_one_outcome(runs, random):
    lines = lines_of(runs)
    shuffled = random.sample(lines, len(lines))
    for order in (lines, lines[::-1], shuffled):
        kept: list[Occurrence] = []
        for line in order:
            joined, replaced = fold(line, *kept)
            kept = [*(other for other in kept if other not in replaced), joined]
        assert sorted(kept, key=lambda line: line.through_at) == ranges_of(lines)


def test_a_job_is_the_line_of_its_occurrence():
    schedule = a_schedule("every 10m")
    (shot,) = plan(schedule, NOON + 10 * MINUTE, some_id).shots
    job = accept(shot.job, NOON + 10 * MINUTE)
    assert of_job(job) == a_line(NOON, NOON + 10 * MINUTE, "queued", job_id=job.id)
    ended = apply(cancel(job, NOON + 11 * MINUTE, "paused by ann"))
    assert (of_job(ended).outcome, of_job(ended).reason) == ("cancelled", "paused by ann")


def test_a_job_that_no_trigger_made_has_no_line():
    with pytest.raises(ValueError, match="is no occurrence"):
        of_job(a_job())


def test_a_skip_is_a_line():
    skip = Skip(after_at=1, through_at=9, count=4, outcome="skipped", reason="overlap")
    assert of_skip("nightly", skip) == a_line(1, 9, "skipped", "overlap", count=4)


# What a schedule knows of its last run.


def test_a_success_is_noted_and_clears_the_error():
    before = LastRun(error="Boom", status="failed", success_at=1, enqueued_at=5)
    change = settle(a_job(), Succeeded(), RetryPolicy(), NOON, 0.0)
    assert noted(before, change) == LastRun(
        enqueued_at=5,
        finished_at=NOON,
        status="succeeded",
        success_at=NOON,
        duration=10 * SECOND,
        error=None,
        job_id=change.id,
    )


def test_a_failure_is_noted_and_the_last_success_stays():
    before = LastRun(status="succeeded", success_at=1)
    last = noted(before, settle(a_job(), Failed("Boom"), RetryPolicy(retries=0), NOON, 0.0))
    assert (last.status, last.error, last.success_at, last.finished_at) == ("failed", "Boom", 1, NOON)


def test_a_cancellation_is_noted_with_its_reason():
    last = noted(LastRun(success_at=1), settle(a_job(), Stopped("not wanted"), RetryPolicy(), NOON, 0.0))
    assert (last.status, last.error, last.success_at) == ("cancelled", "not wanted", 1)


def test_a_job_that_never_started_has_no_duration():
    assert noted(LastRun(), cancel(a_job(State.QUEUED), NOON, "not wanted")).duration is None
