"""Under a kit, schedules fire and retries run at their own times, however far the test travels."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rota import BadOption, Cancel, Retry, Snooze, backoff, cron, current_job, every, once
from rota.testing import Kit, ManualClock

NEW_YORK = ZoneInfo("America/New_York")


def nines(year: int) -> list[datetime]:
    """Nine o'clock in New York, every day of a year."""
    first = datetime(year, 1, 1, 9, tzinfo=NEW_YORK)
    days = (first + timedelta(days=number) for number in range(366))
    return [day.astimezone(UTC) for day in days if day.year == year]


@pytest.mark.parametrize(("year", "days"), [(2026, 365), (2028, 366)])
def test_a_daily_job_fires_once_a_day_for_a_year_across_both_clock_changes(app, year, days):
    ran = []

    @app.schedule(cron("0 9 * * *"), id="daily")
    def daily() -> None:
        ran.append((clock.now, current_job.occurrence))

    clock = ManualClock(datetime(year, 1, 1, tzinfo=NEW_YORK))
    began = time.thread_time()
    with Kit(app, clock) as kit:
        done = kit.travel_to(datetime(year + 1, 1, 1, tzinfo=NEW_YORK))
        assert time.thread_time() - began < 1.0  # measured: 0.05 s
        assert kit.fired("daily") == nines(year)
    assert ran == [(nine, nine) for nine in nines(year)]
    assert len(done) == days
    assert {job.state for job in done} == {"succeeded"}
    assert clock.now == datetime(year + 1, 1, 1, tzinfo=NEW_YORK)


def test_retries_run_when_their_back_off_is_over_and_not_before(app, clock):
    ran = []

    @app.task(retries=3, backoff=backoff("10s", factor=3))
    def shaky() -> None:
        ran.append(clock.now)
        raise ConnectionError("down")

    with Kit(app, clock) as kit:
        start = clock.now
        job = shaky.enqueue()
        assert kit.run_due() == []
        assert job.refresh().state == "scheduled"
        kit.travel("9s")
        assert len(ran) == 1
        (ended,) = kit.travel("1h")
        assert ended == job
        assert ended.state == "failed"
        assert [at - start for at in ran] == [timedelta(seconds=s) for s in (0, 10, 40, 130)]
        assert [failure.attempt for failure in kit.failures] == [1, 2, 3, 4]
        assert [failure.at for failure in kit.failures] == ran
        assert all(isinstance(failure.error, ConnectionError) for failure in kit.failures)
        assert kit.failures[0].text.startswith("ConnectionError: down\n")


def test_delays_snoozes_and_asked_for_retries_keep_their_times(app, clock):
    ran = []

    @app.task
    def fussy() -> None:
        ran.append(clock.now)
        if len(ran) == 1:
            raise Snooze(after="1h")
        if len(ran) == 2:
            raise Retry(after="5m")

    with Kit(app, clock) as kit:
        start = clock.now
        fussy.using(delay="1d").enqueue()
        assert kit.run_due() == []
        assert [job.state for job in kit.travel("2d")] == ["succeeded"]
        assert [at - start for at in ran] == [timedelta(days=1, minutes=minutes) for minutes in (0, 60, 65)]
        assert kit.failures == []


def test_what_is_due_at_the_end_of_a_journey_has_run(app, clock):
    @app.schedule(every("1h"), id="hourly")
    def hourly() -> None: ...

    with Kit(app, clock) as kit:
        assert kit.travel(timedelta(minutes=59)) == []
        assert len(kit.travel("1m")) == 1
        assert kit.travel_to(clock.now) == []


def test_run_next_fires_and_runs_one_job_at_a_time(app, clock):
    @app.task
    def low() -> None: ...

    @app.task(priority=10, queue="mail", keep=False)
    def high() -> None: ...

    @app.schedule(once(clock.now + timedelta(seconds=1)), id="soon")
    def soon() -> None: ...

    with Kit(app, clock) as kit:
        low.enqueue()
        high.enqueue()
        clock.travel("1s")
        ran = [kit.run_next(), kit.run_next(), kit.run_next()]
        assert [(job.task.rpartition(".")[2], job.state) for job in ran] == [
            ("high", "succeeded"),
            ("low", "succeeded"),
            ("soon", "succeeded"),
        ]
        assert kit.run_next() is None


