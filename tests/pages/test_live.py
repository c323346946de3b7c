"""Live pages: one stream for all tabs, parts that change in place, and a store that goes away and comes back."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from pages.sample import declare
from pages.stage import TOKEN, Door, Tab
from rota import App
from rota.errors import StoreUnavailable
from rota.web.server import WebServer


@pytest.fixture
def door():
    app = App("memory://", name="shop")
    declare(app)
    server = WebServer(app, port=0, token=TOKEN).start()
    yield Door(app, server, {})
    server.stop()
    app.close()


@contextmanager
def other_tab(tab):
    """A second tab of the same browser."""
    page = tab.page.context.new_page()
    yield Tab(page, tab.door)
    page.close()


def enqueue(door, name):
    return door.app.__rota_tasks__.get("mail.send").enqueue(name)


def test_a_new_job_appears_by_itself_and_nothing_moves_while_a_row_is_ticked(browser, door):
    enqueue(door, "first@example.org")
    with Tab.open(browser, door) as tab:
        tab.go("/jobs")
        tab.page.wait_for_selector("#live:not(.off)")
        enqueue(door, "second@example.org")
        tab.page.wait_for_selector("text=second@example.org")
        tab.page.check("tr:has-text('first@example.org') input[name=job]")
        enqueue(door, "third@example.org")
        with other_tab(tab) as other:  # it hears of the third job, and so has the first tab
            other.go("/jobs")
            other.page.wait_for_selector("#live:not(.off)")
            enqueue(tab.door, "fourth@example.org")
            other.page.wait_for_selector("text=fourth@example.org")
        assert "third@example.org" not in tab.text()
        tab.page.uncheck("tr:has-text('first@example.org') input[name=job]")
        tab.page.wait_for_selector("text=third@example.org")


def test_what_has_the_focus_keeps_it_while_its_row_changes_and_moves(browser, door):
    job = enqueue(door, "first@example.org")
    with Tab.open(browser, door) as tab:
        tab.go("/jobs")
        tab.page.wait_for_selector("#live:not(.off)")
        for part in ("input", "a"):
            tab.page.focus(f"tr[data-key='{job.id}'] {part}")
            enqueue(door, f"{part}@example.org")
            door.app.jobs.cancel(job.id) if part == "input" else door.app.jobs.retry(job.id)
            shown = "Cancelled" if part == "input" else "Queued"
            tab.page.wait_for_selector(f"tr[data-key='{job.id}']:has-text('{shown}')")
            tab.page.wait_for_selector(f"text={part}@example.org")
            focused = tab.page.evaluate(
                "[document.activeElement.tagName, document.activeElement.closest('tr')?.dataset.key]"
            )
            assert focused == [part.upper(), job.id]


def test_a_page_follows_the_time_when_no_event_comes(browser, door):
    with Tab.open(browser, door) as tab:
        tab.go("/nodes")
        first = tab.page.wait_for_selector("#live:not(.off) time").get_attribute("datetime")
        changed = "first => document.querySelector('#live time').dateTime !== first"
        tab.page.wait_for_function(changed, arg=first)
        assert tab.page.locator("#live:not(.off)").count() == 1


def test_eight_tabs_share_one_stream(browser, door):
    context = browser.new_context()
    try:
        first = Tab(context.new_page(), door)
        first.log_in()
        tabs = [first, *(Tab(context.new_page(), door) for _ in range(7))]
        for tab in tabs:
            tab.go("/jobs")
        for tab in tabs:
            tab.page.wait_for_selector("#live:not(.off)")
        assert len(door.server.web.hub._open) == 1
        enqueue(door, "all@example.org")
        for tab in tabs:
            tab.page.bring_to_front()
            tab.page.wait_for_selector("text=all@example.org")
        first.page.close()
        other = tabs[1]
        other.page.bring_to_front()
        enqueue(door, "later@example.org")
        other.page.wait_for_selector("text=later@example.org")  # another tab has taken over the stream
    finally:
        context.close()


def test_a_refused_stream_leaves_what_is_typed_and_the_page_asks_for_news_by_itself(browser, door):
    with Tab.open(browser, door) as tab:
        tab.page.route("**/events", lambda route: route.fulfill(status=429, body="too many streams"))
        tab.go("/jobs")
        tab.page.fill("#q", "half a sear")
        with tab.page.expect_response("**/events"):  # it tries again after a while
            pass
        assert tab.page.input_value("#q") == "half a sear"
        tab.page.evaluate("document.activeElement.blur()")
        enqueue(door, "unheard@example.org")
        tab.page.wait_for_selector("text=unheard@example.org")
        assert tab.page.input_value("#q") == "half a sear"
        tab.page.unroute("**/events")
        tab.page.wait_for_selector("#live:not(.off)")


def test_a_store_that_is_away_is_said_and_the_page_comes_back(browser, door, monkeypatch):
    with Tab.open(browser, door) as tab:
        tab.go("/jobs")
        tab.page.wait_for_selector("#live:not(.off)")
        store = door.app.open()
        listing = type(store).list_jobs

        def away(*_: object, **__: object) -> None:
            raise StoreUnavailable("the store does not answer")

        with monkeypatch.context() as patch:
            patch.setattr(type(store), "list_jobs", away)
            tab.page.wait_for_selector("#away:not([hidden])")  # the open page says that it gets no news
            patch.setattr(type(store), "list_jobs", listing)
            tab.page.wait_for_selector("#away", state="hidden")
            patch.setattr(type(store), "list_jobs", away)
            answer = tab.go("/jobs")
            assert answer.status == 503
            assert tab.shows("The store does not answer")
            patch.setattr(type(store), "list_jobs", listing)
            tab.page.wait_for_selector("h1:has-text('Jobs')")


def test_a_revoked_token_ends_the_session_of_an_open_page(browser, door):
    made = door.app.tokens.create("ann", role="read")
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(f"{door.url}/login")
        page.fill("#token", made.secret)
        page.click("button:has-text('Log in')")
        page.wait_for_selector(".frame")
        page.goto(f"{door.url}/jobs")
        page.wait_for_selector("#live:not(.off)")
        door.app.tokens.revoke(made.id)
        enqueue(door, "unseen@example.org")
        page.wait_for_selector("#token")
        assert "unseen@example.org" not in page.content()
    finally:
        context.close()


def test_logging_out_ends_the_stream_of_the_other_tabs(browser, door):
    with Tab.open(browser, door) as tab:
        tab.go("/jobs")
        tab.page.wait_for_selector("#live:not(.off)")
        with other_tab(tab) as other:
            other.go("/jobs")
            other.page.click("button:has-text('Log out')")
            other.page.wait_for_selector("#token")
        enqueue(door, "unseen@example.org")
        tab.page.wait_for_selector("#token")
        assert "unseen@example.org" not in tab.page.content()
        tab.errors.clear()


def test_keys_go_places_and_focus_the_search(browser, door):
    with Tab.open(browser, door) as tab:
        tab.go("/")
        tab.page.keyboard.press("g")
        tab.page.keyboard.press("j")
        tab.page.wait_for_url("**/jobs")
        tab.page.keyboard.press("/")
        assert tab.page.evaluate("document.activeElement.id") == "q"
        tab.page.keyboard.press("Escape")
        tab.page.evaluate("document.activeElement.blur()")
        tab.page.keyboard.press("?")
        assert tab.page.locator("#keys").is_visible()


def test_the_theme_and_the_language_are_kept(browser, door):
    with Tab.open(browser, door, color_scheme="light") as tab:
        tab.go("/jobs")
        tab.page.click("button:has-text('Dark')")
        assert tab.page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert tab.page.url.endswith("/jobs")
        tab.page.click("button:has-text('Deutsch')")
        tab.go("/")
        assert tab.page.evaluate("[document.documentElement.lang, document.documentElement.dataset.theme]") == [
            "de",
            "dark",
        ]
        assert tab.shows("Wartend")
