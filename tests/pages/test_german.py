"""Every page in German: no sentence of the English catalogue, no reason, error or field name of the model in English.

What people wrote themselves stays as they wrote it: reasons, descriptions, errors of tasks.
"""

from __future__ import annotations

import re
from html import unescape

import pytest
from starlette.testclient import TestClient

from pages.english import english_texts
from pages.examples import addresses
from pages.history import shop_with_a_past
from pages.sample import sample_app
from pages.stage import TOKEN, Door
from rota.web.pages.page import FORM_TOKEN

# Texts of the samples themselves.
WRITTEN = (
    "no funds for", "the disk is full", "Write a report of one day.", "the warehouse moves", "the invoice is open",
    "the importer runs", "the webhook answered with status 503", "not wanted any more", "did not answer in 30 s",
    "mail to ann0@example.org", "partner moves its API", "warehouse is being moved", "Exchange rates, for the prices",
    "for the test", "state:failed", "state:paused", "true oder false",
    "scheduled, queued, running, succeeded, failed, cancelled, held",
)  # fmt: skip
IN_GERMAN = {"Accept-Language": "de-AT, de;q=0.9", "Accept": "text/html"}


class German:
    """A visitor who reads German, and what they read."""

    def __init__(self, app) -> None:
        self.client = TestClient(app.asgi(token=TOKEN), headers=IN_GERMAN)
        self.client.post("/login", data={"token": TOKEN})
        page = self.client.get("/schedules/new").text
        self.form_token = re.search(rf'name="{FORM_TOKEN}" value="([^"]+)"', page)[1]

    def read(self, path: str) -> str:
        return self.client.get(path).text

    def send(self, path: str, **fields: str) -> str:
        """The answer to a form; what follows a redirect is the page after it."""
        return self.client.post(path, data={**fields, FORM_TOKEN: self.form_token}).text


@pytest.fixture(scope="module")
def shop():
    with sample_app() as (app, ids):
        app.jobs.retry(ids["cancelled"], by="ann")
        app.jobs.cancel(ids["cancelled"], by="ann", reason="cancelled by ann")
        yield German(app), Door(app, None, ids)


def test_no_page_says_anything_in_english(shop):
    german, door = shop
    for path in addresses(door):
        assert english_texts(german.read(path), WRITTEN) == [], path


def test_no_schedule_page_says_anything_in_english():
    with shop_with_a_past() as app:
        german = German(app)
        names = [one.id for one in app.schedules.list().items]
        for path in ("/", "/schedules", "/audit", "/agenda", *(f"/schedules/{name}" for name in names)):
            assert english_texts(german.read(path), WRITTEN) == [], path
        ledger = german.read("/schedules/reports-nightly")
        assert "Der Zeitplan war angehalten von oncall: warehouse is being moved." in unescape(ledger)


def test_an_english_page_is_seen_as_one(shop):
    english = shop[0].client.get("/schedules/nightly-report", headers={"Accept-Language": "en"}).text
    assert any("The schedule is paused" in text for text in english_texts(english, WRITTEN))


SEARCHES = [
    "/jobs?q=nonsense", "/jobs?q=state:borken", "/jobs?q=stat:failed", "/jobs?q=state:failed+state:failed",
    "/jobs?q=%22", "/jobs?q=attempts:many", "/jobs?q=task:*.x", "/jobs?q=since:yesterday", "/jobs?q=since:2026-01-01",
    "/schedules?q=%22", "/schedules?q=nope:1", "/schedules?q=state:well", "/agenda?q=nope:1",
    "/schedules/nightly-report?at=nonsense", "/schedules/nightly-report?at=2026-13-01+09:00",
    "/schedules/nothing", "/jobs/nothing", "/tenants/nothing", "/catalog/nothing", "/schedules/b%20d",
]  # fmt: skip


@pytest.mark.parametrize("path", SEARCHES)
def test_a_bad_address_is_answered_in_german(shop, path):
    assert english_texts(shop[0].read(path), WRITTEN) == []