def test_jobs_that_jobs_enqueue_run_as_well(app, clock):
    @app.task
    def count_down(left: int) -> int:
        if left:
            count_down.enqueue(left - 1)
        return left

    with Kit(app, clock) as kit:
        count_down.enqueue(3)
        assert [job.result() for job in kit.run_due()] == [3, 2, 1, 0]


def test_missed_occurrences_are_caught_up_by_their_policy(app, clock):
    @app.schedule(every("1h"), id="latest")
    def latest() -> None: ...

    @app.schedule(every("1h"), id="all", catchup="all", overlap="allow")
    def every_one() -> None: ...

    @app.schedule(every("1h"), id="none", catchup="skip")
    def none() -> None: ...

    with Kit(app, clock) as kit:
        start = clock.now
        clock.travel("5h30m")  # nothing runs meanwhile
        kit.run_due()
        hours = [start + timedelta(hours=hour) for hour in range(1, 6)]
        assert kit.fired("latest") == hours[-1:]
        assert kit.fired("all") == hours
        assert kit.fired("none") == []
        outcomes = app.schedules.occurrences("latest", start, clock.now).items
        assert [(line.outcome, line.count) for line in outcomes] == [("coalesced", 4), ("succeeded", 1)]


def test_an_occurrence_is_skipped_while_the_one_before_waits_for_its_retry(app, clock):
    @app.schedule(every("1h"), id="hourly")
    @app.task(retries=1, backoff=backoff("150m", longest="150m"))
    def hourly() -> None:
        if current_job.attempt == 1:
            raise OSError("full")

    with Kit(app, clock) as kit:
        start = clock.now
        kit.travel("3h30m")
        assert kit.fired("hourly") == [start + timedelta(hours=1)]
        lines = app.schedules.occurrences("hourly", start, clock.now).items
        assert [(line.outcome, line.reason, line.count) for line in lines] == [
            ("succeeded", "", 1),
            ("skipped", f"overlap (job {lines[0].job_id})", 2),
        ]


def test_a_task_that_travels_takes_that_long_and_the_occurrences_meanwhile_are_skipped(app, clock):
    @app.schedule(every("1h"), id="slow")
    def slow() -> None:
        kit.travel("2h30m")

    with Kit(app, clock) as kit:
        start = clock.now
        kit.travel("9h30m")
        assert kit.fired("slow") == [start + timedelta(hours=hour) for hour in (1, 4, 7)]
        assert {job.state for job in kit.jobs} == {"succeeded"}  # its lease was kept all the while


def test_a_running_job_hears_that_the_next_occurrence_replaces_it(app, clock):
    @app.schedule(every("1h"), id="slow", overlap="cancel", max_runs=3)
    def slow() -> None:
        for _ in range(4):
            kit.travel("30m")
            if current_job.cancelled:
                raise Cancel("replaced")

    with Kit(app, clock) as kit:
        kit.travel("9h")
        assert [job.state for job in kit.jobs] == ["cancelled", "cancelled", "succeeded"]


def test_a_task_that_takes_longer_than_its_timeout_fails(app, clock):
    @app.task(timeout="1m", retries=0)
    def slow(how: str) -> None:
        (kit.travel if how == "kit" else clock.travel)("2m")

    with Kit(app, clock) as kit:
        slow.enqueue("kit")
        slow.enqueue("clock")
        assert [job.state for job in kit.run_due()] == ["failed", "failed"]
        assert ["TimeoutError" in failure.text for failure in kit.failures] == [True, True]


def test_asking_for_a_schedule_that_nobody_knows_is_an_error(app, clock):
    @app.schedule(every("1h"), id="known")
    def task() -> None: ...

    with Kit(app, clock) as kit, pytest.raises(BadOption, match="no schedule has the id 'unknown'; known are known"):
        kit.fired("unknown")
