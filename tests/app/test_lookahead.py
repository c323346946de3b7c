"""lookahead= through the API: runs are made ahead of time, so that they happen with no scheduler alive."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.steps import NOON, fire, work
from rota import every
from rota.inspector.occurrences import coming_runs
from rota.model.micros import SECOND

HOUR = 3600


@pytest.fixture
def ran():
    return []


@pytest.fixture
def tick(app, ran):
    @app.task(name="shop.tick")
    def tick(n: int = 0) -> None:
        ran.append(n)

    return tick


@pytest.fixture
def ahead(app, tick, clock):
    """A schedule that runs every two hours; its runs at 2 and 4 hours after noon are made at noon."""
    assert clock.time == NOON
    app.schedules.put("ahead", tick.job(1), every("2h"), lookahead="5h")
    fire(app)
    return "ahead"


def hours(moments) -> list[float]:
    return [(moment.timestamp() - NOON / SECOND) / HOUR for moment in moments]


def waiting(app) -> list[float]:
    jobs = app.jobs.list().items
    return sorted((job.record.fire_at - NOON) / SECOND / HOUR for job in jobs if job.state == "scheduled")


@pytest.mark.usefixtures("ahead")
def test_they_run_with_no_scheduler_alive(app, clock, ran):
    assert waiting(app) == [2, 4]
    clock.skip(2 * HOUR - 1)
    work(app)
    assert ran == []
    clock.skip(1)
    work(app)
    assert ran == [1]
    clock.skip(2 * HOUR)
    work(app)
    assert ran == [1, 1]


@pytest.mark.usefixtures("ahead")
def test_the_next_ones_are_made_once_as_time_passes(app, clock):
    for _ in range(3):
        fire(app)
    assert waiting(app) == [2, 4]
    clock.skip(HOUR + 1)
    fire(app)
    fire(app)
    assert waiting(app) == [2, 4, 6]


@pytest.mark.parametrize("verb", ["pause", "disable", "remove"])
def test_stopping_unmakes_them(app, ahead, clock, ran, verb):
    getattr(app.schedules, verb)(ahead)
    assert app.jobs.list().items == []
    clock.skip(5 * HOUR)
    work(app)
    assert ran == []


def test_after_a_pause_they_are_made_anew_and_what_fell_into_it_is_skipped(app, ahead, clock, ran):
    app.schedules.pause(ahead)
    clock.skip(2.5 * HOUR)
    app.schedules.resume(ahead)
    fire(app)
    assert waiting(app) == [4, 6]
    clock.skip(1.5 * HOUR)
    work(app)
    assert ran == [1]
    page = app.schedules.occurrences(ahead, datetime.fromtimestamp(0, UTC), clock.now + timedelta(seconds=1))
    assert [line.outcome for line in page.items] == ["skipped", "succeeded"]


def test_an_edit_of_the_times_unmakes_them_and_one_of_the_call_does_not(app, ahead, tick, clock):
    app.schedules.put(ahead, tick.job(2), every("2h"), lookahead="5h")
    assert waiting(app) == [2, 4]
    app.schedules.put(ahead, tick.job(2), every("3h"), lookahead="5h")
    assert waiting(app) == []
    fire(app)
    assert waiting(app) == [3]
    assert clock.time == NOON


@pytest.mark.parametrize(("overlap", "runs"), [("skip", 1), ("allow", 2), ("queue", 2)])
def test_an_overlap_is_judged_when_they_are_due(app, tick, clock, ran, overlap, runs):
    app.schedules.put("ahead", tick.job(1), every("2h"), lookahead="5h", overlap=overlap, grace="5h")
    fire(app)
    clock.skip(4.5 * HOUR)  # no worker was there: both are due
    work(app)
    assert len(ran) == runs


@pytest.mark.parametrize(
    ("catchup", "runs", "outcome"), [("skip", 0, "skipped: catch-up: not claimed in time"), ("latest", 1, "coalesced")]
)
def test_catch_up_decides_about_those_that_no_worker_claimed_in_time(app, tick, clock, ran, catchup, runs, outcome):
    app.schedules.put("ahead", tick.job(1), every("2h"), lookahead="5h", catchup=catchup)
    fire(app)
    first = clock.now + timedelta(hours=2)
    clock.skip(4.5 * HOUR)
    work(app)
    assert len(ran) == runs
    verdict = app.schedules.why("ahead", first)
    assert verdict.outcome == outcome
    assert "no worker claimed the schedule's jobs in time" in verdict.sentence


def test_what_is_made_is_still_to_come(app, ahead, clock):
    assert hours(app.schedules.next_runs(ahead, 4)) == [2, 4, 6, 8]
    (coming,) = coming_runs([app.schedules.get(ahead).record], NOON, NOON + 7 * HOUR * SECOND, 10)
    assert (hours(coming.runs), coming.count) == ([2, 4, 6], 3)
    clock.skip(3 * HOUR)
    assert hours(app.schedules.next_runs(ahead, 2)) == [4, 6]


def test_why_tells_of_what_is_made(app, ahead, clock):
    at = clock.now + timedelta(hours=2)
    assert app.schedules.why(ahead, at).outcome == "waiting"
    assert app.schedules.why(ahead, clock.now + timedelta(hours=8)).outcome == "expected"
    clock.skip(2 * HOUR)
    work(app)
    assert app.schedules.why(ahead, at).outcome == "fired"


def test_max_runs_counts_what_is_made(app, tick, clock, ran):
    app.schedules.put("ahead", tick.job(1), every("2h"), lookahead="12h", max_runs=3)
    fire(app)
    assert waiting(app) == [2, 4, 6]
    clock.skip(20 * HOUR)
    fire(app)
    assert waiting(app) == [2, 4, 6]
    assert ran == []


def declare(app, *names):
    for name in names:

        @app.schedule(every("1h"), id=name)
        @app.task(name=f"shop.{name}")
        def run() -> None: ...


def test_what_a_newer_version_no_longer_declares_is_retired_at_its_start(make_app):
    old, new = make_app(version="1"), make_app(version="2")
    declare(old, "kept", "gone")
    declare(new, "kept")
    old.schedules.sync()
    new.schedules.sync()
    assert [new.schedules.get(name).is_enabled for name in ("kept", "gone")] == [True, False]
    assert new.schedules.changes("gone").items[0].verb == "retired"
    old.schedules.sync()  # an older one that starts late brings nothing back
    assert not old.schedules.get("gone").is_enabled


@pytest.mark.parametrize("versions", [("1", "1"), ("2", "1"), ("", ""), ("1", ""), ("a", "b")], ids=str)
def test_an_equal_older_or_unnumbered_version_retires_nothing(make_app, versions):
    first, second = (make_app(version=version) for version in versions)
    declare(first, "kept", "gone")
    declare(second, "kept")
    first.schedules.sync()
    second.schedules.sync()
    assert second.schedules.get("gone").is_enabled