EDITS = [
    {"kind": "cron", "cron": "61 * * * *"}, {"kind": "cron", "cron": "* * *"}, {"kind": "cron", "cron": "0 0 31 2 *"},
    {"kind": "cron", "cron": "0 0 * * FRO"}, {"kind": "cron", "cron": "@dayly"},
    {"kind": "cron", "cron": "*/90 * * * *"},
    {"kind": "cron", "cron": "0 0 1 1 1 2027"}, {"kind": "cron", "cron": "0 0 * * 1,,2"},
    {"kind": "every", "every": "5 parsecs"}, {"kind": "every", "every": "5"}, {"kind": "every", "every": "1h2h"},
    {"kind": "calendar", "at": "25:00"}, {"kind": "calendar", "on": "someday"}, {"kind": "calendar", "count": "0"},
    {"kind": "calendar", "count": "x"}, {"kind": "calendar", "nth": "2"}, {"kind": "calendar", "from": "nonsense"},
    {"kind": "calendar", "unit": "days", "on": "tue"}, {"kind": "once", "once": "nonsense"},
    {"kind": "once", "once": "1999-01-01T00:00"}, {"tz": "Europe/Rigga"}, {"tz": "Mars"}, {"id": "b d"}, {"id": ""},
    {"task": "nothing"}, {"task": ""}, {"queue": "b d"}, {"priority": "999"}, {"priority": "x"}, {"grace": "x"},
    {"jitter": "-1s"}, {"lookahead": "40d"}, {"max_runs": "0"}, {"max_runs": "x"}, {"catchup_limit": "0"},
    {"start": "nonsense"}, {"start": "2027-02-01", "end": "2027-01-01"}, {"tenant": "nobody"}, {"key": "x" * 300},
    {"args": "{"}, {"args": "{}"}, {"kwargs": "[]"}, {"overlap": "x"}, {"end": "2020-01-01T00:00:00Z"},
    {"id": "stock-levels"},
]  # fmt: skip


@pytest.mark.parametrize("fields", EDITS, ids=str)
def test_a_form_that_is_refused_says_why_in_german(shop, fields):
    given = {"id": "new-one", "task": "reports.build", "kind": "every", "every": "1h", **fields}
    answer = shop[0].send("/schedules/new", **given)
    assert english_texts(answer, WRITTEN) == []
    assert "err" in answer or "flash" in answer


def test_refused_actions_say_why_in_german(shop):
    german, door = shop
    done = door.ids["succeeded"]
    answers = [
        german.send(f"/jobs/{done}", verb="cancel"),
        german.send(f"/jobs/{done}", verb="retry"),
        german.send(f"/jobs/{door.ids['queued']}", verb="delete"),
        german.send("/tenants", name="b d", tz="Mars", queue="b d", priority="999"),
        german.send("/tenants", name="acme", tz="UTC"),
        german.send("/tenants/acme/remove", back="/tenants/acme"),
        german.send("/catalog/reports.export", **{"option.delay": "soon", "option.priority": "x"}),
        german.send("/schedules/stock-levels/act", verb="pause", until="2001-01-01T00:00", reason="for the test"),
        german.send("/schedules/nothing/act", verb="run"),
    ]
    for answer in answers:
        assert english_texts(answer, WRITTEN) == []


def test_what_happened_by_hand_is_said_in_german(shop):
    german, door = shop
    page = unescape(german.read(f"/jobs/{door.ids['cancelled']}"))
    assert "abgebrochen von ann" in page
    assert "cancelled by ann" not in page


def test_a_job_in_a_paused_queue_says_for_which_reason(shop):
    german, door = shop
    app = door.app
    job = app.jobs.get(door.ids["queued"])
    app.queues.pause(job.queue, reason="Inventur bis Montag.", by="ann")
    try:
        page = unescape(german.read(f"/jobs/{job.id}"))
    finally:
        app.queues.resume(job.queue)
    assert f"wartet in der Warteschlange {job.queue}, die angehalten ist: Inventur bis Montag. Er ist seit" in page
