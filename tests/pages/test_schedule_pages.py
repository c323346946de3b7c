"""The pages about schedules: trouble first, why in two clicks, every action, and no stored text that runs a script."""

from __future__ import annotations

import re

import pytest
from msgspec import structs
from starlette.testclient import TestClient

from pages.history import HOSTILE, LONG, shop_with_a_past
from pages.stage import TOKEN, Door, Tab
from rota import App, cron, every
from rota.errors import BadOption
from rota.inspector import schedule_index
from rota.inspector.ledger import newest_occurrences, strip_ends
from rota.inspector.schedule_index import ScheduleBrief, ScheduleIndex, counted, terms_from
from rota.model.micros import SECOND, datetime_of
from rota.testing import Kit, ManualClock
from rota.web.pages.views.schedules import SHOWN, page_of
from rota.web.server import WebServer


@pytest.fixture(scope="module")
def past():
    """A shop with three weeks behind it, served."""
    with shop_with_a_past() as app:
        server = WebServer(app, port=0, token=TOKEN).start()
        yield Door(app, server, {})
        server.stop()


@pytest.fixture(scope="module")
def tab_there(browser, past):
    with Tab.open(browser, past) as tab:
        yield tab


@pytest.fixture
def there(tab_there):
    """A logged-in tab in that shop."""
    yield from tab_there.watched()


@pytest.fixture
def app():
    with Kit(App("memory://", name="shop"), ManualClock("2026-11-16T12:00:30Z")) as kit:

        @kit.app.task(name="mail.send")
        def send(to: str = "") -> None: ...

        kit.app.schedules.put("daily", send.job("ann"), cron("0 9 * * *", tz="Europe/Riga"))
        kit.app.schedules.put("tick", send.job("bob"), every("10m"))
        yield kit.app


@pytest.fixture
def client(app):
    client = TestClient(app.asgi(token=TOKEN), follow_redirects=False)
    client.post("/login", data={"token": TOKEN})
    return client


def form_token(client, path="/schedules") -> str:
    return re.search(r'name="_form" value="([0-9a-f]{32})"', client.get(path).text)[1]


def act(client, schedule_id, **fields):
    return client.post(f"/schedules/{schedule_id}/act", data={"_form": form_token(client), **fields})


# In a browser.


@pytest.mark.parametrize(
    ("viewer", "schedule", "beside"),
    [
        ("Europe/Riga", "tick", ["UTC", "Europe/Riga"]),
        ("Europe/Riga", "daily", ["Europe/Riga", "UTC"]),
        ("UTC", "tick", ["UTC"]),
    ],
)
def test_times_stand_in_the_schedules_zone_and_one_more(client, viewer, schedule, beside):
    """UTC; for a schedule that runs by UTC, the viewer's own zone. A zone is not shown twice."""
    client.cookies.set("rota_zone", viewer)
    edit = client.get(f"/schedules/{schedule}/edit").text
    heads = re.search(r"<thead><tr>(.*?)</tr></thead>", edit.partition('id="h-n"')[2])[1]
    assert re.findall(r">([A-Za-z/]+)</th>", heads)[: len(beside)] == beside
    assert heads.count("UTC") == 1
    page = client.get(f"/schedules/{schedule}").text
    assert f'<span class="end">{", ".join(beside)}</span>' in page
    assert f"every expected time in {viewer}, newest first" in page


def test_why_is_two_clicks_from_the_first_page(there):
    there.go("/")
    there.page.click("#next a:has-text('rates-fetch')")
    assert "no scheduler is running to fire it" in there.page.inner_text("#why")
    assert "Start one: rota run" in there.page.inner_text("#why")
    there.go("/schedules")
    there.page.click("a:has-text('reports-nightly')")
    there.page.click("#ledger tr:has-text('missed') th a")
    assert "no scheduler fired the schedule" in there.page.inner_text("#why")


def test_any_time_can_be_asked_about(there):
    there.go("/schedules/reports-nightly")
    there.page.fill("#at", "2026-06-01T12:34")
    there.page.click("text=Explain")
    assert "The schedule did not exist then" in there.page.inner_text("#why")
    assert there.page.input_value("#at") == "2026-06-01T12:34"


def test_the_ledger_says_what_became_of_each_time(there):
    there.go("/schedules/reports-nightly")
    ledger = there.page.inner_text("#ledger")
    assert "KeyError: 'vat_id'" in ledger
    assert "paused by oncall: warehouse is being moved" in ledger
    assert re.search(r"\d+ fired", ledger)  # neighbours of which nothing is to be said
    there.page.click("text=only exceptions")
    only = there.page.inner_text("#ledger")
    assert "KeyError: 'vat_id'" in only
    assert "It ran in time" not in only


