"""Under a kit, jobs that last overlap as they do in a worker, and nothing is lost however close the times are."""

from __future__ import annotations

import threading
from datetime import timedelta
from itertools import pairwise

import pytest

from rota import BadOption, current_job, every
from rota.testing import Kit


def test_every_occurrence_of_many_jittered_schedules_ends(app, clock):
    for number in range(300):
        app.schedule(every("12h"), id=f"number-{number}", jitter="5m")(a_task(app, number))
    with Kit(app, clock) as kit:
        start = clock.now
        kit.travel("1d5m")
        assert {job.state for job in kit.jobs} == {"succeeded"}
        rounds = [start + timedelta(hours=hour) for hour in (12, 24)]
        assert all(kit.fired(f"number-{number}") == rounds for number in range(300))
        begun = sorted(job.started_at for job in kit.jobs)
        gaps = [later - earlier for earlier, later in pairwise(begun)]
        assert min(gaps) < timedelta(milliseconds=25)  # or this shows nothing


def a_task(app, number):
    @app.task(name=f"task-{number}")
    def task() -> None: ...

    return task


def test_jobs_due_within_25_ms_of_each_other_all_run_at_their_time(app, clock):
    ran = []

    @app.task
    def job(number: int) -> None:
        ran.append((number, clock.now - start))

    with Kit(app, clock) as kit:
        start = clock.now
        for number in range(3):
            job.using(at=start + timedelta(seconds=1, milliseconds=10 * number)).enqueue(number)
        kit.travel("2s")
        assert ran == [(number, timedelta(seconds=1, milliseconds=10 * number)) for number in range(3)]
        assert {job.state for job in kit.jobs} == {"succeeded"}


def test_two_runs_that_overlap_each_end_at_their_own_time(app, clock):
    ended = []

    @app.task
    def last(minutes: int) -> None:
        begun = clock.now - start
        kit.travel(timedelta(minutes=minutes))
        ended.append((minutes, begun, clock.now - start))

    with Kit(app, clock) as kit:
        start = clock.now
        for minutes in (5, 7, 3):
            last.enqueue(minutes)
        kit.run_due()
        assert [minutes for minutes, *_ in ended] == [3, 5]
        assert [job.state for job in kit.jobs] == ["succeeded", "running", "succeeded"]
        assert [job.args for job in kit.travel("2m")] == [[7]]
    assert ended == [(minutes, timedelta(0), timedelta(minutes=minutes)) for minutes in (3, 5, 7)]


@pytest.mark.parametrize("overlap", ["queue", "cancel", "allow"])
def test_a_task_that_outlasts_its_interval_leaves_later_occurrences_to_the_next_call(app, clock, overlap):
    @app.schedule(every("1m"), id="slow", overlap=overlap)
    def slow() -> None:
        kit.travel("150s")

    with Kit(app, clock) as kit:
        start = clock.now
        clock.travel("1m")
        kit.run_due()
        assert clock.now - start == timedelta(seconds=210)
        assert kit.jobs[0].state == "succeeded"
        kit.travel("20m")
        assert clock.now - start < timedelta(minutes=27)


def test_a_coroutine_beside_another_lets_time_pass_as_well(app, clock):
    ended = []

    @app.task
    async def last(minutes: int) -> None:
        kit.travel(timedelta(minutes=minutes))
        ended.append((minutes, clock.now - start))

    with Kit(app, clock) as kit:
        start = clock.now
        for minutes in (2, 1, 3):
            last.enqueue(minutes)
        kit.travel("5m")
    assert ended == [(minutes, timedelta(minutes=minutes)) for minutes in (1, 2, 3)]


def test_what_fails_beside_another_is_raised_where_it_is_wanted(app, clock):
    @app.task(retries=0)
    def last(*, fails: bool) -> None:
        kit.travel("1m" if fails else "2m")
        if fails:
            raise ConnectionError("down")

    with Kit(app, clock) as kit:
        last.enqueue(fails=False)
        last.enqueue(fails=True)
        kit.travel("5m")
        assert [job.state for job in kit.jobs] == ["succeeded", "failed"]
        assert [failure.text.splitlines()[0] for failure in kit.failures] == ["ConnectionError: down"]
        last.enqueue(fails=False)
        last.enqueue(fails=True)
        with pytest.raises(ConnectionError):
            kit.travel("5m", raise_errors=True)


def test_a_run_that_still_sleeps_when_the_kit_ends_leaves_no_thread(app, clock):
    cleaned_up = []

    @app.task
    def last(minutes: int) -> None:
        try:
            kit.travel(timedelta(minutes=minutes))
        finally:
            cleaned_up.append(minutes)

    with Kit(app, clock) as kit:
        last.enqueue(1)
        last.enqueue(60)
        kit.run_due()
        assert cleaned_up == [1]
        assert [thread.name for thread in threading.enumerate()].count("rota-kit-run") == 1
    assert cleaned_up == [1, 60]
    assert "rota-kit-run" not in [thread.name for thread in threading.enumerate()]


def test_a_job_beside_another_sees_its_own_current_job_and_the_tests_thread_has_the_first(app, clock):
    seen = []

    @app.task
    def last() -> None:
        seen.append((current_job.id, threading.current_thread() is threading.main_thread()))
        kit.travel("1m")
        seen.append((current_job.id, threading.current_thread() is threading.main_thread()))

    with Kit(app, clock) as kit:
        first, second = last.enqueue(), last.enqueue()
        kit.run_due()
    assert seen == [(first.id, True), (second.id, False), (second.id, False), (first.id, True)]


def test_a_schedule_that_a_task_makes_due_fires_at_that_instant(app, clock):
    @app.schedule(every("1h"), id="hourly", catchup="latest")
    def hourly() -> None: ...

    @app.task
    def resume() -> None:
        app.schedules.run_now("hourly")

    with Kit(app, clock) as kit:
        resume.enqueue()
        assert [job.schedule_id for job in kit.run_due()] == [None, "hourly"]


def test_jobs_that_were_made_ahead_and_taken_back_were_never_fired(app, clock):
    @app.schedule(every("1m"), id="ahead", lookahead="1h")
    def ahead() -> None: ...

    with Kit(app, clock) as kit:
        start = clock.now
        kit.travel("3m")
        minutes = [start + timedelta(minutes=minute) for minute in (1, 2, 3)]
        assert kit.fired("ahead")[:3] == minutes
        assert len(kit.fired("ahead")) >= 60  # an hour of them is made ahead
        app.schedules.pause("ahead")
        kit.travel("2h")
        assert kit.fired("ahead") == minutes
        assert [job.occurrence for job in kit.jobs] == minutes
    with Kit(app, clock) as kit, pytest.raises(BadOption):
        kit.fired("nobody's")
