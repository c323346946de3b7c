"""why and agenda: what became of an expected time, and what is to come."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from rota.cli.why import time_from
from rota.errors import BadOption
from rota.triggers.zone import find_zone

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)  # a Monday, 07:00 in New York


@pytest.fixture
def synced(rota):
    rota.sync()
    return rota


def test_why_answers_in_one_sentence_with_what_to_do(synced):
    ahead = synced("why", "tick", "2099-01-01T00:00:00Z").stdout
    assert ahead.startswith("skipped: disabled\ntick at Thu 2099-01-01 00:00 UTC: The schedule is disabled.\n")
    assert "what to do: `rota schedules enable tick`." in ahead


def test_why_in_json_has_all_facts(synced):
    facts = synced.data("why", "report", "2099-01-03T14:00Z")
    assert (facts["outcome"], facts["job_id"]) == ("not expected", None)
    assert (facts["before"], facts["after"]) == ("2099-01-02T14:00:00Z", "2099-01-05T14:00:00Z")
    assert "At 09:00 on Monday through Friday".lower() in facts["sentence"].lower()


def test_why_of_nobody_and_of_no_time_are_errors(synced):
    assert "no schedule has the id 'nobody'" in synced("why", "nobody", code=5).stderr
    assert "'soon' is not a time" in synced("why", "tick", "soon", code=2).stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("06:59", "2026-11-16T11:59:00+00:00"),
        ("7:01", "2026-11-15T12:01:00+00:00"),  # not yet today, so yesterday's is meant
        ("2026-11-16 09:00", "2026-11-16T14:00:00+00:00"),
        ("2026-11-16T09:00Z", "2026-11-16T09:00:00+00:00"),
        ("2026-03-08 02:30", "2026-03-08T07:00:00+00:00"),  # clocks jumped over it
    ],
)
def test_a_time_is_meant_in_the_zone_of_the_schedule(text, expected):
    assert time_from(text, find_zone("America/New_York"), NOW).isoformat() == expected


@pytest.mark.parametrize("text", ["25:00", "tomorrow", "", "2026-13-01"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(BadOption, match="write it as"):
        time_from(text, find_zone("UTC"), NOW)


def test_the_agenda_lists_days_and_sums_up_what_runs_all_the_time(synced):
    synced("schedules", "enable", "tick")
    lines = synced("agenda", "--days", "7").stdout.splitlines()
    assert lines[0] == "all the time"
    assert re.fullmatch(r"  tick  Every second from .* UTC  604,(800|799) runs", lines[1])
    runs = [line for line in lines if " report " in line]
    assert len(runs) == 5
    assert all("America/New_York" in line for line in runs)


def test_the_agenda_in_json_counts_what_it_sums_up(synced):
    synced("schedules", "enable", "tick")
    entries = synced.data("agenda", "--days", "1")
    ticks = [entry["count"] for entry in entries if entry["schedule_id"] == "tick"]
    assert ticks in ([86_400], [86_399])


def test_an_empty_agenda_says_so(rota):
    rota("migrate")
    assert rota("agenda").stdout == "nothing is to run within 7 days\n"
