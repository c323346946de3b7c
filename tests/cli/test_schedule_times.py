"""Times of schedules as people type them: cron text with its zone, wall times, and times that have passed."""

from __future__ import annotations

import pytest

from rota import every
from rota.cli.target import load_target
from rota.model.schedules.schedule import Origin
from rota.operations.specs import make_spec


@pytest.fixture
def synced(rota, monkeypatch):
    monkeypatch.setenv("ROTA_APP", "jobs.py")
    rota.sync()
    return rota


@pytest.mark.parametrize("prefix", ["CRON_TZ", "TZ", "cron_tz"])
def test_a_zone_before_cron_text_is_read_as_everywhere_else(synced, prefix):
    synced("schedules", "add", "night", "report", "--cron", f"{prefix}=Europe/Paris 0 3 * * *")
    shown = synced.data("schedules", "show", "night")
    assert (shown["tz"], shown["trigger"]) == ("Europe/Paris", {"cron": "0 3 * * *", "tz": "Europe/Paris"})
    synced("schedules", "edit", "night", "--cron", f"{prefix}=Asia/Tokyo 0 4 * * *")
    assert synced.data("schedules", "show", "night")["tz"] == "Asia/Tokyo"


@pytest.mark.parametrize("words", [("--cron", "CRON_TZ=Europe/Paris 0 3 * * *"), ("--cron", "0 3 * * * tz=UTC")])
def test_two_zones_that_contradict_each_other_are_refused(synced, words):
    said = synced("schedules", "add", "night", "report", *words, "--tz", "Asia/Tokyo", code=2).stderr
    assert "Asia/Tokyo" in said
    assert "keep one of them" in said
    synced("schedules", "add", "night", "report", "--cron", "0 3 * * *")
    assert "keep one of them" in synced("schedules", "edit", "night", *words, "--tz", "Asia/Tokyo", code=2).stderr


WALL = {
    "its own zone": (["--tz", "America/New_York"], "2027-11-20T14:00:00Z"),
    "its tenant's": (["--tenant", "acme"], "2027-11-20T03:30:00Z"),
    "the app's": ([], "2027-11-20T09:00:00Z"),
}


@pytest.mark.parametrize(("options", "at"), WALL.values(), ids=WALL)
def test_a_wall_time_is_meant_in_the_zone_of_the_schedule(synced, options, at):
    synced("tenants", "put", "acme", "--tz", "Asia/Kolkata")
    synced("schedules", "add", "launch", "report", "--once", "2027-11-20 09:00", *options)
    assert synced.data("schedules", "show", "launch")["next_run"] == at
    bounds = ("--start", "2027-11-20T09:00", "--end", "2027-11-20 09:00:30")
    synced("schedules", "add", "short", "report", "--every", "1m", *bounds, *options)
    assert synced.data("schedules", "show", "short")["start"] == at


def test_an_edit_reads_a_wall_time_in_the_zone_that_the_schedule_has(synced):
    synced("schedules", "add", "launch", "report", "--once", "2027-11-20 09:00Z", "--tz", "America/New_York")
    synced("schedules", "edit", "launch", "--once", "2027-11-21 09:00")
    assert synced.data("schedules", "show", "launch")["next_run"] == "2027-11-21T14:00:00Z"
    synced("schedules", "edit", "launch", "--once", "2027-11-21 09:00", "--tz", "Asia/Tokyo")
    assert synced.data("schedules", "show", "launch")["next_run"] == "2027-11-21T00:00:00Z"


def test_once_on_a_day_asks_for_the_time(synced):
    said = synced("schedules", "add", "launch", "report", "--once", "2027-11-20", code=2).stderr
    assert "names a day; add the time, as in --once '2027-11-20 09:00'" in said


def test_an_edit_that_ends_a_schedule_warns(synced):
    synced("schedules", "add", "often", "report", "--every", "1h")
    said = synced("schedules", "edit", "often", "--end", "2020-01-01").stderr
    assert "often will not run again: its end, 2020-01-01T23:59:59" in said
    assert "will not run again" not in synced("schedules", "edit", "often", "--end", "").stderr


RUN_BY_HAND = {
    "finished": (["edit", "often", "--end", "2020-01-01"], "has no run ahead"),
    "disabled": (["disable", "often"], "stays disabled: `rota schedules enable often` has it run by its times"),
    "paused": (["pause", "often"], "stays paused"),
}


@pytest.mark.parametrize(("before", "words"), RUN_BY_HAND.values(), ids=RUN_BY_HAND)
def test_run_now_says_that_a_schedule_does_not_run_by_itself(synced, before, words):
    synced("schedules", "add", "often", "report", "--every", "1h")
    assert "enqueued a run of often\n" in synced("schedules", "run-now", "often").stderr
    synced("schedules", *before)
    assert words in synced("schedules", "run-now", "often").stderr


def test_run_now_says_that_a_schedule_is_retired(synced):
    app = load_target("jobs.py").app
    spec = make_spec(every("1h"), app.__rota_tasks__.get("report").job())
    app.schedules.register([("old", spec)], Origin("code", "app", "1"))
    app.schedules.retire_gone((), Origin("code", "app", "2"))
    app.close()
    assert "the schedule is retired, because the code of app 'app' " in synced("schedules", "run-now", "old").stderr
