"""The example of recurring work items: a month and more over two projects, on a clock that the test moves."""

from __future__ import annotations

import importlib.util
from datetime import date, timedelta
from pathlib import Path

import pytest

from rota.testing import Kit, ManualClock

EXAMPLE = Path(__file__).parents[2] / "examples" / "work_items" / "work_items.py"


@pytest.fixture
def example(tmp_path, monkeypatch):
    """The module, with a table of its own for each test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORK_ITEMS_DB", str(tmp_path / "items.db"))
    spec = importlib.util.spec_from_file_location("work_items", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def clock():
    return ManualClock("2026-02-14T12:00:00Z")


@pytest.fixture
def kit(example, clock):
    with Kit(example.app, clock) as kit:
        example.put_project("delhi", "Asia/Kolkata")
        example.put_project("boston", "America/New_York")
        yield kit


def days(example, project: str, title: str) -> list[str]:
    return [day for day, _, found in example.items(project) if found == title]


def every(first: str, step: int, count: int) -> list[str]:
    return [str(date.fromisoformat(first) + timedelta(step * number)) for number in range(count)]


def test_a_month_of_items_in_two_zones_each_once(example, kit):
    for project in ("delhi", "boston"):
        example.put_template(project, "Stand-up", "daily", start=date(2026, 2, 15), end=date(2026, 3, 16))
    example.put_template("delhi", "Review", "weekly", times=2, start=date(2026, 2, 16))
    example.put_template("boston", "Invoice", "monthly", start=date(2026, 1, 31))
    kit.deliver_twice(example.create_item)  # every report is lost once, and every job runs again
    kit.travel("40d")
    assert days(example, "delhi", "Stand-up") == every("2026-02-15", 1, 30)
    assert days(example, "boston", "Stand-up") == every("2026-02-15", 1, 30)  # over a change of the clocks
    assert days(example, "delhi", "Review") == ["2026-02-16", "2026-03-02", "2026-03-16"]
    assert days(example, "boston", "Invoice") == ["2026-02-28"]
    fired = kit.fired("boston-stand-up")
    assert [at.hour for at in fired] == [5] * 22 + [4] * 8  # 00:05 by the clock of Boston, before and after 8 March
    assert not kit.failures


def test_a_project_that_moves_has_no_day_twice_and_none_left_out(example, kit):
    example.put_template("delhi", "Stand-up", "daily", start=date(2026, 2, 15))
    kit.travel("5d")
    example.put_project("delhi", "America/New_York")
    kit.travel("5d")
    example.put_project("delhi", "Asia/Tokyo")
    kit.travel("5d")
    found = days(example, "delhi", "Stand-up")
    assert found == every("2026-02-15", 1, len(found))


def test_days_on_which_nothing_was_alive_have_their_items(example, kit, clock):
    example.put_template("delhi", "Stand-up", "daily", start=date(2026, 2, 15))
    clock.travel("10d")
    kit.run_due()
    assert days(example, "delhi", "Stand-up") == every("2026-02-15", 1, 10)


def test_a_paused_project_makes_none_and_goes_on(example, kit):
    example.put_template("delhi", "Stand-up", "daily", start=date(2026, 2, 15))
    kit.travel("2d")
    example.app.tenants.pause("delhi", reason="holidays", by="ann")
    kit.travel("3d")
    example.app.tenants.resume("delhi")
    kit.travel("2d")
    assert days(example, "delhi", "Stand-up") == ["2026-02-15", "2026-02-16", "2026-02-20", "2026-02-21"]
