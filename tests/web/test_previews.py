"""A preview says what a schedule's times would be, by the rule that saving it applies, and changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from starlette.testclient import TestClient

from rota import App, cron, every
from rota.errors import BadOption, ScheduleNotFound
from rota.testing import Kit, ManualClock


@pytest.fixture
def shop():
    clock = ManualClock("2026-11-16T12:00:00Z")
    with Kit(App("memory://"), clock) as kit:

        @kit.app.task(name="slow")
        def slow() -> None:
            kit.travel("40m")

        kit.app.schedules.put("daily", slow.job(), cron("30 3 * * *", tz="Europe/Riga"))
        kit.travel("1d")
        yield kit.app


def test_a_preview_is_what_saving_gives(shop):
    times = cron("0 9 * * mon-fri", tz="Europe/Riga")
    seen = shop.schedules.preview(times, schedule_id="daily")
    assert seen.before.sentence == "At 03:30 every day, Europe/Riga time"
    assert (seen.before.week, seen.week) == (7, 5)
    version = shop.schedules.get("daily").version
    shop.schedules.put("daily", shop.__rota_tasks__.get("slow").job(), times, expect_version=version)
    saved = shop.schedules.next_runs("daily", 10)
    assert [run.local for run in seen.runs] == [run.isoformat() for run in saved]


def test_it_warns_with_dates_and_of_runs_that_are_too_long(shop):
    seen = shop.schedules.preview(every("30m"), schedule_id="daily")
    (slow,) = [one.message for one in seen.warnings if one.kind == "slow"]
    assert slow.startswith("a run of slow usually takes 40m, and two of its runs are only 30m apart: ")
    (new,) = [one for one in shop.schedules.preview(every("30m"), task="slow").warnings if one.kind == "slow"]
    assert (new.message, new.values) == (slow, {"task": "slow", "took": "40m", "apart": "30m"})
    assert shop.schedules.preview(every("30m"), task="other").warnings == []
    assert shop.schedules.preview(every("40m"), task="slow").warnings == []
    found = shop.schedules.preview(cron("30 3 * * *", tz="Europe/Riga")).warnings
    assert [(one.kind, one.at.isoformat()) for one in found] == [
        ("gap", "2027-03-28T04:00:00+03:00"),
        ("repeat", "2027-10-31T03:00:00+02:00"),
    ]
    assert {one.kind for one in shop.schedules.preview(cron("0 9 31 * 1")).warnings} == {"day-or"}
    assert {one.kind for one in shop.schedules.preview(cron("0 9 31 * *")).warnings} == {"rare-date"}


def test_a_pause_does_not_hide_the_times(shop):
    shop.schedules.pause("daily")
    assert len(shop.schedules.preview(every("1h"), schedule_id="daily").before.runs) == 10


def test_what_would_never_run_or_is_not_there_is_refused(shop):
    with pytest.raises(BadOption, match="would never run"):
        shop.schedules.preview(cron("0 0 * * *"), end=datetime(2026, 1, 1, tzinfo=UTC))
    with pytest.raises(ScheduleNotFound):
        shop.schedules.preview(every("1h"), schedule_id="nothing")


def test_a_reader_may_ask_over_http(stage):
    body = {"trigger": {"cron": "30 2 * * *"}, "tz": "America/New_York", "n": 3}
    answer = stage.ask("POST", "/api/v1/preview", "read", json=body).json()
    assert answer["sentence"] == "At 02:30 every day, America/New_York time"
    assert len(answer["runs"]) == 3
    assert {one["kind"] for one in answer["warnings"]} == {"gap"}
    assert answer["before"] is None
    refused = stage.ask("POST", "/api/v1/preview", "read", json={"trigger": {"cron": "61 * * * *"}})
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, "trigger")


def test_saving_over_http_warns_of_runs_that_are_too_long(shop):
    token = "a-token-of-the-tests"  # noqa: S105
    client = TestClient(shop.asgi(token=token), headers={"Authorization": f"Bearer {token}"})
    made = client.post("/api/v1/schedules", json={"id": "often", "task": "slow", "trigger": {"every": "10m"}}).json()
    assert [(one["code"], one["values"]["apart"]) for one in made["warnings"]] == [("slow", "10m")]
    patched = client.patch("/api/v1/schedules/often", json={"trigger": {"every": "5m"}}).json()
    assert [one["values"]["apart"] for one in patched["warnings"]] == ["5m"]
    assert client.patch("/api/v1/schedules/often", json={"trigger": {"every": "2h"}}).json()["warnings"] == []
    asked = {"trigger": {"every": "10m"}, "task": "slow"}
    assert [one["code"] for one in client.post("/api/v1/preview", json=asked).json()["warnings"]] == ["slow"]
