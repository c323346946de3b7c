"""The agenda: what became of the times of a week, what is to come, and whether there is room for it."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

import pytest
from starlette.testclient import TestClient

from pages.stage import TOKEN
from rota import App, cron, every
from rota.inspector.lanes import STEPS, Window, at_once, read_lanes, read_load
from rota.inspector.reading import all_schedules
from rota.model.micros import SECOND, micros_of
from rota.store.contract import Node
from rota.testing import Kit, ManualClock
from rota.web.pages.views.agenda import chosen_days

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
WEEK = 7 * 86_400 * SECOND
HOUR = 3_600 * SECOND


@pytest.fixture(scope="module")
def shop():
    """A shop on Wednesday noon, in the middle of a week."""
    app = App("memory://", name="shop")

    @app.schedule(cron("0 3 * * *"), id="nightly")
    @app.task(retries=0)
    def nightly() -> None:
        if app.open().now() > micros_of(datetime(2026, 11, 18, tzinfo=UTC)):
            raise ValueError("no disk")

    @app.schedule(every("5m"), id="rates", queue="rates")
    def rates() -> None: ...

    @app.schedule(cron("0 3 * * fri"), id="backup")
    def backup() -> None: ...

    @app.schedule(cron("0 6 * * *"), id="partners")
    def partners() -> None: ...

    with Kit(app, ManualClock(MONDAY), raise_errors=False) as kit:
        kit.travel("30h")
        app.schedules.pause("partners", reason="a holiday")
        kit.travel("30h")
        store = app.open()
        worker = Node(id="w", host="h", pid=1, roles=("worker",), queues=("default",), concurrency=1)
        store.record_heartbeat(worker, now=store.now())
        yield app


@pytest.fixture
def window(shop) -> Window:
    return Window(micros_of(MONDAY), micros_of(MONDAY) + WEEK, shop.open().now())


def lane_of(shop, name, window):
    store = shop.open()
    return read_lanes(store, store.get_schedules([name]), window)[0]


def test_a_lane_has_the_past_and_what_is_to_come(shop, window):
    lane = lane_of(shop, "nightly", window)
    bars = sorted((bar.at, bar.tone) for bar in lane.bars)
    days = [micros_of(datetime(2026, 11, day, 3, tzinfo=UTC)) for day in range(16, 23)]
    assert bars == list(zip(days, ["ok", "ok", "bad", "next", "next", "next", "next"], strict=True))
    assert (lane.coming, lane.is_often) == (4, False)


def test_a_paused_schedule_shows_what_its_pause_leaves_out(shop, window):
    lane = lane_of(shop, "partners", window)
    assert [bar.tone for bar in sorted(lane.bars, key=lambda bar: bar.at)] == ["ok", "ok", *["skip"] * 5]
    assert lane.coming == 0


def test_what_runs_oftener_than_hourly_is_a_band(shop, window):
    lane = lane_of(shop, "rates", window)
    assert lane.is_often
    assert lane.bars == []
    assert lane.coming == (7 * 24 - 60) * 12 - 1  # the last one belongs to the next week
    assert lane.is_uncounted
    later = Window(window.end, window.end + WEEK, window.now)
    assert not lane_of(shop, "rates", later).is_uncounted  # nothing can have succeeded there yet


def test_the_load_counts_runs_that_are_open_at_one_instant(shop, window):
    load = read_load(shop.open(), all_schedules(shop.open()), window, None, is_all=True)
    assert (load.peak, load.slots, load.counted, load.is_partial) == (2, 1, 3, False)  # two at 03:00
    assert load.peak_at == micros_of(datetime(2026, 11, 20, 3, tzinfo=UTC))
    assert max(load.coming[:120]) == 0  # what is over is not expected


def test_short_runs_are_expected_one_at_a_time(shop, window):
    store = shop.open()
    load = read_load(store, store.get_schedules(["rates"]), window, None, is_all=False)
    assert 0 < max(load.coming) < 0.5  # on average
    assert load.peak == 1


def test_a_span_that_ends_when_another_begins_needs_no_second_place():
    week = Window(0, WEEK, 0)
    step = WEEK // STEPS
    assert max(at_once([(0, HOUR), (HOUR, 2 * HOUR)], week, step)) == 1
    assert max(at_once([(0, HOUR + 1), (HOUR, 2 * HOUR)], week, step)) == 2
    long = at_once([(0, WEEK)], week, step)
    assert long == [1.0] * STEPS


@pytest.mark.parametrize(
    ("day", "week", "chosen"),
    [
        ("", "", (False, date(2026, 11, 16))),
        ("", "2026-11-22", (False, date(2026, 11, 16))),
        ("2026-11-22", "", (True, date(2026, 11, 22))),
        ("nonsense", "", (True, date(2026, 11, 18))),
        ("9999-12-31", "", (True, date(2026, 11, 18))),
        ("0001-01-01", "", (True, date(2026, 11, 18))),
    ],
)
def test_the_address_says_which_days(day, week, chosen):
    assert chosen_days(day, week, date(2026, 11, 18)) == chosen


@pytest.fixture(scope="module")
def client(shop):
    return TestClient(
        shop.asgi(token=TOKEN), headers={"Authorization": f"Bearer {TOKEN}"}, cookies={"rota_zone": "UTC"}
    )


def test_the_page_says_where_there_is_no_room_and_puts_trouble_first(client):
    page = client.get("/agenda?week=2026-11-18").text
    assert "2 jobs are expected at once, and the workers have room for 1" in page
    assert re.findall(r'<div class="lane-l"><a href="/schedules/([a-z]+)"', page)[0] == "nightly"
    assert page.count('class="m-bad" d=') == 2  # the key and the failed night
    assert 'class="m-band"' in page
    assert "load-over" in page


def test_the_page_searches_and_shows_a_day(client):
    page = client.get("/agenda?day=2026-11-20&q=queue:rates").text
    assert re.findall(r'<div class="lane-l"><a href="/schedules/([a-z]+)"', page) == ["rates"]
    assert "00:00" in page
    assert 'value="2026-11-20"' in page
    assert "is no filter" in client.get("/agenda?q=colour:red").text


@pytest.mark.parametrize("zone", ["Europe/Riga", "America/New_York", "Asia/Kolkata", "Pacific/Apia"])
@pytest.mark.parametrize("query", ["week=2026-10-25", "day=2026-10-25", "day=2026-11-01", "week=2027-03-28", "page=99"])
def test_days_with_a_clock_change_have_a_page(client, zone, query):
    assert client.get(f"/agenda?{query}", headers={"Cookie": f"rota_zone={zone}"}).status_code == 200
