"""The agenda names every run of the days asked for, also those whose jobs were made ahead."""

from __future__ import annotations

import pytest

from rota import App, cron
from rota.inspector.facts.agenda import DAY, agenda_page, read_agenda
from rota.testing import Kit, ManualClock


@pytest.fixture
def kit():
    with Kit(App("memory://", name="shop"), ManualClock("2026-11-16T12:00:00Z")) as kit:
        yield kit


def test_runs_that_were_made_ahead_are_named(kit):
    """The next run that has no job yet is a month away, and the schedule is due a week before it."""
    task = kit.app.task(name="noop")(lambda: None)
    kit.app.schedules.put("monthly", task.job(), cron("0 9 18 * *"), lookahead="7d")
    kit.run_due()
    store = kit.app.open()
    assert store.get_schedules(["monthly"])[0].due_at > store.now() + 3 * DAY
    assert [entry.coming.schedule_id for entry in read_agenda(store, store.now(), 3)] == ["monthly"]
    assert [fact.schedule_id for fact in agenda_page(store, 3).items] == ["monthly"]


def test_pages_hold_each_run_once_in_order(kit):
    task = kit.app.task(name="noop")(lambda: None)
    for hour in range(20):
        kit.app.schedules.put(f"at-{hour:02}", task.job(), cron(f"0 {hour} * * *"))
    store = kit.app.open()
    whole = [(entry.at, entry.coming.schedule_id) for entry in read_agenda(store, store.now(), 2)]
    found, cursor = [], None
    while True:
        page = agenda_page(store, 2, limit=3, cursor=cursor)
        found += [(fact.at, fact.schedule_id) for fact in page.items]
        cursor = page.cursor
        if cursor is None:
            break
    assert found == whole
    assert len(whole) == 40
