"""Hostile text in every stored field: it is shown as text on every page, and no script of it runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from pages.examples import STREAMS
from pages.sample import declare
from pages.stage import TOKEN, Door, Tab
from rota import App, every, once
from rota.model.jobs.job import NewJob
from rota.store.contract import LogLine, Node
from rota.web.pages.table import PAGES
from rota.web.server import WebServer

SCRIPT = "<script>window.ran=1</script><img src=x onerror=window.ran=1>'\"></a>{{7*7}}{% raw %}\u202e\x00\x1b[31m"
PLAIN = [
    page.path
    for page in PAGES
    if (page.method, page.role) == ("GET", "read") and "{" not in page.path and page.path not in STREAMS
]
OF_ONE = ("/schedules/evil-one", "/schedules/evil-one/edit", "/tenants/evil", "/catalog/evil", "/jobs/large/copy")
TURNING = """() => [...document.querySelectorAll('[title], [aria-label]')]
    .filter((one) => /\\u202e/.test(one.title + one.ariaLabel))
    .map((one) => one.outerHTML)"""  # what is read out or shown as a tooltip
TEXT = SCRIPT.replace("\x00", "")  # what stores refuse in names of their own


@pytest.fixture(scope="module")
def hostile():
    app = App("memory://", name="a-shop-with-a-name-that-is-longer-than-a-phone-is-wide", version="<i>2</i>")
    declare(app)

    @app.task(name="evil", retries=0, queue="mail", description=TEXT)
    def evil(text: str, **rest: object) -> None:
        print(text, rest)  # noqa: T201 - into its log
        raise ValueError(text)

    @app.task(name="echo", queue="mail")
    def echo(text: str) -> object:
        return {text: [text]}

    jobs = [evil.using(key=TEXT[:200]).enqueue(TEXT, note={TEXT: TEXT}), echo.enqueue(TEXT)]
    app.schedules.put("evil-one", echo.job(TEXT), every("1h"), description=TEXT)
    with app.running(queues=("mail",), concurrency=2):
        for job in jobs:
            app.jobs.wait(job.id, 60)
    held = echo.using(delay="1h").enqueue("x")
    app.jobs.cancel(held.id, reason=TEXT, by=TEXT[:100])
    app.schedules.pause("evil-one", reason=TEXT, by=TEXT[:100])
    app.tenants.put("evil", tz="UTC", description=TEXT, by=TEXT[:100])
    app.tenants.pause("evil", reason=TEXT, by=TEXT[:100])
    app.queues.pause("evil-queue", reason=TEXT, by=TEXT[:100])
    ids = _raw(app)
    server = WebServer(app, port=0, token=TOKEN).start()
    yield Door(app, server, {"failed": jobs[0].id, "succeeded": jobs[1].id, "cancelled": held.id, **ids})
    server.stop()
    app.close()


def _raw(app) -> dict[str, str]:
    """Records that another program wrote into the store."""
    store = app.open()
    store.add_jobs([NewJob(id="unreadable", task="evil", payload=b"<script>", reason=TEXT)])
    large = msgspec.json.encode([["x" * 250_000 + TEXT]])
    store.add_jobs([NewJob(id="large", task="evil", payload=large, queue="mail")])
    store.append_logs([LogLine(job_id="large", at=store.now(), level=TEXT[:20], text=TEXT)])
    node = Node(id="n", host=TEXT, pid=1, roles=("worker",), queues=(TEXT,), tasks=(TEXT,), app=TEXT, version=TEXT,
                beat_at=store.now(), started_at=store.now())  # fmt: skip
    store.record_heartbeat(node)
    return {"queued": "unreadable", "large": "large"}


def test_no_stored_text_becomes_script_or_markup(browser, hostile):
    with Tab.open(browser, hostile) as tab:
        for path in (*PLAIN, *OF_ONE, *(f"/jobs/{job_id}" for job_id in hostile.ids.values())):
            assert tab.go(path).status == 200, path
            assert tab.page.evaluate("window.ran") is None, path
            assert tab.page.locator("main script, main img").count() == 0, path
            assert "49" not in tab.page.title()
        tab.go(f"/jobs/{hostile.ids['failed']}")
        assert tab.shows("<script>window.ran=1</script>")


def test_no_stored_text_turns_the_rest_of_its_line_around(browser, hostile):
    """A right-to-left override would show what follows it, such as Rota's own words, in the wrong order."""
    with Tab.open(browser, hostile) as tab:
        for path in (*PLAIN, *OF_ONE, "/tenants/evil", *(f"/jobs/{job_id}" for job_id in hostile.ids.values())):
            tab.go(path)
            assert "\u202e" not in tab.page.title() + tab.page.inner_text("body"), path
            assert tab.page.evaluate(TURNING) == [], path
        tab.go(f"/jobs/{hostile.ids['cancelled']}")
        assert tab.shows("\\u202e")


