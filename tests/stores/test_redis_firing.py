"""Firing on Redis: a crowd takes one round trip, and what stands in the way of some a few more."""

from __future__ import annotations

import pytest

from rota.model.schedules.edit import disable
from rota.store.shared.batching import FEW_DUE
from rota.testing.store_suite.builders import MINUTE, T0
from rota.testing.store_suite.steps import add_schedule, all_jobs, change_schedule, fire, planned, read_schedule
from stores.redis_stage import *  # noqa: F403 - its fixtures

CROWD = 60


@pytest.fixture(autouse=True)
def schedules(store):
    for number in range(CROWD):
        add_schedule(store, f"s{number:02}")


def crowd(store, at):
    return [planned(store, f"s{number:02}", now=at) for number in range(CROWD)]


def calls(raw):
    """Scripts that the server has run."""
    return sum(raw.info("commandstats").get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("evalsha", "eval"))


def test_a_crowd_is_one_round_trip(store, raw):
    fire(store, "s00", now=T0 + MINUTE)  # the server learns the script
    firings = [planned(store, f"s{number:02}", now=T0 + MINUTE) for number in range(1, CROWD)]
    before = calls(raw)
    answers = store.fire(firings, now=T0 + MINUTE)
    assert calls(raw) - before == 1
    assert {(fired.is_accepted, len(fired.jobs)) for fired in answers} == {(True, 1)}


def test_one_that_was_changed_costs_a_few_more_for_all(store, raw):
    firings = crowd(store, T0 + MINUTE)
    change_schedule(store, disable(read_schedule(store, "s07"), T0 + 1))
    before = calls(raw)
    answers = store.fire(firings, now=T0 + MINUTE)
    assert calls(raw) - before < 10
    assert [fired.schedule_id for fired in answers if not fired.is_accepted] == ["s07"]
    assert len(all_jobs(store)) == CROWD - 1


def test_a_crowd_that_overlaps_is_looked_at_together(store, raw):
    store.fire(crowd(store, T0 + MINUTE), now=T0 + MINUTE)
    firings = crowd(store, T0 + 2 * MINUTE)
    before = calls(raw)
    answers = store.fire(firings, now=T0 + 2 * MINUTE)
    assert calls(raw) - before < 10
    assert {(fired.jobs == [], fired.skipped) for fired in answers} == {(True, 1)}


def test_a_clock_that_was_set_back_is_asked_again(store):
    """What is fired is never dated by a clock that was ahead of the server's."""
    store._connection.clock.reset(store.now() + 3600 * 1_000_000)
    firings = crowd(store, T0 + MINUTE)
    store.fire(firings)
    assert {job.created_at <= store.now() for job in all_jobs(store)} == {True}
    assert len(all_jobs(store)) == CROWD


def test_a_scheduler_asks_for_few_schedules_that_are_not_due(store, monkeypatch):
    asked, snapshot = [], store._writer.snapshot

    def noted(jobs, *commands, **options):
        asked.extend(commands)
        return snapshot(jobs, *commands, **options)

    monkeypatch.setattr(store._writer, "snapshot", noted)
    crowd(store, T0 + MINUTE)
    asked.clear()
    assert store.due_schedules(1_000, now=T0).schedules == []
    assert asked == [["ZRANGE", "dues", 0, FEW_DUE, "WITHSCORES"]]
