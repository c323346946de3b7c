"""What the command line says after the store's clock was set."""

from __future__ import annotations

import json

import pytest

from rota.model.clock.record import KIND, NAME, ClockRecord, ClockStep, pack_record
from rota.model.entry import EntryEdit
from rota.model.micros import SECOND, datetime_of

HOUR = 3600 * SECOND


@pytest.fixture
def set_right(rota, store):
    """The clock stood an hour ahead for six seconds, and is right again since ten seconds ago. That time is given."""
    rota.sync()
    at = (store.now() // SECOND - 10) * SECOND
    ahead = ClockStep(was=at - 6 * SECOND, at=at - 6 * SECOND + HOUR, by="n")
    back = ClockStep(was=at + HOUR, at=at, by="n", is_repaired=True, schedules=12, jobs=3)
    record = ClockRecord(latest=at, steps=(ahead, back))
    store.edit_entries([EntryEdit(kind=KIND, name=NAME, expect_version=0, data=pack_record(record))])
    return at


def test_doctor_warns_of_it(rota, set_right):
    checks = json.loads(rota("doctor", "-o", "json", code=1).stdout)
    ahead, back = [check for check in checks if check["about"] == "clock"]
    assert (ahead["verdict"], back["verdict"]) == ("warning", "warning")
    assert ahead["finding"].startswith("the store's clock was set ahead by 1h, from ")
    assert "12 schedules and 3 jobs that were ahead of it were moved back" in back["finding"]
    assert f"to {datetime_of(set_right):%Y-%m-%d %H:%M:%S} UTC" in back["finding"]


def test_health_mentions_it_and_stays_healthy(rota, set_right):
    said = rota("health").stdout
    assert said.startswith("healthy: ")
    assert f"to {datetime_of(set_right):%Y-%m-%d %H:%M:%S} UTC" in said


def test_why_says_that_the_clock_was_ahead(rota, set_right):
    within = f"{datetime_of(set_right + HOUR // 2):%Y-%m-%dT%H:%M:%SZ}"
    sentence = rota.data("why", "tick", within)["sentence"]
    began, ended = (f"{datetime_of(at):%Y-%m-%d %H:%M:%S} UTC" for at in (set_right - 6 * SECOND, set_right))
    assert sentence.endswith(f". The store's clock stood 1h ahead from {began} until {ended}.")


def test_why_says_nothing_of_it_about_other_times(rota, set_right):
    later = f"{datetime_of(set_right + 2 * HOUR):%Y-%m-%dT%H:%M:%SZ}"
    assert "clock" not in rota.data("why", "tick", later)["sentence"]


def test_where_no_clock_was_set_nothing_is_said(rota):
    rota.sync()
    checks = json.loads(rota("doctor", "-o", "json", code=1).stdout)
    assert [check["verdict"] for check in checks if check["about"] == "clock"] == ["ok"]
    assert "the store's clock" not in rota("health").stdout
