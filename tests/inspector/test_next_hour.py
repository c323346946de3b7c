"""The runs of the next hour, minute by minute, for the strip of the first page."""

from __future__ import annotations

import pytest

from rota import App, every, once
from rota.inspector import coming
from rota.inspector.coming import next_hour
from rota.model.micros import datetime_of
from rota.testing import Kit, ManualClock


@pytest.fixture
def app():
    with Kit(App("memory://"), ManualClock("2026-11-16T12:00:30Z")) as kit:
        kit.app.task(name="noop")(lambda: None)
        yield kit.app


def put(app, name, trigger):
    app.schedules.put(name, app.__rota_tasks__.get("noop").job(), trigger)


def test_each_minute_has_its_runs(app):
    now = app.open().now()
    put(app, "one", once(datetime_of(now + 90 * 1_000_000)))
    put(app, "ten", every("10m"))
    put(app, "far", once(datetime_of(now + 2 * 3_600 * 1_000_000)))
    minutes = next_hour(app.open())
    assert minutes is not None
    assert (len(minutes), minutes[1]) == (60, 1)
    assert sum(minutes) == 1 + len(app.schedules.next_runs("ten", 5))


def test_what_runs_more_than_once_a_minute_counts_with_its_mean(app):
    put(app, "often", every("10s"))
    assert next_hour(app.open()) == [6] * 60


def test_a_schedule_that_is_paused_has_none_and_many_are_left_to_the_agenda(app, monkeypatch):
    put(app, "ten", every("10m"))
    app.schedules.pause("ten")
    assert next_hour(app.open()) == [0] * 60
    monkeypatch.setattr(coming, "MOST_OF_HOUR", 1)
    put(app, "a", every("10m"))
    put(app, "b", every("10m"))
    assert next_hour(app.open()) is None
