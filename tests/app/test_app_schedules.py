"""app.schedules: schedules that are made, changed, stopped and looked at while things run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.steps import NOON, fire, work
from rota import (
    BadOption,
    BadTrigger,
    DuplicateName,
    NaiveDatetime,
    ScheduleNotFound,
    VersionConflict,
    calendar,
    cron,
    every,
    once,
)
from rota.model.micros import SECOND, micros_of
from rota.model.schedules.edit import Edit
from rota.model.schedules.schedule import Schedule, ScheduleSpec


@pytest.fixture
def tick(app):
    @app.task(name="shop.tick")
    def tick(n: int = 0) -> int:
        return n

    return tick


@pytest.fixture
def soon(app, tick, clock):
    """A schedule that runs every ten seconds, made at noon."""
    assert clock.time == NOON
    return app.schedules.put("soon", tick.job(7), every("10s"))


def seconds(app, name: str = "soon", n: int = 5, **options) -> list[float]:
    """The next runs, in seconds after noon."""
    return [run.timestamp() - NOON / SECOND for run in app.schedules.next_runs(name, n, **options)]


def add_broken(app) -> None:
    broken = Schedule(
        id="broken",
        spec=ScheduleSpec(trigger="cron 99 * * * *", task="shop.tick"),
        created_at=NOON,
        updated_at=NOON,
        fired_through=NOON,
        next_at=NOON,
    )
    assert app.open().edit_schedules([Edit(after=broken, expect_version=0)]) == []


def test_a_schedule_is_kept_as_it_was_put(app, tick, clock):
    made = app.schedules.put(
        "report",
        tick.using(priority=5).job(3),
        cron("0 9 * * mon-fri", tz="America/New_York"),
        description="The morning report",
        queue="mail",
        overlap="queue",
        catchup="all",
    )
    found = app.schedules.get("report")
    assert (found.id, found.task, found.tz, found.description) == (
        "report",
        "shop.tick",
        "America/New_York",
        "The morning report",
    )
    assert (found.record.spec.queue, found.record.spec.priority) == ("mail", 5)
    assert (found.is_enabled, found.is_paused, found.problem, found.run_count) == (True, False, None, 0)
    assert (found.last_run, found.last_status, found.last_success, found.last_error) == (None, None, None, None)
    assert (found.created_at, found.version, found.origin) == (clock.now, 1, "the API")
    assert found.record == made.record
    assert "New_York" in found.explain()
    assert repr(found).startswith("<schedule report: ")


def test_the_next_run_is_shown_in_the_zone_of_the_schedule(app, tick):
    made = app.schedules.put("report", tick.job(), cron("0 9 * * *", tz="America/New_York"))
    assert (made.next_run.hour, made.next_run.tzinfo) == (9, ZoneInfo("America/New_York"))
    assert app.schedules.next_runs("report", 1) == [made.next_run]


def test_a_schedule_fires_and_what_became_of_it_is_known(app, soon, clock):
    assert soon.next_run == clock.now + timedelta(seconds=10)
    clock.skip(10)
    fire(app)
    fired = clock.now
    (job,) = app.jobs.list(schedule="soon").items
    assert (job.args, job.schedule_id, job.occurrence) == ([7], "soon", fired)
    clock.skip(2)
    work(app)
    found = app.schedules.get("soon")
    assert (found.run_count, found.last_run, found.last_status, found.last_error) == (1, fired, "succeeded", None)
    assert found.last_success == found.last_finished >= fired
    assert found.last_duration >= 0
    assert found.next_run == fired + timedelta(seconds=10)


def test_a_failure_is_noted_and_cleared_by_the_next_success(app, clock):
    answers = [ValueError("no stamp"), None]

    @app.task(retries=0)
    def flaky() -> None:
        if (answer := answers.pop(0)) is not None:
            raise answer

    app.schedules.put("flaky", flaky.job(), every("10s"))
    clock.skip(10)
    fire(app)
    work(app)
    failed = app.schedules.get("flaky")
    assert (failed.last_status, failed.last_success) == ("failed", None)
    assert failed.last_error.startswith("ValueError: no stamp")
    clock.skip(10)
    fire(app)
    work(app)
    fine = app.schedules.get("flaky")
    assert (fine.last_status, fine.last_error, fine.last_success) == ("succeeded", None, fine.last_finished)


def test_putting_the_same_again_changes_nothing(app, soon, tick, clock):
    clock.skip(3)
    again = app.schedules.put("soon", tick.job(7), every("10s"))
    assert again.record == soon.record


def test_new_times_are_counted_from_now_and_the_past_is_kept(app, soon, tick, clock):
    clock.skip(10)
    fire(app)
    work(app)
    clock.skip(3)
    changed = app.schedules.put("soon", tick.job(7), every("1h"))
    assert changed.version > soon.version
    assert changed.next_run > clock.now + timedelta(minutes=50)
    assert (changed.run_count, changed.created_at, changed.last_status) == (1, soon.created_at, "succeeded")


def test_other_arguments_leave_the_times_alone(app, soon, tick, clock):
    clock.skip(3)
    changed = app.schedules.put("soon", tick.job(8), every("10s"))
    assert changed.next_run == soon.next_run
    clock.skip(7)
    fire(app)
    assert app.jobs.list().items[0].args == [8]


def test_many_schedules_are_put_at_once(app, tick):
    items = [(f"s-{number:04}", tick.job(number), every("1h")) for number in range(1200)]
    assert app.schedules.put_many(items, description="one of many") == 1200
    assert app.schedules.put_many(items, description="one of many") == 0
    assert app.schedules.put_many(items[:3]) == 3
    assert app.schedules.get("s-1199").description == "one of many"


def test_one_id_twice_in_a_list_is_refused_and_nothing_is_changed(app, tick):
    with pytest.raises(DuplicateName, match="schedule 'a' is given more than once"):
        app.schedules.put_many([("a", tick.job(1), every("1h")), ("a", tick.job(2), every("2h"))])
    assert app.schedules.list().items == []


def test_schedules_are_listed_by_id_a_page_at_a_time(app, tick):
    app.schedules.put_many([(f"s-{number}", tick.job(), every("1h")) for number in (3, 1, 5, 2, 4)])
    page = app.schedules.list(limit=2)
    rest = app.schedules.list(limit=200, cursor=page.cursor)
    assert [view.id for view in (*page.items, *rest.items)] == ["s-1", "s-2", "s-3", "s-4", "s-5"]
    assert rest.cursor is None


@pytest.mark.parametrize("verb", ["get", "pause", "resume", "enable", "disable", "run_now", "next_runs"])
def test_a_schedule_that_does_not_exist_is_told(app, verb):
    with pytest.raises(ScheduleNotFound, match="no schedule has the id 'nothing'"):
        getattr(app.schedules, verb)("nothing")


def test_a_removed_schedule_is_gone_with_what_it_had_waiting(app, soon, clock):
    assert soon.id == "soon"
    clock.skip(10)
    fire(app)
    assert app.schedules.remove("soon") is True
    assert app.schedules.remove("soon") is False
    (job,) = app.jobs.list().items
    assert (job.state, job.record.cancel_reason) == ("cancelled", "schedule removed")
    clock.skip(100)
    fire(app)
    assert len(app.jobs.list().items) == 1


def test_a_removed_schedule_that_is_made_anew_begins_anew(app, soon, tick, clock):
    clock.skip(10)
    fire(app)
    work(app)
    app.schedules.remove("soon")
    anew = app.schedules.put("soon", tick.job(), every("10s"))
    assert (anew.run_count, anew.last_status, anew.created_at) == (0, None, clock.now)
    assert soon.created_at < anew.created_at


# Pausing, disabling, running by hand.


def test_a_pause_keeps_who_and_why_and_revokes_what_waits(app, soon, clock):
    assert soon.pause_reason is None
    clock.skip(10)
    fire(app)
    paused = app.schedules.pause("soon", reason="month end", by="ann")
    assert (paused.is_paused, paused.pause_reason, paused.next_run) == (True, "paused by ann: month end", None)
    (job,) = app.jobs.list().items
    assert (job.state, job.record.cancel_reason) == ("cancelled", "paused by ann: month end")
    clock.skip(60)
    fire(app)
    assert len(app.jobs.list().items) == 1
    assert seconds(app) == []


def test_a_resumed_schedule_goes_on_from_now_and_the_ledger_has_what_fell_into_the_pause(app, soon, clock):
    assert soon.id == "soon"
    app.schedules.pause("soon", reason="month end", by="ann")
    clock.skip(35)
    resumed = app.schedules.resume("soon")
    assert (resumed.is_paused, resumed.next_run.timestamp()) == (False, NOON / SECOND + 40)
    (line,) = app.schedules.occurrences("soon", clock.now - timedelta(hours=1), clock.now).items
    assert (line.outcome, line.count, line.reason) == ("skipped", 3, "paused by ann: month end")
    assert app.schedules.resume("soon").version == resumed.version


def test_a_pause_with_an_end_ends_by_itself(app, soon, clock):
    assert soon.id == "soon"
    app.schedules.pause("soon", until=clock.now + timedelta(seconds=35))
    assert seconds(app, n=2) == [40, 50]
    clock.skip(34)
    fire(app)
    assert app.schedules.get("soon").is_paused
    clock.skip(6)
    fire(app)
    assert not app.schedules.get("soon").is_paused
    assert [job.occurrence.timestamp() - NOON / SECOND for job in app.jobs.list().items] == [40]


def test_a_disabled_schedule_is_still_there_and_fires_nothing(app, soon, clock):
    assert soon.is_enabled
    disabled = app.schedules.disable("soon")
    assert (disabled.is_enabled, disabled.next_run) == (False, None)
    assert app.schedules.disable("soon").version == disabled.version
    clock.skip(35)
    fire(app)
    assert app.jobs.list().items == []
    assert seconds(app) == []
    enabled = app.schedules.enable("soon")
    assert (enabled.is_enabled, seconds(app, n=1)) == (True, [40])
    assert app.schedules.enable("soon").version == enabled.version


def test_a_schedule_may_be_put_disabled(app, tick, clock):
    app.schedules.put("later", tick.job(), every("10s"), enabled=False)
    clock.skip(60)
    fire(app)
    assert app.jobs.list().items == []


@pytest.mark.parametrize("stop", ["pause", "disable", "none"])
def test_a_run_by_hand_comes_at_once_whatever_the_schedule_does(app, soon, clock, stop):
    assert soon.id == "soon"
    if stop != "none":
        getattr(app.schedules, stop)("soon")
    before = app.schedules.get("soon")
    job = app.schedules.run_now("soon", by="ann")
    other = app.schedules.run_now("soon")
    assert job != other
    assert (job.schedule_id, job.occurrence, job.args) == ("soon", None, [7])
    work(app)
    assert (job.refresh().state, job.result()) == ("succeeded", 7)
    assert "run now by ann" in app.jobs.history(job.id)[0].reason
    after = app.schedules.get("soon")
    assert (after.next_run, after.run_count, after.record.run_count) == (before.next_run, 2, 0)
    assert micros_of(after.last_run) == NOON <= micros_of(after.last_success)
    assert clock.time == NOON


def test_a_run_by_hand_is_never_revoked(app, soon):
    job = app.schedules.run_now("soon")
    app.schedules.pause(soon.id)
    assert job.refresh().state == "queued"


# Looking ahead and back.


def test_the_next_runs_end_with_max_runs(app, tick, clock):
    app.schedules.put("soon", tick.job(), every("10s"), max_runs=3)
    assert seconds(app, n=10) == [10, 20, 30]
    clock.skip(10)
    fire(app)
    work(app)
    assert seconds(app, n=10) == [20, 30]
    for _ in range(5):
        clock.skip(10)
        fire(app)
        work(app)
    assert seconds(app, n=10) == []
    assert (app.schedules.get("soon").run_count, app.schedules.get("soon").next_run) == (3, None)


def test_the_next_runs_may_be_asked_from_any_instant(app, soon, clock):
    assert seconds(app, n=3) == [10, 20, 30]
    assert seconds(app, n=2, after=clock.now + timedelta(seconds=35)) == [40, 50]
    assert seconds(app, n=1, after=clock.now - timedelta(days=1)) == [10]
    assert app.schedules.next_runs(soon.id, 0) == []
    with pytest.raises(NaiveDatetime):
        app.schedules.next_runs("soon", after=datetime(2026, 1, 1))


def test_the_next_runs_keep_to_start_and_end(app, tick, clock):
    start, end = clock.now + timedelta(seconds=60), clock.now + timedelta(seconds=80)
    app.schedules.put("soon", tick.job(), every("10s"), start=start, end=end)
    assert seconds(app, n=10) == [60, 70, 80]
    clock.skip(3600)
    fire(app)
    assert [job.occurrence for job in app.jobs.list().items] == [end]
    assert app.schedules.get("soon").next_run is None


def test_monthly_runs_stay_on_their_anchor_through_edits_and_pauses(app, tick, clock):
    clock.time = int(datetime(2026, 1, 15, tzinfo=UTC).timestamp()) * SECOND
    monthly = calendar(months=1, at="06:00", start=datetime(2026, 1, 31, tzinfo=UTC).date())
    app.schedules.put("monthly", tick.job(1), monthly)
    days = []
    for number in range(6):
        due = app.schedules.get("monthly").next_run
        days.append((due.month, due.day))
        clock.time = int(due.timestamp()) * SECOND
        fire(app)
        work(app)
        app.schedules.put("monthly", tick.job(number), monthly)
        app.schedules.pause("monthly")
        app.schedules.resume("monthly")
    assert days == [(1, 31), (2, 28), (3, 31), (4, 30), (5, 31), (6, 30)]


def test_the_ledger_has_every_expected_time(app, soon, clock):
    assert soon.id == "soon"
    noon = clock.now
    clock.skip(10)
    fire(app)
    clock.skip(10)
    fire(app)  # the first one still waits
    work(app)
    clock.skip(3600)
    fire(app)
    lines = app.schedules.occurrences("soon", noon, clock.now + timedelta(seconds=1)).items
    assert [(line.outcome, line.reason, line.count) for line in lines] == [
        ("succeeded", "", 1),
        ("skipped", f"overlap (job {lines[0].job_id})", 1),
        ("coalesced", "catch-up", 353),
        ("queued", "", 1),
        ("skipped", f"overlap (job {lines[3].job_id})", 6),
    ]
    assert sum(line.count for line in lines) == 362
    page = app.schedules.occurrences("soon", noon, clock.now, limit=1)
    assert page.items == lines[:1]
    assert app.schedules.occurrences("soon", noon, clock.now, limit=1, cursor=page.cursor).items == lines[1:2]
    with pytest.raises(NaiveDatetime):
        app.schedules.occurrences("soon", datetime(2026, 1, 1), clock.now)


def test_an_occurrence_outlives_a_job_that_was_deleted(app, soon, clock):
    noon = clock.now
    clock.skip(10)
    fire(app)
    work(app)
    (job,) = app.jobs.list().items
    app.jobs.delete(job.id)
    (line,) = app.schedules.occurrences(soon.id, noon, clock.now + timedelta(seconds=1)).items
    assert (line.outcome, line.job_id, line.through) == ("succeeded", None, clock.now)
    fire(app)
    assert app.jobs.list().items == []


def test_once_fires_once(app, tick, clock):
    at = clock.now + timedelta(hours=1)
    view = app.schedules.put("party", tick.job(), once(at))
    assert (view.next_run, app.schedules.next_runs("party")) == (at, [at])
    for _ in range(3):
        clock.skip(3600)
        fire(app)
        work(app)
    assert [job.occurrence for job in app.jobs.list().items] == [at]
    assert app.schedules.get("party").next_run is None


# Racing edits and broken records.


def test_an_edit_of_what_somebody_changed_meanwhile_is_told(app, tick):
    first = app.schedules.put("soon", tick.job(), every("10s"), expect_version=0)
    second = app.schedules.put("soon", tick.job(), every("20s"), expect_version=first.version)
    with pytest.raises(VersionConflict, match=r"has version \d+, not 1: somebody changed it first"):
        app.schedules.put("soon", tick.job(), every("30s"), expect_version=first.version)
    with pytest.raises(VersionConflict):
        app.schedules.put("soon", tick.job(), every("30s"), expect_version=0)
    with pytest.raises(VersionConflict, match="version 0, not 3"):
        app.schedules.put("new", tick.job(), every("30s"), expect_version=3)
    assert app.schedules.get("soon").record == second.record


def test_a_broken_schedule_is_listed_with_its_problem_and_can_be_removed(app, tick, clock):
    add_broken(app)
    app.schedules.put("sound", tick.job(), every("10s"))
    clock.skip(10)
    fire(app)
    assert [job.schedule_id for job in app.jobs.list().items] == ["sound"]
    broken, sound = app.schedules.list().items
    assert "99" in broken.problem
    assert broken.last_error == broken.problem
    assert (broken.next_run, sound.problem) == (None, None)
    assert broken.explain().startswith("cannot be evaluated: ")
    assert app.schedules.next_runs("broken") == []
    with pytest.raises(BadTrigger):
        broken.trigger.explain()
    assert app.schedules.remove("broken") is True
    assert [view.id for view in app.schedules.list().items] == ["sound"]


def test_a_broken_schedule_runs_by_hand_and_is_mended_by_a_new_rule(app, tick, clock):
    add_broken(app)
    fire(app)
    app.schedules.run_now("broken")
    work(app)
    assert app.schedules.get("broken").last_status == "succeeded"
    mended = app.schedules.put("broken", tick.job(), every("10s"))
    assert (mended.problem, mended.next_run is not None) == (None, True)
    clock.skip(10)
    fire(app)
    assert app.jobs.list().items[0].occurrence is not None


@pytest.mark.parametrize("verb", ["pause", "disable"])
def test_a_broken_schedule_can_be_stopped(app, verb, clock):
    add_broken(app)
    fire(app)
    getattr(app.schedules, verb)("broken")
    clock.skip(100)
    fire(app)
    assert app.schedules.get("broken").problem


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize("spec", ["", "{", "[]", '{"trigger": 5}', "null", '{"task": "shop.tick"}'])
def test_a_record_that_cannot_be_read_is_listed_set_aside_and_removed(app, tick, clock, spec):
    app.schedules.put_many([("a", tick.job(), every("10s")), ("b", tick.job(), every("10s"))])
    with app.open()._database.write() as connection:
        connection.execute("UPDATE rota_schedule SET spec = ? WHERE id = 'a'", (spec,))
    clock.skip(10)
    fire(app)
    assert [job.schedule_id for job in app.jobs.list().items] == ["b"]
    broken, sound = app.schedules.list().items
    assert (broken.id, bool(broken.problem), sound.problem) == ("a", True, None)
    assert app.schedules.remove("a") is True


def test_a_job_of_a_schedule_takes_no_time_of_its_own(app, tick):
    for request in (tick.using(delay="5m").job(), tick.using(at=datetime(2026, 1, 1, tzinfo=UTC)).job()):
        with pytest.raises(BadOption, match="its trigger says when it runs"):
            app.schedules.put("soon", request, every("10s"))


def test_a_schedule_is_part_of_no_transaction(app, tick):
    with pytest.raises(BadOption, match="cannot be part of your transaction"):
        app.schedules.put("soon", tick.using(tx=object()).job(), every("10s"))
    assert app.schedules.list().items == []
