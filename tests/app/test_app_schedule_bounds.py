"""app.schedules: bounds that are dates, and edits that race."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from rota import BadOption, VersionConflict, calendar, every


@pytest.fixture
def tick(app):
    @app.task(name="shop.tick")
    def tick() -> None: ...

    return tick


@pytest.fixture
def soon(app, tick):
    return app.schedules.put("soon", tick.job(), every("10s"))


def test_an_end_date_is_the_end_of_that_local_day(app, tick):
    app.schedules.put(
        "local",
        tick.job(),
        calendar(days=1, at="23:30", tz="America/New_York"),
        start=date(2026, 12, 1),
        end=date(2026, 12, 3),
    )
    runs = app.schedules.next_runs("local", 10, after=datetime(2026, 11, 1, tzinfo=UTC))
    assert [run.isoformat() for run in runs] == [f"2026-12-0{day}T23:30:00-05:00" for day in (1, 2, 3)]


def test_a_bound_that_is_no_time_is_refused(app, tick):
    with pytest.raises(BadOption, match="end='tomorrow' must be an aware datetime or a date"):
        app.schedules.put("local", tick.job(), every("1h"), end="tomorrow")


@pytest.mark.parametrize("verb", ["pause", "resume", "enable", "disable", "remove"])
def test_a_change_that_expects_another_version_is_told(app, soon, verb):
    app.schedules.disable("soon")
    app.schedules.enable("soon")
    before = app.schedules.get("soon").record
    with pytest.raises(VersionConflict, match="has version 3, not 1: somebody changed it first"):
        getattr(app.schedules, verb)("soon", expect_version=soon.version)
    assert app.schedules.get("soon").record == before
    assert getattr(app.schedules, verb)("soon", expect_version=3)