def test_a_form_keeps_every_character_of_a_stored_text(browser, hostile):
    with Tab.open(browser, hostile) as tab:
        tab.go("/schedules/evil-one/edit")
        assert tab.page.input_value("[name='description']") == TEXT
        assert any("\u202e" in one.input_value() for one in tab.page.locator("#call input, #call textarea").all())


def test_no_text_of_an_address_becomes_script_or_markup(browser, hostile):
    with Tab.open(browser, hostile) as tab:
        for path in ("/jobs?q=", "/jobs?cursor=", "/?span=", "/login?back=", "/login?once=", "/jobs/", "/nothing/"):
            tab.page.goto(f"{hostile.url}{path}{SCRIPT.replace('%', '%25').replace(chr(0), '%00')}")
            assert tab.page.evaluate("window.ran") is None, path
            assert tab.page.locator("main script, main img").count() == 0, path


OVER = """() => [...document.querySelectorAll('.panel')]
    .filter((one) => one.scrollWidth > one.clientWidth + 1)
    .map((one) => one.outerHTML.slice(0, 80))"""


def test_names_as_long_as_a_name_may_be_leave_every_table_in_its_panel(browser, hostile):
    name = "n" * 120
    task = hostile.app.task(name=name, queue=f"q{name}")(lambda **_: None)
    task.enqueue(**{name: name})
    hostile.app.schedules.put(f"s{name}", task.job(**{name: name}), every("1h"))
    pages = ("/", "/jobs", "/schedules", "/agenda", "/queues", "/catalog", "/audit", f"/catalog/{name}")
    with Tab.open(browser, hostile) as tab:
        for path in (*pages, f"/schedules/s{name}"):
            tab.go(path)
            for width in (1440, 390):
                tab.page.set_viewport_size({"width": width, "height": 844})
                assert (tab.width() <= width, tab.page.evaluate(OVER)) == (True, []), (path, width)
            menu = tab.page.locator(".menu-btn").bounding_box()
            assert menu["x"] + menu["width"] <= 390, path


def test_runs_of_other_days_leave_the_first_page_as_wide_as_a_phone(browser):
    """A time of another day is shown with its date, as most are shortly before midnight."""
    app = App("memory://", name="nightly")
    task = app.task(name="n" * 120)(lambda: None)
    for number in range(3):
        app.schedules.put(f"{number}-{'s' * 100}", task.job(), once(datetime.now(UTC) + timedelta(days=2 + number)))
    server = WebServer(app, port=0, token=TOKEN).start()
    try:
        with Tab.open(browser, Door(app, server, {})) as tab:
            tab.page.set_viewport_size({"width": 390, "height": 844})
            tab.go("/")
            assert tab.page.locator("#next tbody tr").count() == 3
            assert (tab.width() <= 390, tab.page.evaluate(OVER)) == (True, [])
    finally:
        server.stop()
        app.close()


def test_the_policy_refuses_a_script_that_no_page_brings(browser, hostile):
    with Tab.open(browser, hostile) as tab:
        tab.go("/")
        tab.page.evaluate(
            "() => { const one = document.createElement('script'); one.textContent = 'window.ran = 1';"
            " document.body.append(one); }"
        )
        assert tab.page.evaluate("window.ran") is None
        assert "Content Security Policy" in tab.errors.pop()


def test_a_payload_of_250_kilobytes_is_cut_and_an_unreadable_one_is_said(browser, hostile):
    with Tab.open(browser, hostile, viewport={"width": 390, "height": 844}) as tab:
        tab.go("/jobs/large")
        assert len(tab.page.content()) < 100_000
        assert tab.width() <= 390
        tab.go("/jobs/large/copy")
        assert tab.shows("too large for this form")
        tab.go("/jobs/unreadable")
        assert tab.shows("The job cannot be run: the payload cannot be read")
        assert tab.width() <= 390
