"""Tests that a store keeps what a schedule has done in local time, whatever zones and rules it gets."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
import pytest

from rota.model.micros import micros_of
from rota.model.schedules.edit import disable, enable, follow_pause, register, resume
from rota.model.schedules.schedule import Pause
from rota.testing.store_suite.builders import fresh_id
from rota.testing.store_suite.silences import start_tenant, stop_paused
from rota.testing.store_suite.steps import add_schedule, all_jobs, change_schedule, fire, ledger, read_schedule

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.schedules.edit import Edit
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Store

PARIS, TOKYO = "Europe/Paris", "Asia/Tokyo"  # 02:30 is 01:30 and 17:30 UTC
NIGHTLY = "cron 30 2 * * *"


def stop_tenant(schedule: Schedule, now: int) -> Edit | None:
    return follow_pause(schedule, Pause(now, tenant="acme"), now)


STOPS = {"pause": (stop_paused, resume), "tenant": (stop_tenant, start_tenant), "disable": (disable, enable)}


def at(text: str) -> int:
    """An instant of November 2026."""
    return micros_of(datetime.fromisoformat(f"2026-11-{text}:00").replace(tzinfo=UTC))


def edited(store: Store, when: str, **spec: str) -> Schedule:
    """Give the schedule another rule or zone; return it as the store has it then."""
    before = read_schedule(store)
    change = msgspec.structs.replace(before.spec, **spec)
    change_schedule(store, register(before, "tick", change, before.origin, at(when), fresh_id), now=at(when))
    return read_schedule(store)


def due(store: Store) -> str:
    """The time of its next run."""
    next_at = read_schedule(store).next_at or 0
    return datetime.fromtimestamp(next_at / 1_000_000, UTC).strftime("%d %H:%M")


class TestMoves:
    def test_a_date_that_never_ran_is_to_come_after_an_edit_and_two_moves(self, store: Store) -> None:
        add_schedule(store, trigger="cron 0 3 * * *", tz=PARIS, now=at("15 17:52"))
        fire(store, now=at("16 02:00"))
        edited(store, "16 17:53", trigger=NIGHTLY)
        edited(store, "16 17:54", tz=TOKYO)
        assert due(store) == "17 17:30"
        edited(store, "16 17:55", tz=PARIS)
        assert due(store) == "17 01:30"

    def test_a_time_that_never_ran_is_to_come_after_a_run_and_two_moves(self, store: Store) -> None:
        add_schedule(store, trigger="cron 0 2,19 * * *", tz=PARIS, now=at("16 17:52"))
        fire(store, now=at("16 18:00"))
        edited(store, "16 18:10", tz=TOKYO)
        edited(store, "16 18:20", tz=PARIS)
        assert due(store) == "17 01:00"

    def test_a_time_that_only_a_zone_in_between_has_passed_is_to_come_again(self, store: Store) -> None:
        add_schedule(store, trigger="cron 0 2,19 * * *", tz=PARIS, now=at("15 17:52"))
        fire(store, now=at("15 18:00"))
        fire(store, now=at("16 01:00"))
        fire(store, now=at("16 18:00"))
        edited(store, "16 18:10", tz=TOKYO)  # where 02:00 of the 17th lies before the last run
        assert due(store) == "16 18:00"
        edited(store, "16 18:20", tz=PARIS)
        assert due(store) == "17 01:00"

    def test_a_date_that_ran_in_another_zone_is_done_for_every_later_rule(self, store: Store) -> None:
        add_schedule(store, trigger=NIGHTLY, tz=TOKYO, now=at("15 17:52"))
        fire(store, now=at("16 17:30"))  # the 17th there
        edited(store, "16 18:00", tz=PARIS)
        edited(store, "16 18:10", trigger="cron */30 * * * *")
        fire(store, now=at("16 18:30"))
        edited(store, "16 18:40", trigger="cron 0 22 * * *")
        assert due(store) == "18 21:00"

    @pytest.mark.parametrize(("stop", "start"), STOPS.values(), ids=STOPS)
    def test_a_time_of_the_new_zone_before_the_silence_was_missed(
        self,
        store: Store,
        stop: Callable[[Schedule, int], Edit | None],
        start: Callable[[Schedule, int], Edit | None],
    ) -> None:
        add_schedule(store, trigger=NIGHTLY, tz=PARIS, now=at("15 17:52"))
        fire(store, now=at("16 01:30"))
        change_schedule(store, stop(read_schedule(store), at("16 17:53")), now=at("16 17:53"))
        edited(store, "16 17:54", tz=TOKYO)
        assert [job.fire_at for job in all_jobs(store)] == [at("16 01:30")]
        change_schedule(store, start(read_schedule(store), at("16 17:55")), now=at("16 17:55"))
        fire(store, now=at("16 17:55"))
        assert {job.fire_at for job in all_jobs(store)} == {at("16 01:30"), at("16 17:30")}

    def test_a_time_of_the_old_zone_within_the_silence_is_skipped_by_the_move(self, store: Store) -> None:
        add_schedule(store, trigger=NIGHTLY, tz=PARIS, now=at("14 17:52"))
        fire(store, now=at("15 01:30"))
        change_schedule(store, stop_paused(read_schedule(store), at("16 00:00")), now=at("16 00:00"))
        edited(store, "16 12:00", tz=TOKYO)  # whose 16th was before the pause
        assert [(line.through_at, line.count) for line in ledger(store)][-1] == (at("16 01:30"), 1)
        assert due(store) == "16 17:30"

    def test_what_is_known_of_the_past_is_kept_by_a_firing(self, store: Store) -> None:
        add_schedule(store, trigger=NIGHTLY, tz=PARIS, now=at("15 17:52"))
        fire(store, now=at("16 01:30"))
        moved = edited(store, "16 02:00", tz="Europe/London")
        assert moved.ahead is not None
        assert moved.ahead.past is not None
        fire(store, now=at("17 02:30"))
        after = read_schedule(store)
        assert after.ahead is not None
        assert after.ahead.past == moved.ahead.past
        edited(store, "17 03:00", tz="America/New_York")
        assert due(store) == "18 07:30"
