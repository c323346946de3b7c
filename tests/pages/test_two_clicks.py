"""Why did my run not happen? From the first page, two clicks give the answer: for a skipped, a missed, an overlapped, a
paused and a late run."""

from __future__ import annotations

import pytest

from pages.stage import TOKEN, Door, Tab
from rota import App, every
from rota.testing import Kit, ManualClock
from rota.web.server import WebServer

ANSWERS = {  # what the page says of the last expected time of each schedule
    "overlapped": ("skipped.overlap", "had not ended"),
    "paused": ("open.paused", "paused by ann: the disk is full"),
    "disabled": ("open.disabled", "The schedule is disabled"),
    "dropped": ("skipped.missed", "no scheduler fired the schedule from"),
    "made-up": ("late.made_up", "It was missed, and made up for"),
    "waiting": ("waiting.queue_paused", "which is paused"),
    "failed": ("ran.failed", "ValueError: no paper"),
    "overdue": ("due.no_scheduler", "no scheduler is running to fire it"),
}


@pytest.fixture(scope="module")
def door():
    app = App("memory://", name="shop")

    @app.task(name="work", retries=0)
    def work(*, paper: bool = True) -> None:
        if not paper:
            raise ValueError("no paper")

    with Kit(app, ManualClock("2026-11-16T12:00:00Z")) as kit:
        _fill(app, kit, work)
        server = WebServer(app, port=0, token=TOKEN).start()
        yield Door(app, server, {})
        server.stop()


def _fill(app, kit, work) -> None:
    put = app.schedules.put
    app.queues.pause("stuck", reason="the disk is full", by="ann")
    put("overlapped", work.using(queue="stuck").job(), every("1h"), overlap="skip")
    put("paused", work.job(), every("1h"))
    put("disabled", work.job(), every("1h"))
    put("dropped", work.job(), every("3h"), catchup="skip", grace="1m")
    kit.travel("2h10m")
    app.schedules.pause("paused", reason="the disk is full", by="ann")
    app.schedules.disable("disabled", by="ann")
    put("failed", work.job(paper=False), every("1h"))
    put("made-up", work.job(), every("2h"), catchup="latest", grace="1m")
    kit.clock.travel("2h30m")  # nothing is alive
    kit.travel("1m")
    put("waiting", work.using(queue="stuck").job(), every("10m"))
    put("overdue", work.job(), every("15m"))
    kit.travel("12m")
    kit.clock.travel("5m")  # nothing is alive again


def test_why_it_did_not_run_is_two_clicks_from_the_first_page(browser, door):
    with Tab.open(browser, door, java_script_enabled=False) as tab:
        for name, (code, sentence) in ANSWERS.items():
            tab.go("/")
            tab.page.click("nav a:has-text('Schedules')")
            tab.page.click(f"#list a:text-is('{name}')")
            assert tab.page.get_attribute("#why [data-code]", "data-code") == code
            assert sentence in tab.page.inner_text("#why"), name
