"""schedules: lists, pages, and decisions by hand."""

from __future__ import annotations

import re

import msgspec
import pytest

from rota.cli.schedule_page import ShownSchedule
from rota.model.jobs.outcome import Failed, Succeeded
from rota.model.schedules.schedule import Schedule, ScheduleSpec
from rota.testing.store_suite.steps import claim_one, settle_job


@pytest.fixture
def synced(rota):
    rota.sync()
    return rota


def state(rota, schedule_id: str) -> str:
    return next(item["state"] for item in rota.data("schedules", "list") if item["id"] == schedule_id)


def test_a_list_has_sentence_next_run_last_run_and_state(synced):
    lines = synced("schedules", "list").stdout.splitlines()
    assert lines[0].split() == ["schedule", "runs", "next", "run", "last", "state"]
    assert "At 09:00 on Monday through Friday, America/New_York time" in lines[1]
    assert " 09:00 E" in lines[1]  # EST or EDT, with how far away it is
    assert ", in " in lines[1]
    assert lines[1].endswith("never  on")
    assert lines[2].endswith("disabled")


def test_a_long_list_is_cut_for_people_and_says_what_is_left_out(rota):
    many = "".join(f"  s{number:03}: {{task: jobs.report, every: 1h}}\n" for number in range(60))
    (rota.folder / "rota.yaml").write_text(f"schedules:\n{many}")
    rota.sync()
    told = rota("schedules", "list")
    total = len(rota.data("schedules", "list"))
    assert total >= 60
    assert len(told.stdout.splitlines()) == 1 + 50
    assert f"… and {total - 50} more: --all shows all of them" in told.stderr
    assert len(rota("schedules", "list", "--all").stdout.splitlines()) == 1 + total
    assert len(rota("schedules", "list", "-n", "3").stdout.splitlines()) == 1 + 3
    assert len(rota.data("schedules", "list", "--limit", "3")) == 3
    assert "contradict" in rota("schedules", "list", "--all", "-n", "3", code=2).stderr


def test_a_list_in_json_has_all_facts(synced):
    report = synced.data("schedules", "list")[0]
    assert (report["task"], report["tz"], report["description"]) == (
        "jobs.report",
        "America/New_York",
        "The morning report",
    )
    assert report["next_run"].endswith("Z")
    assert synced("schedules", "list", "-o", "csv").stdout.startswith("id,version,state,sentence")


def test_a_store_without_schedules_says_so(rota):
    rota("migrate")
    assert "has no schedules" in rota("schedules", "list").stderr
    assert rota.data("schedules", "list") == []


def test_a_page_has_rule_policies_and_next_runs(synced):
    text = synced("schedules", "show", "report").stdout
    assert text.startswith(
        "report  on\n\n  At 09:00 on Monday through Friday, America/New_York time\n  jobs.report()\n"
    )
    for words in (
        "about       The morning report",
        "rule        cron 0 9 * * MON-FRI tz=America/New_York",
        "overlap     skip: ",
        "catch-up    latest: ",
        "defined by  the code of app 'app'",
    ):
        assert words in text
    listed, _, changes = text.partition("next runs\n")[2].partition("\n\n")
    assert changes.startswith("last changes\n  20")
    runs = listed.splitlines()
    assert len(runs) == 5
    assert all(" 09:00 E" in run and "Z  in " in run for run in runs)


def test_a_run_by_hand_prints_its_job_and_shows_as_the_last(synced):
    job_id = synced("schedules", "run-now", "report").stdout.strip()
    assert "schedule  report (manual)" in synced("jobs", "show", job_id).stdout
    synced.work()
    assert "succeeded, " in synced("schedules", "list").stdout
    assert f"job {job_id}" in synced("schedules", "show", "report").stdout


def test_a_last_run_that_waits_for_its_retry_has_a_time_and_no_duration(synced, store):
    for outcome in (Failed("boom"), Succeeded(), Failed("boom")):
        synced("schedules", "run-now", "report")
        assert settle_job(store, claim_one(store, now=store.now()), outcome, now=store.now(), retries=3) == []
        last = next(line for line in synced("schedules", "show", "report").stdout.splitlines() if "last run" in line)
        state = "succeeded" if isinstance(outcome, Succeeded) else "retrying"
        assert re.search(rf" {state}, (now|\d+ s ago)", synced("schedules", "list").stdout)
        assert re.search(rf"last run +{state}{' in .*' if state == 'succeeded' else ''}, enqueued ", last)


def test_a_schedule_with_an_argument_that_its_hint_does_not_take_is_refused(rota):
    rota.sync()
    words = ("schedules", "add", "x", "greet", "ann", "times=often", "--every", "1h", "--app", "jobs.py")
    assert "argument 'times' of jobs.greet: Expected `int`, got `str`" in rota(*words, code=2).stderr.replace("\n", " ")
    assert "x" not in [one["id"] for one in rota.data("schedules", "list")]