def test_the_pages_of_schedules_fit_and_serve_everybody(browser, past):
    paths = ("/schedules", "/schedules/reports-nightly", f"/schedules/{LONG}", "/schedules/feeds-partners/pause")
    with Tab.open(browser, past) as tab:
        for path in paths:
            tab.go(path)
            assert tab.faults() == [], path


def test_what_is_stored_is_shown_and_not_run(there):
    there.go(f"/schedules/{LONG}")
    assert HOSTILE in there.text()
    there.go("/schedules")
    assert there.errors == []


def test_a_schedule_is_paused_and_resumed_without_a_script(browser, past):
    with Tab.open(browser, past, java_script_enabled=False) as tab:
        tab.go("/schedules/rates-fetch")
        tab.page.click("button:has-text('Pause')")
        tab.page.fill("#reason-d", HOSTILE)
        tab.page.click("button:has-text('Pause the schedule')")
        assert tab.shows("rates-fetch is paused")
        assert HOSTILE in tab.text()
        assert past.app.schedules.get("rates-fetch").record.pause.by == "admin"
        tab.page.click("button:has-text('Resume')")
        assert past.app.schedules.get("rates-fetch").is_paused is False


def test_removing_asks_first(browser, past):
    past.app.schedules.put("gone-soon", past.app.__rota_tasks__.get("quick").job(), every("1h"))
    with Tab.open(browser, past) as tab:
        tab.go("/schedules/gone-soon")
        tab.page.click("button:has-text('Remove…')")
        tab.page.click("#ask-remove button:has-text('Leave it as it is')")
        assert past.app.schedules.get("gone-soon")
        tab.page.click("button:has-text('Remove…')")
        tab.page.click("button:has-text('Remove the schedule')")
        tab.page.wait_for_url("**/schedules")
        assert tab.shows("gone-soon was removed")
        assert "gone-soon" not in tab.page.inner_text("#list")


# Without one.


def test_every_action_does_what_the_api_does(app, client):
    assert act(client, "tick", verb="run").headers["Location"] == "/schedules/tick"
    assert app.schedules.get("tick").run_count == 1
    act(client, "tick", verb="pause", reason="month end", until="2026-11-18T09:00")
    pause = app.schedules.get("tick").record.pause
    assert (pause.reason, pause.by) == ("month end", "admin")
    act(client, "tick", verb="resume")
    assert app.schedules.get("tick").record.pause is None
    act(client, "tick", verb="disable")
    assert app.schedules.get("tick").is_enabled is False
    assert act(client, "tick", verb="enable", **{"from": "/schedules"}).headers["Location"] == "/schedules"
    assert app.schedules.get("tick").is_enabled is True
    assert act(client, "tick", verb="remove").headers["Location"] == "/schedules"
    assert [view.id for view in app.schedules.list().items] == ["daily"]
    assert act(client, "daily", verb="explode").status_code == 422
    assert act(client, "nothing", verb="resume").status_code == 404


def test_a_pause_ends_at_a_time_in_the_schedules_zone(app, client):
    act(client, "daily", verb="pause", until="2026-11-18T09:00")
    assert app.schedules.get("daily").record.pause.until == 1_794_985_200 * SECOND  # 07:00 UTC


def test_a_reader_has_no_buttons_and_changes_nothing(app):
    reader = TestClient(app.asgi(token=TOKEN), follow_redirects=False)
    reader.post("/login", data={"token": app.tokens.create("eve", role="read").secret})
    for path in ("/schedules", "/schedules/tick"):
        assert "/act" not in reader.get(path).text
    assert act(reader, "tick", verb="disable").status_code == 403
    assert app.schedules.get("tick").is_enabled is True


def test_a_run_that_has_passed_is_overdue_and_not_upcoming(app, client):
    app.open()._clock.travel("45m")  # nobody is alive
    page = client.get("/schedules/tick").text
    assert "35 min overdue" in page
    assert "no scheduler has run yet" in page
    assert "Next in" not in page


def test_the_list_is_found_by_its_address(client):
    assert "tick" in client.get("/schedules?q=tz:UTC").text
    listed = client.get("/schedules?q=daily+task:mail.*+state:well").text.split('id="list"')[1]
    assert "/schedules/daily" in listed
    assert "/schedules/tick" not in listed
    assert "is no state of a schedule" in client.get("/schedules?q=state:sleepy").text
    assert client.get("/schedules/no%20such").status_code == 404
    assert client.get("/schedules/nothing").status_code == 404


def test_a_german_reads_why_in_german(client):
    client.cookies.set("rota_language", "de")
    page = client.get("/schedules/tick").text
    assert "Warum lief er nicht?" in page
    assert "fällig in 10 min" in page


# Pages of many.


def brief(number, health="well"):
    return ScheduleBrief(id=f"s-{number:05}", health=health, task="t", queue="q", tenant="", tz="UTC")


