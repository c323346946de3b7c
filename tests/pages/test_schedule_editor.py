"""The editor of schedules: what the server makes of the form, every kind of trigger, and two who edit one schedule."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from html import unescape

import pytest
from starlette.testclient import TestClient

from pages.history import HOSTILE
from pages.stage import TOKEN, Door, Tab
from rota import App, calendar, cron, every, once
from rota.testing import Kit, ManualClock
from rota.testing.store_suite.builders import HOUR
from rota.testing.store_suite.steps import running_job, succeed
from rota.web.pages.schedule_form import DEFAULTS, FIELDS, FormProblem, body_of, patch_of, stored_values
from rota.web.server import WebServer


@pytest.fixture
def app():
    app = App("memory://", name="shop")

    @app.schedule(every("1h"), id="declared")
    @app.task(name="tick")
    def tick() -> None: ...

    with Kit(app, ManualClock("2026-11-16T12:00:30Z")) as kit:

        @app.task(name="mail.send")
        def send(to: str = "", *, copies: int = 1, password: str = "") -> None: ...

        put = app.schedules.put
        put("daily", send.job("ann", password="hunter2"), cron("30 3 * * *", tz="Europe/Riga"), grace="10m")  # noqa: S106
        put("ten", send.job(), every("10m"))
        put("monthly", send.job(), calendar(months=1, at="00:05", start=date(2026, 1, 31)), tz="Asia/Kolkata")
        put("last", send.job(), once(datetime(2027, 1, 1, 9, tzinfo=timezone(timedelta(hours=2)))), tz="Europe/Riga")
        app.schedules.sync()
        yield kit.app


@pytest.fixture
def client(app):
    client = TestClient(app.asgi(token=TOKEN), follow_redirects=False)
    client.post("/login", data={"token": TOKEN})
    return client


@pytest.fixture
def served(app):
    server = WebServer(app, port=0, token=TOKEN).start()
    yield Door(app, server, {})
    server.stop()


def fields_of(page: str) -> dict[str, str]:
    """What a browser would send of the form, if nobody touched it."""
    form = page.split("data-preview")[1].split("</form>", maxsplit=1)[0]
    tags = re.findall(r"<input [^>]*>", form)
    sent = {}
    for tag in tags:
        name, value = re.search(r' name="([^"]*)"', tag)[1], re.search(r' value="([^"]*)"', tag)
        if 'type="radio"' not in tag or " checked" in tag:
            sent[name] = unescape(value[1]) if value else ""
    for name, options in re.findall(r'<select [^>]*name="([^"]*)">(.*?)</select>', form):
        sent[name] = re.search(r'value="([^"]*)" selected', options)[1]
    return sent


def edited(client, schedule_id, **changes):
    path = f"/schedules/{schedule_id}/edit"
    return client.post(path, data={**fields_of(client.get(path).text), **changes})


def preview_of(answer) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", answer.text.split('id="preview"')[1]))


# In a browser.


def test_the_preview_follows_what_is_typed(browser, served):
    with Tab.open(browser, served) as tab:
        tab.go("/schedules/daily/edit")
        assert "At 03:30 every day, Europe/Riga time" in tab.page.inner_text("#preview")
        tab.page.fill("#cron", "30 3,15 * * *")
        tab.page.wait_for_selector("#preview :text('At 03:30 and 15:30 every day')")
        seen = tab.page.inner_text("#preview")
        assert "14 runs in the next 7 days, 7 before" in seen
        assert "added" in seen
        assert "2027-03-28 03:30 does not exist in Europe/Riga" in seen
        assert tab.page.input_value("#cron") == "30 3,15 * * *"
        tab.page.fill("#cron", "61 * * * *")
        tab.page.wait_for_selector("#preview .note.bad")
        tab.page.fill("#cron", "0 4 * * *")
        tab.page.click("button:has-text('Save')")
        tab.page.wait_for_url("**/schedules/daily")
        assert tab.shows("daily was saved")
    assert str(served.app.schedules.get("daily").trigger).startswith("cron 0 4 * * *")


def test_a_schedule_is_made_without_a_script(browser, served):
    with Tab.open(browser, served, java_script_enabled=False) as tab:
        tab.go("/schedules/new")
        tab.page.fill("#id", "weekly")
        tab.page.check("#kind-calendar")
        tab.page.select_option("#unit", "weeks")
        tab.page.fill("#task", "mail.send")
        tab.page.fill("#args", '["ann"]')
        tab.page.fill("#description", HOSTILE)
        tab.page.click("button:has-text('Preview')")
        assert "Every week" in tab.page.inner_text("#preview")
        assert tab.page.input_value("#id") == "weekly"
        tab.page.click("button:has-text('Create the schedule')")
        assert tab.shows("weekly was created")
        assert HOSTILE in tab.text()
    assert served.app.schedules.get("weekly").task == "mail.send"


def test_the_editor_fits_and_serves_everybody(browser, served):
    with Tab.open(browser, served) as tab:
        for path in ("/schedules/new", "/schedules/daily/edit", "/schedules/declared/edit"):
            tab.go(path)
            assert tab.faults() == [], path


# Without one.


@pytest.mark.parametrize("name", ["daily", "ten", "monthly", "last"])
def test_a_form_that_nobody_touched_changes_nothing(app, client, name):
    before = app.schedules.get(name).record
    answer = edited(client, name)
    assert answer.headers["Location"] == f"/schedules/{name}"
    assert app.schedules.get(name).record == before


@pytest.mark.parametrize(
    ("changes", "trigger"),
    [
        ({"kind": "every", "every": "90s"}, "every 1m30s"),
        ({"kind": "cron", "cron": "0 9 * * mon"}, "cron 0 9 * * MON"),
        ({"kind": "calendar", "count": "2", "unit": "weeks", "at": "08:00", "on": "tue"}, "calendar weeks=2"),
        ({"kind": "once", "once": "2027-02-03T04:05"}, "once 2027-02-03T02:05:00Z"),
    ],
)
def test_every_kind_of_trigger_can_be_chosen(app, client, changes, trigger):
    assert edited(client, "daily", **changes).status_code == 303
    record = app.schedules.get("daily").record
    assert record.spec.trigger.startswith(trigger)
    assert record.spec.tz == "Europe/Riga"
    assert record.spec.grace == 600_000_000  # what was not touched stays


def test_a_default_that_may_be_secret_is_not_shown(app, client):
    @app.task(name="charge")
    def charge(api_key: str = "sk-live") -> None: ...

    page = client.get("/schedules/new?task=charge").text
    assert "charge(api_key: str = …)" in page
    assert "sk-live" not in page


def test_a_secret_stays_hidden_and_stays(app, client):
    page = client.get("/schedules/daily/edit").text
    assert "hunter2" not in page
    assert '"[redacted]"' in page
    assert edited(client, "daily", **{"arg.to": "bob"}).status_code == 303
    payload = app.schedules.get("daily").record.spec.payload
    assert "bob" in payload
    assert "hunter2" in payload


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cron": "61 * * * *"}, "cron"),
        ({"tz": "Europe/Rgia"}, "tz"),
        ({"args": "daily"}, "args"),
        ({"kwargs": "[]"}, "kwargs"),
        ({"grace": "soon"}, "grace"),
        ({"max_runs": "many"}, "max_runs"),
        ({"task": "no.such"}, "task"),
        ({"kind": "once", "once": "tomorrow"}, "once"),
    ],
)
def test_a_value_that_does_not_fit_is_said_beside_its_field_and_all_is_kept(app, client, changes, field):
    before = app.schedules.get("daily").record
    answer = edited(client, "daily", description="mine", **changes)
    assert answer.status_code == 422
    assert f'id="e-{field}"' in answer.text
    assert fields_of(answer.text)["description"] == "mine"
    assert app.schedules.get("daily").record == before


def test_of_two_editors_the_second_sees_the_firsts_change_and_loses_nothing(app, client):
    path = "/schedules/daily/edit"
    mine = fields_of(client.get(path).text)
    edited(client, "daily", grace="20m", queue="batch")  # the other one
    answer = client.post(path, data={**mine, "grace": "30m", "description": "mine"})
    assert answer.status_code == 409
    assert app.schedules.get("daily").record.spec.description == ""
    shown = unescape(answer.text.split('id="conflict"')[1].split("</section>")[0])
    assert "20m" in shown
    assert "30m" in shown
    assert "batch" in shown
    both = fields_of(answer.text)
    assert (both["grace"], both["description"], both["queue"]) == ("30m", "mine", "batch")
    assert client.post(path, data=both).status_code == 303
    spec = app.schedules.get("daily").record.spec
    assert (spec.grace, spec.description, spec.queue) == (1_800_000_000, "mine", "batch")


def test_a_firing_in_between_is_no_conflict(app, client):
    path = "/schedules/ten/edit"
    mine = fields_of(client.get(path).text)
    app.schedules.run_now("ten")  # raises the version
    assert client.post(path, data={**mine, "description": "mine"}).status_code == 303
    assert app.schedules.get("ten").description == "mine"


def test_what_code_declares_says_so_and_is_not_saved(app, client):
    page = client.get("/schedules/declared/edit").text
    assert "This schedule is declared by: the code of app" in page
    assert 'name="save"' not in page
    assert "Every 2 hours" in preview_of(edited(client, "declared", every="2h", preview="1"))
    assert edited(client, "declared", every="2h").status_code == 422
    assert str(app.schedules.get("declared").trigger).startswith("every 1h")


def test_an_id_that_is_taken_is_refused(client):
    sent = {**fields_of(client.get("/schedules/new").text), "id": "daily", "task": "mail.send"}
    answer = client.post("/schedules/new", data=sent)
    assert answer.status_code == 422
    assert "There is a schedule daily already" in answer.text


def test_the_form_is_the_body_of_the_api(app):
    stored = stored_values(app, app.schedules.get("monthly").record)
    assert set(stored) == set(FIELDS)
    assert patch_of(stored, stored, "UTC") == {}
    body = body_of(stored, "UTC")
    assert body["trigger"] == {
        "calendar": {
            "months": 1,
            "at": "00:05",
            "on": None,
            "nth": None,
            "month_end": "clamp",
            "start": "2026-01-31",
            "end": None,
        }
    }
    with pytest.raises(FormProblem, match="args: line 1, column 2 is not valid JSON"):
        body_of({**DEFAULTS, "args": "["}, "UTC")


def test_the_form_of_one_run_asks_for_its_time_and_refuses_nothing_yet(client):
    sent = {**fields_of(client.get("/schedules/new").text), "kind": "once", "once": "", "preview": "1"}
    page = client.post("/schedules/new", data=sent).text
    assert "Choose a time to see the preview." in page
    assert "is not a time" not in page
    assert "Do not create it" in page


def test_a_preview_says_a_zone_once_and_names_the_runs_that_go(client):
    said = " ".join(preview_of(edited(client, "daily", cron="30 4 * * *", preview="1")).split())
    assert "Europe/Riga time (Europe/Riga)" not in said
    assert "Next 10 runs, and those that go" in said


def test_a_new_schedule_that_is_faster_than_its_task_is_warned_of(app, client):
    now = app.open().now()
    claimed = running_job(app.open(), now=now - 3 * HOUR, task="mail.send", queue="slow")
    succeed(app.open(), claimed, now=now - HOUR)
    page = client.get("/schedules/new?task=mail.send").text
    assert "a run of mail.send usually takes 2h, and two of its runs are only 1h apart" in page
    assert "usually takes" not in client.get("/schedules/new").text