def test_a_run_by_hand_that_finds_its_key_held_says_that_it_made_none(rota):
    (rota.folder / "rota.yaml").write_text("schedules:\n  keyed: {task: jobs.report, every: 1h, key: mine}\n")
    rota.sync()
    first, second = rota("schedules", "run-now", "keyed"), rota("schedules", "run-now", "keyed")
    job_id = first.stdout.strip()
    assert (first.stderr, second.stdout) == ("enqueued a run of keyed\n", first.stdout)
    assert second.stderr.startswith(f"job {job_id} holds the unique key 'mine'; nothing was made")
    said = rota.data("schedules", "run-now", "keyed")
    assert (said["schedule_id"], said["id"], said["existed"]) == ("keyed", job_id, True)
    assert rota.data("schedules", "run-now", "report")["existed"] is False


def test_a_pause_keeps_who_why_and_until_when(synced):
    said = synced("schedules", "pause", "report", "--reason", "month end", "--by", "ann", "--for", "2h").stderr
    assert said.startswith("paused report until 20")
    line = synced("schedules", "list").stdout.splitlines()[1]
    assert "paused by ann: month end (until 20" in line
    assert "paused      since 20" in synced("schedules", "show", "report").stdout
    assert "resumed report; its next run is at 20" in synced("schedules", "resume", "report").stderr
    assert synced("schedules", "resume", "report").stderr == "was not paused: report\n"
    assert state(synced, "report") == "on"


def test_a_pause_ends_in_the_future_and_is_said_one_way(synced):
    assert "lies in the past" in synced("schedules", "pause", "report", "--until", "2020-01-01T00:00Z", code=2).stderr
    words = ["--until", "2099-01-01T00:00Z", "--for", "1h"]
    assert "both say when the pause ends" in synced("schedules", "pause", "report", *words, code=2).stderr
    assert "rota schedules resume report" in synced("schedules", "pause", "report").stderr


def test_schedules_are_switched_off_and_on(synced):
    assert synced("schedules", "disable", "report").stderr == "disabled report\n"
    assert synced("schedules", "disable", "report").stderr == "was disabled already: report\n"
    assert state(synced, "report") == "disabled"
    assert "enabled report; its next run is at 20" in synced("schedules", "enable", "report").stderr
    assert synced("schedules", "enable", "report").stderr == "was enabled already: report\n"


def test_changes_answer_machines_with_what_is_now(synced):
    assert [item["state"] for item in synced.data("schedules", "pause", "report", "tick")] == ["paused", "disabled"]
    assert synced.data("schedules", "resume", "report")[0]["state"] == "on"
    assert synced.data("schedules", "disable", "report")[0]["state"] == "disabled"
    assert synced.data("schedules", "enable", "report")[0]["state"] == "on"
    assert synced.data("schedules", "run-now", "report")["schedule_id"] == "report"
    assert synced.data("queues", "pause", "default")[0]["state"] == "paused"


def test_a_schedule_of_the_code_comes_back_and_that_is_said(synced):
    assert "so you cannot remove it" in synced("schedules", "remove", "report", code=6).stderr
    said = synced("schedules", "remove", "report", "--force").stderr
    assert said.startswith("removed report\nwarning: report is declared in the code of app 'app'")
    assert [item["id"] for item in synced.data("schedules", "list")] == ["tick"]


def test_one_schedule_of_the_code_keeps_all_from_being_removed(synced):
    for name in ("aaa", "zzz"):
        synced("schedules", "add", name, "greet", "ann", "--every", "1h", "--app", "jobs.py")
    said = synced("schedules", "remove", "aaa", "report", "zzz", code=6).stderr
    assert "so you cannot remove it" in said
    assert "no schedule was removed" in said
    assert [item["id"] for item in synced.data("schedules", "list")] == ["aaa", "report", "tick", "zzz"]


def test_a_retired_schedule_is_removed_without_a_word_of_its_return(synced):
    jobs = synced.folder / "jobs.py"
    jobs.write_text(jobs.read_text().replace('@app.schedule(every("1s"), enabled=False)\n', ""))
    synced.forget()
    synced("schedules", "apply", "--app", "jobs.py")
    assert state(synced, "tick") == "retired"
    assert synced("schedules", "remove", "tick").stderr == "removed tick\n"


def test_one_unknown_id_changes_nothing(synced):
    said = synced("schedules", "disable", "report", "nope", code=5).stderr
    assert "no schedule has the id 'nope'; nothing was done about the others" in said
    assert state(synced, "report") == "on"


def test_a_rule_that_cannot_be_read_any_more_is_still_shown():
    spec = ScheduleSpec(trigger="cron 0 9 * * * tz=Mars/Olympus", task="a.b", tz="UTC")
    record = Schedule(id="lost", spec=spec, created_at=0, updated_at=0, fired_through=0, next_at=1)
    shown = ShownSchedule(record, now=0)
    assert shown.state == "broken"
    assert "Mars/Olympus" in str(shown.problem)
    assert ShownSchedule(msgspec.structs.replace(record, problem="told"), now=0).problem == "told"
