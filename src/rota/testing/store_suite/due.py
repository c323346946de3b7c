"""Tests due schedules: what a scheduler must read now, and when it must read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rota.model.schedules.edit import disable, enable, mark_broken, pause, remove, resume
from rota.testing.store_suite.builders import HOUR, MINUTE, T0
from rota.testing.store_suite.steps import (
    add_schedule,
    change_schedule,
    fire,
    fire_due,
    ledger,
    new_schedule,
    read_schedule,
)

if TYPE_CHECKING:
    from rota.store.contract import Store


def due_ids(store: Store, *, now: int, limit: int = 100) -> list[str]:
    return [schedule.id for schedule in store.due_schedules(limit, now=now).schedules]


class TestDueSchedules:
    def test_a_schedule_is_due_at_its_instant_and_not_before(self, store: Store) -> None:
        schedule = add_schedule(store)
        assert store.due_schedules(10, now=T0 + MINUTE - 1).schedules == []
        assert store.due_schedules(10, now=T0 + MINUTE).schedules == [schedule]

    def test_a_new_schedule_never_fires_for_what_lies_behind(self, store: Store) -> None:
        add_schedule(store, trigger="cron 0 0 * * *", now=T0 + HOUR)
        assert due_ids(store, now=T0 + 2 * HOUR) == []

    def test_the_longest_due_come_first(self, store: Store) -> None:
        for name, minutes in (("a", 3), ("b", 1), ("c", 2)):
            add_schedule(store, name, trigger=f"every {minutes}m")
        assert due_ids(store, now=T0 + HOUR) == ["b", "c", "a"]

    def test_schedules_due_at_one_instant_come_by_id(self, store: Store) -> None:
        for name in ("b", "c", "a"):
            add_schedule(store, name)
        assert due_ids(store, now=T0 + HOUR) == ["a", "b", "c"]

    @pytest.mark.parametrize("limit", [32, 33, 70, 100])
    def test_many_are_shown_in_order_up_to_the_limit(self, store: Store, limit: int) -> None:
        names = [f"s{number:02}" for number in range(70)]
        store.edit_schedules([new_schedule(name) for name in names], now=T0)
        later = add_schedule(store, "z", trigger="every 1h")
        due = store.due_schedules(limit, now=T0 + MINUTE)
        assert [schedule.id for schedule in due.schedules] == names[:limit]
        assert due.next_due_at == (later.next_at if limit >= 70 else T0 + MINUTE)

    def test_no_more_than_the_limit_are_given(self, store: Store) -> None:
        for name in ("a", "b", "c"):
            add_schedule(store, name)
        due = store.due_schedules(2, now=T0 + HOUR)
        assert [schedule.id for schedule in due.schedules] == ["a", "b"]
        assert due.next_due_at == T0 + MINUTE

    def test_looking_changes_nothing(self, store: Store) -> None:
        schedule = add_schedule(store)
        store.due_schedules(10, now=T0 + HOUR)
        assert read_schedule(store) == schedule

    def test_a_fired_schedule_is_due_at_its_next_time(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        assert due_ids(store, now=T0 + 2 * MINUTE - 1) == []
        assert due_ids(store, now=T0 + 2 * MINUTE) == ["tick"]

    def test_a_disabled_schedule_is_never_due(self, store: Store) -> None:
        change_schedule(store, disable(add_schedule(store), T0))
        assert due_ids(store, now=T0 + HOUR) == []

    def test_an_enabled_schedule_is_due_again(self, store: Store) -> None:
        disabled = change_schedule(store, disable(add_schedule(store), T0))
        change_schedule(store, enable(disabled, T0 + 5 * MINUTE))
        assert due_ids(store, now=T0 + 6 * MINUTE) == ["tick"]

    def test_a_paused_schedule_is_not_due(self, store: Store) -> None:
        change_schedule(store, pause(add_schedule(store), T0, reason="", by="", until=None))
        due = store.due_schedules(10, now=T0 + HOUR)
        assert (due.schedules, due.next_due_at) == ([], None)

    def test_a_resumed_schedule_is_due_again(self, store: Store) -> None:
        paused = change_schedule(store, pause(add_schedule(store), T0, reason="", by="", until=None))
        change_schedule(store, resume(paused, T0 + 5 * MINUTE))
        assert due_ids(store, now=T0 + 6 * MINUTE) == ["tick"]

    def test_a_removed_schedule_is_never_due(self, store: Store) -> None:
        change_schedule(store, remove(add_schedule(store), T0))
        assert due_ids(store, now=T0 + HOUR) == []

    def test_a_broken_schedule_is_never_due(self, store: Store) -> None:
        change_schedule(store, mark_broken(add_schedule(store), T0, "no such zone"))
        assert due_ids(store, now=T0 + HOUR) == []

    def test_an_exhausted_schedule_is_never_due(self, store: Store) -> None:
        add_schedule(store, trigger="once 2026-01-01T00:01:00Z")
        fire(store, now=T0 + MINUTE)
        assert read_schedule(store).next_at is None
        assert due_ids(store, now=T0 + HOUR) == []


class TestPausesWithAnEnd:
    def test_a_pause_is_due_at_its_end(self, store: Store) -> None:
        change_schedule(store, pause(add_schedule(store), T0, reason="", by="", until=T0 + 5 * MINUTE))
        due = store.due_schedules(10, now=T0 + 5 * MINUTE - 1)
        assert (due.schedules, due.next_due_at) == ([], T0 + 5 * MINUTE)
        assert due_ids(store, now=T0 + 5 * MINUTE) == ["tick"]

    def test_a_pause_that_is_over_is_lifted_by_the_scheduler(self, store: Store) -> None:
        change_schedule(store, pause(add_schedule(store), T0, reason="rest", by="ann", until=T0 + 5 * MINUTE))
        (fired,) = fire_due(store, now=T0 + 5 * MINUTE)
        schedule = read_schedule(store)
        assert (fired.is_accepted, fired.jobs, fired.skipped) == (True, [], 4)
        assert (schedule.pause, schedule.next_at) == (None, T0 + 5 * MINUTE)  # the end itself is no longer paused
        assert [(line.count, line.reason) for line in ledger(store)] == [(4, "paused by ann: rest")]


class TestNextDueSchedule:
    def test_the_first_of_the_others_is_named(self, store: Store) -> None:
        add_schedule(store, "a")
        add_schedule(store, "b", trigger="every 1h")
        due = store.due_schedules(10, now=T0 + MINUTE)
        assert (due.now, due.next_due_at) == (T0 + MINUTE, T0 + HOUR)

    def test_with_nothing_due_the_first_is_named(self, store: Store) -> None:
        add_schedule(store)
        due = store.due_schedules(10, now=T0)
        assert (due.schedules, due.next_due_at) == ([], T0 + MINUTE)

    def test_with_nothing_waiting_none_is_named(self, store: Store) -> None:
        change_schedule(store, disable(add_schedule(store), T0))
        assert store.due_schedules(10, now=T0).next_due_at is None