def walked(first, later):
    """The ids on all pages, if the schedules are these on the first page and those on later ones."""
    page, is_more = page_of(first, "")
    shown = [one.id for one in page]
    while is_more:
        page, is_more = page_of(later, shown[-1])
        shown += [one.id for one in page]
    return shown


def test_pages_hold_every_schedule_by_id_with_trouble_first():
    found = [brief(number, "failing" if number in {3, 333, 700} else "well") for number in range(1_000)]
    shown = walked(found, found)
    assert shown[:4] == ["s-00003", "s-00333", "s-00700", "s-00000"]
    assert len(set(shown[:SHOWN])) == SHOWN
    assert shown[3:] == [one.id for one in found if one.id != "s-00003"]


def test_no_schedule_is_left_out_if_it_fails_or_recovers_between_pages():
    first = [brief(number, "failing" if number == 333 else "well") for number in range(1_000)]
    later = [brief(number, "failing" if number == 700 else "well") for number in range(1_000)]
    assert set(walked(first, later)) == {one.id for one in first}


@pytest.mark.parametrize("text", ["colour:red", "state:", "'open"])
def test_a_search_that_makes_no_sense_says_so(text):
    with pytest.raises(BadOption):
        terms_from(text)


def test_the_index_follows_a_change_at_once(app):
    index, store = ScheduleIndex(), app.open()
    assert {one.id: one.health for one in index.briefs(store)} == {"daily": "well", "tick": "well"}
    app.schedules.disable("tick")
    index.look_again(store, "tick")
    assert {one.id: one.health for one in index.briefs(store)} == {"daily": "well", "tick": "disabled"}
    app.schedules.remove("tick")
    index.look_again(store, "tick")
    assert [one.id for one in index.briefs(store)] == ["daily"]


def test_a_slow_reading_is_made_beside_the_visitor(app, monkeypatch):
    index, store = ScheduleIndex(), app.open()
    index.briefs(store)
    app.schedules.remove("tick")
    monkeypatch.setattr(schedule_index, "KNOWN_FOR", -1.0)
    monkeypatch.setattr(schedule_index, "QUICK", -1.0)
    readings = []
    monkeypatch.setattr(schedule_index, "run_beside", lambda *reading: readings.append(reading))
    assert [one.id for one in index.briefs(store)] == ["daily", "tick"]
    assert [one.id for one in index.briefs(store)] == ["daily", "tick"]
    ((read, *values),) = readings  # one reads, however many ask
    read(*values)
    assert [one.id for one in index.briefs(store)] == ["daily"]


def test_the_newest_times_are_found_after_the_rule_was_changed():
    with Kit(App("memory://"), ManualClock("2026-11-01T00:00:00Z")) as kit:

        @kit.app.task(name="t")
        def task() -> None: ...

        kit.app.schedules.put("s", task.job(), every("1m"))
        kit.travel("20h")  # 1,200 runs
        kit.app.schedules.put("s", task.job(), cron("0 0 * * *"))
        kit.travel("2d")
        store = kit.app.open()
        schedule = store.get_schedules(["s"])[0]
        lines = newest_occurrences(store, schedule, store.now() + 1, 30)
        assert len(lines) >= 30
        assert lines[0].through_at > lines[1].through_at > lines[29].through_at
        assert lines[0].through_at == 1_793_664_000 * SECOND  # 2026-11-03T00:00Z, the newest


def test_the_strip_ends_with_the_times_of_its_first_and_last_bar():
    with Kit(App("memory://"), ManualClock("2026-11-01T00:00:30Z")) as kit:

        @kit.app.task(name="t")
        def task() -> None: ...

        kit.app.schedules.put("s", task.job(), cron("* * * * *"))
        kit.travel("40m")
        store = kit.app.open()

        def ends() -> tuple[str, ...]:
            schedule = store.get_schedules(["s"])[0]
            lines = newest_occurrences(store, schedule, store.now() + 1, 30)
            found = strip_ends(schedule, store.now(), lines, 30)
            return tuple(f"{datetime_of(at):%H:%M}" for at in found or ())

        assert ends() == ("00:11", "00:40")
        kit.app.schedules.pause("s")
        kit.travel("10m")
        assert ends() == ("00:21", "00:50")
        kit.app.schedules.resume("s")  # the ledger has the pause as one entry
        kit.travel("25m")
        assert ends() == ("00:46", "01:15")
        kit.app.schedules.pause("s")
        kit.travel("2h")
        assert ends() == ("02:46", "03:15")


def test_a_schedule_that_fails_and_is_late_is_counted_and_found_as_late():
    both = structs.replace(brief(1, "failing"), is_late=True)
    assert counted([both, brief(2)])["late"] == 1
    assert terms_from("state:late").fit(both)
    assert terms_from("state:failing").fit(both)
