"""schedules add, edit, plan and apply."""

from __future__ import annotations

import sys

import pytest

from rota import App
from rota.testing.store_suite.builders import HOUR
from rota.testing.store_suite.steps import running_job, succeed


@pytest.fixture(autouse=True)
def _app_is_known(folder, monkeypatch):  # noqa: ARG001 - which forgets what the environment says
    monkeypatch.setenv("ROTA_APP", "jobs.py")


@pytest.fixture
def synced(rota):
    rota.sync()
    return rota


def test_a_schedule_is_added_and_edited_by_hand(synced):
    added = synced(
        "schedules", "add", "hello", "greet", "ann", "times=2", "--cron", "0 9 * * 1", "--tz", "Europe/Paris"
    )
    assert "added hello: At 09:00 on Monday, Europe/Paris time; its next run is at" in added.stderr
    edited = synced("schedules", "edit", "hello", "--priority", "high", "--overlap", "queue", "--jitter", "30s")
    assert "changed hello: At 09:00 on Monday" in edited.stderr
    (facts,) = [one for one in synced.data("schedules", "list") if one["id"] == "hello"]
    assert (facts["task"], facts["args"], facts["kwargs"]) == ("jobs.greet", ["ann"], {"times": 2})
    assert (facts["tz"], facts["priority"], facts["overlap"], facts["version"]) == ("Europe/Paris", 10, "queue", 2)


def test_a_schedule_that_is_faster_than_its_task_is_warned_of(synced):
    app = App(f"sqlite:///{synced.folder / '.rota' / 'rota.db'}")
    now = app.open().now()
    claimed = running_job(app.open(), now=now - 3 * HOUR, task="jobs.greet", queue="slow")
    assert succeed(app.open(), claimed, now=now - HOUR) == []
    app.close()
    added = synced("schedules", "add", "often", "greet", "ann", "--every", "1h")
    assert "a run of jobs.greet usually takes 2h, and two of its runs are only 1h apart" in added.stderr
    assert "usually takes" not in synced("schedules", "edit", "often", "--every", "3h").stderr
    assert "only 30m apart" in synced("schedules", "edit", "often", "--every", "30m").stderr


def test_the_key_of_its_jobs_is_said_by_hand(synced):
    def key() -> tuple[str, str]:
        (facts,) = [one for one in synced.data("schedules", "list") if one["id"] == "hello"]
        return facts["key"], facts["key_for"]

    synced("schedules", "add", "hello", "greet", "ann", "--every", "1h", "--key", "mine", "--key-for", "1.5s")
    assert key() == ("mine", "1s500ms")
    synced("schedules", "edit", "hello", "--key", "other")
    assert key() == ("other", "1s500ms")
    synced("schedules", "edit", "hello", "--key-for", "")
    assert key() == ("other", None)


def test_a_schedule_that_was_added_by_hand_is_edited_instead(synced):
    add = ("schedules", "add", "mine", "greet", "a", "--every", "5m")
    synced(*add)
    assert "`rota schedules edit mine` changes it" in synced(*add, code=2).stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["add", "x", "greet", "a"], 2, "when is it to run?"),
        (["add", "x", "greet", "a", "--every", "5m", "--cron", "* * * * *"], 2, "give one of them"),
        (["add", "x", "nope", "--every", "5m"], 5, "no task is named 'nope'"),
        (["add", "x y", "greet", "a", "--every", "5m"], 2, "x y"),
        (["add", "x", "greet", "a", "--cron", "99 * * * *"], 2, "99 is out of range"),
        (["add", "x", "greet", "a", "--every", "5m", "--tz", "Mars/Base"], 2, "Mars/Base"),
        (
            ["add", "x", "greet", "a", "--every", "5m", "--start", "2027-01-02T00:00Z", "--end", "2027-01-01T00:00Z"],
            2,
            "end lies before its start",
        ),
        (
            ["add", "report", "greet", "a", "--every", "5m"],
            6,
            "is defined by the code of app 'app', so you cannot change it; edit it there, or choose another id",
        ),
        (["edit", "nobody", "--queue", "mail"], 5, "no schedule has the id 'nobody'"),
        (["add", "x", "greet", "a", "--every", "5m", "--key-for", "1h"], 2, "needs a key="),
        (["add", "x", "greet", "a", "--every", "5m", "--key", "k", "--key-for", "0s"], 2, "between 1ms and 100 years"),
        (["edit", "report", "--key-for", "1h"], 2, "add --key TEXT"),
        (["edit", "report", "--key", ""], 2, "use 1 to 255 characters"),
        (["edit", "report"], 2, "nothing is to be changed"),
        (["edit", "report", "--queue", "mail"], 6, "is defined by the code of app 'app'"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(synced, words, code, said):
    before = synced.data("schedules", "list")
    assert said in synced("schedules", *words, code=code).stderr
    assert synced.data("schedules", "list") == before


def test_a_plan_of_what_is_deployed_already_is_empty(synced):
    assert synced("schedules", "plan", "--check").stdout == "nothing would change\n"


def test_a_plan_shows_runs_before_and_after_and_apply_does_it(rota):
    rota.sync()
    jobs = rota.folder / "jobs.py"
    text = jobs.read_text().replace('cron("0 9 * * mon-fri"', 'cron("0 10 * * mon-fri"')
    jobs.write_text(text.replace("def tick(): ...", "def tock(): ...", 1))
    del sys.modules["jobs"]
    planned = rota("schedules", "plan", "--check", code=1).stdout
    assert "~ report  re-time" in planned
    assert "- tick  retire" in planned
    assert "+ tock  add" in planned
    assert "next runs were:" in planned
    assert {one["id"]: one["kind"] for one in rota.data("schedules", "plan")} == {
        "report": "re-time",
        "tick": "retire",
        "tock": "add",
    }
    assert "applied 3 changes" in rota("schedules", "apply").stderr
    assert {one["id"]: one["state"] for one in rota.data("schedules", "list")}["tick"] == "retired"
    assert rota("schedules", "plan").stdout == "nothing would change\n"


def test_a_plan_changes_nothing(rota):
    assert "+ report  add" in rota("schedules", "plan").stdout
    assert not (rota.folder / ".rota").exists()
    rota("migrate")
    assert "+ report  add" in rota("schedules", "plan").stdout
    assert rota.data("schedules", "list") == []
