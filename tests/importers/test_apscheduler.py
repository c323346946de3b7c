"""APScheduler 3: jobs of a live scheduler become schedules that run when its triggers would."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger
from hypothesis import assume, given
from hypothesis import strategies as st

from rota.importers.apscheduler import cron_of, read_scheduler, scheduler_items
from rota.importers.found import Tasks, UnsupportedItem
from rota.model.jobs.payload import unpack_call
from rota.tasks.task import Registry

NOW = datetime(2026, 3, 7, 12, tzinfo=UTC)
FIELDS = st.fixed_dictionaries(
    {
        "second": st.sampled_from(["0", "*/20", "5,35", "*"]),
        "minute": st.sampled_from(["0", "*/15", "10-20", "*"]),
        "hour": st.sampled_from(["0", "*/6", "9-17", "*", "5/7"]),
        "day": st.sampled_from(["*", "1", "13", "*/10", "1-7", "last", "2nd fri", "last sun", "1st mon,3rd mon"]),
        "month": st.sampled_from(["*", "2", "jan-mar", "*/3"]),
        "day_of_week": st.sampled_from(["*", "0", "fri", "mon-fri", "0-4", "1,3", "6"]),
    }
)


def work(*args, **kwargs): ...


@given(fields=FIELDS, hours=st.integers(0, 24 * 400))
def test_a_cron_trigger_runs_when_apscheduler_runs_it(fields, hours):
    after = NOW + timedelta(hours=hours)
    theirs = CronTrigger(**fields, timezone="UTC")
    try:
        ours = cron_of({field.name: str(field) for field in theirs.fields}).bound("UTC")
    except UnsupportedItem:
        assume(False)  # noqa: FBT003 - hypothesis takes it so
    runs, at = [], after
    for _ in range(3):
        at = theirs.get_next_fire_time(None, at + timedelta(microseconds=1))
        runs.append(at)
    assert ours.next_runs(3, after=after) == runs


def items_of(scheduler):
    return {
        item.name: item for item in scheduler_items(read_scheduler(scheduler), Tasks(Registry()), prefix="", now=NOW)
    }


def test_jobs_become_schedules():
    scheduler = BackgroundScheduler(timezone="Europe/Paris", job_defaults={"misfire_grace_time": 30})
    start = datetime(2026, 1, 1, 0, 10, tzinfo=UTC)
    scheduler.add_job(work, "cron", day_of_week="0-4", hour=9, id="weekly", args=["a"], kwargs={"b": 1})
    scheduler.add_job(work, IntervalTrigger(minutes=90, start_date=start), id="often", max_instances=3)
    scheduler.add_job(work, "date", run_date=datetime(2099, 1, 1, tzinfo=UTC), id="later", misfire_grace_time=None)
    found = items_of(scheduler)
    specs = {name: item.spec for name, item in found.items()}
    assert {name: spec.trigger for name, spec in specs.items()} == {
        "weekly": "cron 0 9 * * MON-FRI",
        "often": "every 1h30m start=2026-01-01T00:10:00Z",
        "later": "once 2099-01-01T00:00:00Z",
    }
    weekly, call = specs["weekly"], unpack_call(specs["weekly"].payload.encode())
    assert (weekly.task, weekly.tz, call.args, call.kwargs) == (
        "test_apscheduler.work",
        "Europe/Paris",
        ["a"],
        {"b": 1},
    )
    assert (weekly.overlap, weekly.catchup, weekly.grace) == ("skip", "skip", 30_000_000)
    assert (specs["often"].overlap, specs["later"].catchup) == ("allow", "latest")
    assert "max_instances=3" in found["often"].warnings[0]
    assert found["often"].old_runs[0] == datetime(2026, 3, 7, 12, 10, tzinfo=UTC)


def test_a_start_that_has_passed_is_left_out_because_it_would_run_at_once():
    scheduler = BackgroundScheduler(timezone="UTC")
    for name, hours in (("begun", -1), ("ahead", 1)):
        scheduler.add_job(work, CronTrigger(hour=9, start_date=NOW + timedelta(hours=hours), timezone="UTC"), id=name)
    specs = {name: item.spec for name, item in items_of(scheduler).items()}
    assert (specs["begun"].start, specs["ahead"].start is None) == (None, False)


def test_jobs_that_are_kept_in_a_database_are_found_and_none_runs(tmp_path):
    stores = {"default": SQLAlchemyJobStore(f"sqlite:///{tmp_path}/jobs.db")}
    first = BackgroundScheduler(jobstores=stores, timezone="UTC")
    first.start(paused=True)
    first.add_job(work, "interval", hours=1, id="kept")
    first.pause_job("kept")
    first.shutdown()
    again = BackgroundScheduler(
        jobstores={"default": SQLAlchemyJobStore(f"sqlite:///{tmp_path}/jobs.db")}, timezone="UTC"
    )
    found = items_of(again)
    assert found["kept"].spec.enabled is False
    assert not again.running


@pytest.mark.parametrize(
    ("trigger", "reason"),
    [
        (CronTrigger(week="*/2", timezone="UTC"), "week='*/2'"),
        (CronTrigger(year="2027", timezone="UTC"), "year='2027'"),
        (CronTrigger(day="13", day_of_week="fri", timezone="UTC"), "at once"),
        (CronTrigger(day="last", day_of_week="fri", timezone="UTC"), "both at once"),
        (IntervalTrigger(seconds=0.5, timezone="UTC"), "whole number of seconds"),
        (OrTrigger([]), "OrTrigger"),
    ],
)
def test_what_apscheduler_alone_knows_is_named(trigger, reason):
    scheduler = BackgroundScheduler(timezone="UTC")
    scheduler.add_job(work, trigger, id="odd")
    (item,) = items_of(scheduler).values()
    assert item.spec is None
    assert reason in item.reason
