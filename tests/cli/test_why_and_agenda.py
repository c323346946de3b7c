"""why and agenda: what became of an expected time, and what is to come."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

import msgspec
import pytest

from rota import calendar, every
from rota.cli.target import load_target
from rota.cli.words import instant
from rota.errors import BadOption
from rota.inspector.facts import agenda as agenda_module
from rota.inspector.schedule_state import schedule_problem
from rota.inspector.wall_times import time_from
from rota.model.micros import SECOND, datetime_of
from rota.model.schedules.edit import Edit
from rota.testing.store_suite.steps import fire
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


def test_why_of_a_schedule_in_a_store_that_was_copied_says_where_it_goes_on(synced):
    synced("copy", "--from", "sqlite:///.rota/rota.db", "--to", "sqlite:///new.db", "--yes")
    ahead = synced("why", "report", "2099-01-02T14:00:00Z").stdout
    assert ahead.startswith("expected: store sealed\nreport at Fri 2099-01-02 09:00 EST: It would be due in ")
    assert "The store is sealed: everything in it was copied to sqlite file" in ahead
    assert "what to do: The schedule goes on there: restart the nodes with the URL of that store." in ahead


def test_why_in_json_has_all_facts(synced):
    facts = synced.data("why", "report", "2099-01-03T14:00Z")
    assert (facts["outcome"], facts["job_id"]) == ("not expected", None)
    assert (facts["before"], facts["after"]) == ("2099-01-02T14:00:00Z", "2099-01-05T14:00:00Z")
    assert "At 09:00 on Monday through Friday".lower() in facts["sentence"].lower()


def test_why_of_nobody_and_of_no_time_are_errors(synced):
    assert "no schedule and no job has the id 'nobody'" in synced("why", "nobody", code=5).stderr
    assert "did you mean the schedule report?" in synced("why", "reprot", code=5).stderr
    assert "a job may have been pruned" in synced("why", "0123456789ab", code=5).stderr
    assert "'soon' is not a time" in synced("why", "tick", "soon", code=2).stderr


def test_why_of_a_job_says_what_it_waits_for(rota):
    job_id = rota.enqueue("greet", "ann")
    told = rota("why", job_id).stdout
    assert told.startswith(
        f"waiting: no worker for this queue\njob {job_id} (jobs.greet): The job waits, and no worker"
    )
    assert "what to do: Start one: `rota worker TARGET -q default`." in told
    assert rota.data("why", job_id)["state"] == "queued"
    assert "leave '09:00' out" in rota("why", job_id, "09:00", code=2).stderr


def test_why_finds_a_job_by_how_its_id_begins(rota):
    first, second = rota.enqueue("greet", "ann"), rota.enqueue("greet", "bob")
    assert rota("why", first[:20]).stdout.startswith(f"waiting: no worker for this queue\njob {first} (jobs.greet)")
    shared = first[: next(at for at in range(28) if first[at] != second[at])]
    told = rota("why", shared, code=2).stderr
    assert f"{shared!r} begins the ids of 2 jobs; write more of it" in told
    assert first in told


def test_why_of_a_removed_schedule_says_who_removed_it_and_when(rota):
    rota("schedules", "add", "night", "jobs.greet", "ann", "--every", "1h", "--app", "jobs.py")
    rota("schedules", "remove", "night", "--by", "ann")
    told = rota("why", "night").stdout
    assert told.startswith("removed\nnight: The schedule was removed by ann at ")


def test_a_schedule_in_an_unknown_zone_is_shown_explained_and_mended(rota, store):
    app_args = ("schedules", "add", "night", "jobs.greet", "ann", "--cron", "0 9 * * *", "--app", "jobs.py")
    rota(*app_args)
    (known,) = store.get_schedules(["night"])
    spec = msgspec.structs.replace(known.spec, tz="Mars/Olympus")
    after = msgspec.structs.replace(known, spec=spec, version=known.version + 1)
    assert store.edit_schedules([Edit(after=after, expect_version=known.version)]) == []
    assert rota.data("schedules", "list")[0]["state"] == "broken"
    assert "Mars/Olympus" in rota("schedules", "show", "night").stdout
    assert rota("why", "night", "09:00").stdout.startswith("broken\n")
    rota("schedules", "edit", "night", "--queue", "mail")
    said = rota("schedules", "edit", "night", "--tz", "Europe/Paris")
    assert "its next run is at" in said.stderr + said.stdout
    assert rota.data("schedules", "list")[0]["state"] == "on"


def test_a_rule_that_cannot_be_read_is_replaced(rota, store):
    rota("schedules", "add", "night", "jobs.greet", "ann", "--cron", "0 9 * * *", "--app", "jobs.py")
    (known,) = store.get_schedules(["night"])
    spec = msgspec.structs.replace(known.spec, trigger="lunar 3 tz=Mars/Olympus")
    after = msgspec.structs.replace(known, spec=spec, version=known.version + 1)
    assert store.edit_schedules([Edit(after=after, expect_version=known.version)]) == []
    assert rota.data("schedules", "list")[0]["state"] == "broken"
    rota("schedules", "edit", "night", "--every", "1h")
    assert rota.data("schedules", "list")[0]["state"] == "on"


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


def test_the_agenda_tells_days_and_times_in_the_timezone_of_the_settings(synced):
    assert "(UTC)" in synced("agenda").stdout
    (synced.folder / "rota.yaml").write_text("tz: Asia/Tokyo\n")
    lines = synced("agenda").stdout.splitlines()
    assert any(line.endswith("(Asia/Tokyo)") for line in lines)
    runs = [line for line in lines if " report " in line]
    assert runs
    assert all(line.split()[0] in {"22:00:00", "23:00:00"} for line in runs)  # 09:00 in New York
    assert all(run["at"].endswith("Z") for run in synced.data("agenda"))


def test_the_agenda_lists_days_and_sums_up_what_runs_all_the_time(synced):
    synced("schedules", "enable", "tick")
    lines = synced("agenda", "--days", "7").stdout.splitlines()
    assert lines[0] == "more than 3 times a day"
    assert re.fullmatch(r"  tick  Every second from .* UTC  604,(800|799) runs  the next (now|in .*)", lines[1])
    runs = [line for line in lines if " report " in line]
    assert len(runs) == 5
    assert all("America/New_York" in line for line in runs)


def test_the_agenda_tells_an_hourly_schedule_in_one_line(rota):
    (rota.folder / "jobs.py").write_text(
        "from rota import App, cron\napp = App()\n@app.schedule(cron('0 * * * *'))\ndef hourly(): ...\n"
        "@app.schedule(cron('0 8,13,18 * * *'))\ndef meals(): ...\n"
    )
    rota.sync()
    lines = rota("agenda").stdout.splitlines()
    assert sum("hourly" in line for line in lines) == 1
    assert "168 runs" in lines[1]
    assert sum(" meals " in line for line in lines) == 21


def test_the_agenda_and_next_runs_have_the_jitter_in_them(rota):
    (rota.folder / "jobs.py").write_text(
        "from rota import App, cron\napp = App()\n@app.schedule(cron('0 0 * * *'), jitter='6h')\ndef night(): ...\n"
    )
    rota.sync()
    (shown,) = rota.data("schedules", "list")
    first = datetime.fromisoformat(shown["next_run"])
    assert (first.hour, first.minute, first.second) != (0, 0, 0)  # its share of the jitter is not nothing
    assert datetime.fromisoformat(rota.data("agenda")[0]["at"]) == first


def test_the_agenda_in_json_counts_what_it_sums_up(synced):
    synced("schedules", "enable", "tick")
    entries = synced.data("agenda", "--days", "1")
    ticks = [entry["count"] for entry in entries if entry["schedule_id"] == "tick"]
    assert ticks in ([86_400], [86_399])


def test_an_empty_agenda_says_so(rota):
    rota("migrate")
    assert rota("agenda").stdout == "nothing is to run within 7 days\n"


def test_the_agenda_computes_times_only_of_schedules_that_may_run_within_its_days(rota, monkeypatch):
    app = load_target("jobs.py").app
    greet = app.__rota_tasks__.get("greet")
    far = calendar(years=1, start=date(2090, 1, 1), at="00:05")
    app.schedules.put_many([(f"far{number:04}", greet.job("ann"), far) for number in range(500)])
    app.schedules.put("near", greet.job("ann"), every("1h"))
    app.schedules.put("paused", greet.job("ann"), every("1h"))
    app.schedules.pause("paused")
    app.close()
    looked_at = []

    def counted(schedule):
        looked_at.append(schedule.id)
        return schedule_problem(schedule)

    monkeypatch.setattr(agenda_module, "schedule_problem", counted)  # the first look at a rule
    assert {entry["schedule_id"] for entry in rota.data("agenda")} == {"near"}
    assert looked_at == ["near"]


def test_occurrences_of_a_schedule_are_listed_oldest_first(synced, store):
    synced("schedules", "add", "often", "greet", "ann", "--every", "1h", "--app", "jobs.py")
    first = store.get_schedules(["often"])[0].next_at
    for number in range(3):
        fire(store, "often", now=first + number * 3600 * SECOND)
    at = [datetime_of(first + number * 3600 * SECOND).isoformat() for number in range(3)]
    facts = synced.data("schedules", "occurrences", "often", "--start", at[0], "--end", at[2])
    assert [(one["outcome"], one["count"]) for one in facts] == [("queued", 1), ("skipped", 2)]
    rows = synced("schedules", "occurrences", "often", "--start", at[0], "--end", at[2]).stdout.splitlines()
    shown = [instant(datetime_of(first + number * 3600 * SECOND)) for number in range(3)]
    assert [row.split("  ")[0] for row in rows[1:]] == [shown[0], f"{shown[1]} to {shown[2]}"]
    text = synced("schedules", "occurrences", "often", "--start", at[0], "--end", at[2], "-n", "1")
    assert "queued" in text.stdout
    assert "these are the oldest 1" in text.stderr
    assert "no run was expected between" in synced("schedules", "occurrences", "often").stderr
    assert (
        "lies after the end"
        in synced("schedules", "occurrences", "often", "--start", "2099-01-01", "--end", "2098-01-01", code=2).stderr
    )
    synced("schedules", "occurrences", "nothing", code=5)
