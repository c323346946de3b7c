"""Celery: beat_schedule and django-celery-beat's own tables become schedules that run when Celery would."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from celery import Celery
from celery.schedules import crontab, schedule, solar
from hypothesis import assume, given
from hypothesis import strategies as st

from every_store import running_server
from rota.importers.celery_beat import beat_items, read_beat
from rota.importers.celery_rules import celery_runs, crontab_trigger
from rota.importers.django_celery_beat import read_tables, table_items
from rota.importers.found import Tasks, UnsupportedItem
from rota.model.jobs.payload import unpack_call
from rota.tasks.task import Registry

NOW = datetime(2026, 3, 7, 12, tzinfo=UTC)

FIELDS = st.tuples(
    st.sampled_from(["0", "*/15", "5,35", "10-20", "*", "*/7"]),
    st.sampled_from(["0", "*/6", "9-17", "*", "22-2", "1-23/5"]),
    st.sampled_from(["*", "0", "fri", "mon-fri", "1,3", "sat-sun", "*/2"]),
    st.sampled_from(["*", "1", "13", "*/10", "1-7", "8-21", "29-31"]),
    st.sampled_from(["*", "2", "1-3", "*/3"]),
)


ZONES = st.sampled_from(["UTC", "Asia/Kolkata", "America/Phoenix"])  # whose clocks are not changed


@given(fields=FIELDS, zone=ZONES, minutes=st.integers(0, 60 * 24 * 400))
def test_a_crontab_runs_when_celery_runs_it(fields, zone, minutes):
    after = NOW + timedelta(minutes=minutes)
    try:
        trigger = crontab_trigger(*fields)
    except UnsupportedItem:
        assume(False)  # noqa: FBT003 - hypothesis takes it so
    assert list(celery_runs(fields, zone, after)) == trigger.bound(zone).next_runs(3, after=after)


def app_with(**entries) -> Celery:
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.timezone = "Europe/Paris"
    app.conf.beat_schedule = {name: {"task": f"shop.{name}", **said} for name, said in entries.items()}
    return app


def items_of(app: Celery):
    return {item.name: item for item in beat_items(read_beat(app), Tasks(Registry()), prefix="", now=NOW)}


def test_entries_of_an_app_become_schedules():
    found = items_of(
        app_with(
            report={"schedule": crontab(minute=30, hour={7, 9}), "args": ("a",), "kwargs": {"b": 2}},
            often={"schedule": 30.0},
            hourly={"schedule": timedelta(hours=1), "options": {"queue": "mail", "priority": 3, "expires": 60}},
            still={"schedule": schedule(timedelta(minutes=5))},
        )
    )
    specs = {name: item.spec for name, item in found.items()}
    assert {name: spec.trigger for name, spec in specs.items()} == {
        "report": "cron 30 7,9 * * *",
        "often": "every 30s",
        "hourly": "every 1h",
        "still": "every 5m",
    }
    call = unpack_call(specs["report"].payload.encode())
    assert (specs["report"].task, specs["report"].tz, call.args, call.kwargs) == (
        "shop.report",
        "Europe/Paris",
        ["a"],
        {"b": 2},
    )
    assert (specs["hourly"].queue, specs["hourly"].priority) == ("mail", 3)
    assert (specs["report"].overlap, specs["report"].catchup) == ("allow", "latest")
    assert any("left out: expires" in warning for warning in found["hourly"].warnings)
    assert [run.hour for run in found["report"].old_runs] == [7, 9, 7]


class Dawn(solar):
    """Celery's own needs a library that computes the sun."""

    def __init__(self):
        self.event, self.lat, self.lon = "sunrise", 52.5, 13.4


def test_what_celery_alone_knows_is_named():
    found = items_of(
        app_with(
            dawn={"schedule": Dawn()},
            both={"schedule": crontab(minute=0, hour=0, day_of_month=13, day_of_week="fri")},
            fast={"schedule": 0.5},
            relative={"schedule": schedule(timedelta(hours=1), relative=True)},
        )
    )
    assert {name: item.spec for name, item in found.items()} == dict.fromkeys(found)
    assert "solar" in found["dawn"].reason
    assert "day-of-month 13 and weekday FRI at once" in found["both"].reason
    assert "not a whole number of seconds" in found["fast"].reason
    assert "relative" in found["relative"].reason


def test_entries_that_code_adds_later_are_found():
    app = app_with()

    @app.on_after_finalize.connect
    def add(sender, **_):
        sender.add_periodic_task(crontab(minute=0), sender.signature("shop.late"), name="late")

    assert list(items_of(app)) == ["late"]


@pytest.fixture(scope="module")
def server():
    """An empty database of its own."""
    url = running_server("postgres").url()
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.execute("DROP DATABASE IF EXISTS beat_tables")
        connection.execute("CREATE DATABASE beat_tables")
    yield urlsplit(url)._replace(path="/beat_tables").geturl()
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.execute("DROP DATABASE beat_tables WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgres"])
def database(request, tmp_path):
    """A database that the models of django-celery-beat filled."""
    where = request.getfixturevalue("server") if request.param == "postgres" else str(tmp_path / "site.db")
    script = Path(__file__).with_name("django_tables.py")
    made = subprocess.run([sys.executable, script, where], capture_output=True, text=True, check=False, timeout=200)
    assert made.returncode == 0, made.stderr
    return where if request.param == "postgres" else f"sqlite:///{where}"


def test_rows_of_django_celery_beat_become_schedules(database):
    rows = read_tables(database)
    found = {item.id: item for item in table_items(rows, Tasks(Registry()), prefix="", now=NOW)}
    specs = {name: item.spec for name, item in found.items() if item.spec}
    assert {name: spec.trigger for name, spec in specs.items()} == {
        "morning-report": "cron 30 9 * * MON-FRI",
        "first-monday": "cron 0 0 * * MON#1",
        "often": "every 1m30s",
        "later": "once 2099-01-01T12:30:15Z",
        "a-try": "every 1h",
    }
    report, call = specs["morning-report"], unpack_call(specs["morning-report"].payload.encode())
    assert (report.tz, report.queue, report.priority, report.description) == ("Europe/Paris", "mail", 5, "for the boss")
    assert (call.args, call.kwargs) == (["daily"], {"deep": {"n": 1}})
    soon = datetime(2099, 1, 1, 12, 30, 15, tzinfo=UTC).timestamp() * 1_000_000
    assert (report.end, specs["a-try"].start, specs["a-try"].max_runs) == (soon, soon, 1)
    assert (specs["often"].enabled, specs["later"].max_runs) == (False, None)
    assert any("expire_seconds=60" in warning for warning in found["later"].warnings)
    assert found["later"].old_runs == (datetime(2099, 1, 1, 12, 30, 15, tzinfo=UTC),)
    assert len(found["often"].old_runs) == len(found["morning-report"].old_runs) == 3
    assert {name: item.reason.partition(" ")[0] for name, item in found.items() if not item.spec} == {
        "friday-13th": "it",
        "fast": "the",
        "at-dawn": "solar",
    }
    assert found["morning-report"].old_runs[0] == datetime(2026, 3, 9, 8, 30, tzinfo=UTC)
