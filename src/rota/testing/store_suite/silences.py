"""Tests pauses after an outage: catch-up decides on what was missed before, and the pause skips what lies within it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from rota.model.schedules.edit import disable, enable, follow_pause, pause, register, resume
from rota.model.schedules.schedule import Pause
from rota.testing.store_suite.builders import MINUTE, T0, fresh_id
from rota.testing.store_suite.steps import add_schedule, all_jobs, change_schedule, fire, ledger, read_schedule

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.schedules.edit import Edit
    from rota.model.schedules.schedule import Catchup, Schedule
    from rota.store.contract import Store

STOPPED, STARTED = T0 + 5 * MINUTE + 1, T0 + 8 * MINUTE + 1  # nothing fired from T0 to the stop
OVER = T0 + 11 * MINUTE + 1
BY_ANN = Pause(STOPPED, "rest", "ann", tenant="acme")


def stop_paused(schedule: Schedule, now: int) -> Edit | None:
    return pause(schedule, now, reason="rest", by="ann", until=None)


def stop_tenant(schedule: Schedule, now: int) -> Edit | None:
    return follow_pause(schedule, msgspec.structs.replace(BY_ANN, at=now), now)


def start_tenant(schedule: Schedule, now: int) -> Edit | None:
    return follow_pause(schedule, None, now)


def _nap(until: int | None) -> Callable[[Schedule, int], Edit | None]:
    return lambda schedule, now: pause(schedule, now, reason="nap", by="bob", until=until)


def _tenant_nap(until: int | None) -> Callable[[Schedule, int], Edit | None]:
    return lambda schedule, now: follow_pause(schedule, Pause(now, "nap", "bob", until, tenant="acme"), now)


STOPS = [
    (stop_paused, resume, "paused by ann: rest"),
    (stop_tenant, start_tenant, BY_ANN.words),
    (disable, enable, "disabled"),
]
stopping = pytest.mark.parametrize(("stop", "start", "why"), STOPS, ids=["pause", "tenant", "disable"])


def silenced(
    store: Store, stop: Callable[[Schedule, int], Edit | None], start: Callable[[Schedule, int], Edit | None]
) -> None:
    change_schedule(store, stop(read_schedule(store), STOPPED), now=STOPPED)
    change_schedule(store, start(read_schedule(store), STARTED), now=STARTED)


def entries(store: Store) -> list[tuple[int, int, str]]:
    """Last minute, count and outcome of each entry of the ledger."""
    return [((line.through_at - T0) // MINUTE, line.count, line.reason or line.outcome) for line in ledger(store)]


class TestSilences:
    @stopping
    def test_all_that_was_missed_before_it_runs(
        self,
        store: Store,
        stop: Callable[[Schedule, int], Edit | None],
        start: Callable[[Schedule, int], Edit | None],
        why: str,
    ) -> None:
        add_schedule(store, catchup="all", overlap="allow")
        silenced(store, stop, start)
        assert entries(store) == [(8, 3, why)]
        assert len(fire(store, now=STARTED + 1).jobs) == 5
        assert sorted(job.fire_at or 0 for job in all_jobs(store)) == [T0 + number * MINUTE for number in range(1, 6)]
        assert sorted(entries(store)) == sorted([*((number, 1, "queued") for number in range(1, 6)), (8, 3, why)])
        assert read_schedule(store).next_at == T0 + 9 * MINUTE

    @pytest.mark.parametrize(
        ("catchup", "runs", "rest"),
        [("latest", [5], (4, 4, "catch-up")), ("skip", [], (5, 5, "catch-up"))],
    )
    def test_catch_up_decides_about_what_was_missed_before_it(
        self, store: Store, catchup: Catchup, runs: list[int], rest: tuple[int, int, str]
    ) -> None:
        add_schedule(store, catchup=catchup)
        silenced(store, stop_paused, resume)
        fire(store, now=STARTED + 1)
        assert sorted(job.fire_at or 0 for job in all_jobs(store)) == [T0 + number * MINUTE for number in runs]
        skipped = [line for line in entries(store) if line[2] != "queued"]
        assert sorted(skipped) == sorted([rest, (8, 3, "paused by ann: rest")])

    def test_a_pause_that_ends_by_itself_leaves_what_was_missed_before_it(self, store: Store) -> None:
        add_schedule(store, catchup="all", overlap="allow")
        edit = pause(read_schedule(store), STOPPED, reason="", by="", until=STARTED)
        change_schedule(store, edit, now=STOPPED)
        assert fire(store, now=STARTED).jobs == []
        assert read_schedule(store).next_at == T0 + MINUTE
        assert len(fire(store, now=STARTED).jobs) == 5

    def test_two_pauses_in_one_outage_are_two_records(self, store: Store) -> None:
        add_schedule(store, catchup="all", overlap="allow")
        silenced(store, stop_paused, resume)
        again, over = T0 + 10 * MINUTE + 1, T0 + 12 * MINUTE + 1
        change_schedule(store, stop_paused(read_schedule(store), again), now=again)
        change_schedule(store, resume(read_schedule(store), over), now=over)
        assert entries(store) == [(8, 3, "paused by ann: rest"), (12, 2, "paused by ann: rest")]
        fire(store, now=over)
        assert sorted(job.fire_at or 0 for job in all_jobs(store)) == [
            T0 + number * MINUTE for number in (1, 2, 3, 4, 5, 9, 10)
        ]

    @stopping
    def test_a_second_one_begins_where_it_is_said(
        self,
        store: Store,
        stop: Callable[[Schedule, int], Edit | None],
        start: Callable[[Schedule, int], Edit | None],
        why: str,
    ) -> None:
        """A second pause leaves the times until then with the reason of the first."""
        add_schedule(store, catchup="all", overlap="allow")
        for change in (_nap(None), _tenant_nap(None)):
            change_schedule(store, change(read_schedule(store), STOPPED), now=STOPPED)
        change_schedule(store, stop(read_schedule(store), STARTED), now=STARTED)
        assert entries(store) == [(8, 3, "paused by bob: nap")]
        for end in (start, resume, start_tenant):
            if edit := end(read_schedule(store), OVER):
                change_schedule(store, edit, now=OVER)
        assert entries(store) == [(8, 3, "paused by bob: nap"), (11, 3, why)]
        fire(store, now=OVER)
        assert sorted(job.fire_at or 0 for job in all_jobs(store)) == [T0 + number * MINUTE for number in range(1, 6)]

    def test_a_second_pause_lasts_since_the_first(self, store: Store) -> None:
        """A date that lies in the first of two overlapping pauses, by the clock of another zone, is paused."""
        add_schedule(store, trigger="cron 30 2 * * *", tz="Pacific/Niue", catchup="all", now=STOPPED - MINUTE)
        later = STOPPED + 22 * 60 * MINUTE
        for now in (STOPPED, later):
            change_schedule(store, stop_paused(read_schedule(store), now), now=now)
        before = read_schedule(store)
        spec = msgspec.structs.replace(before.spec, tz="Pacific/Kiritimati")
        change_schedule(store, register(before, "tick", spec, before.origin, later + 1, fresh_id), now=later + 1)
        change_schedule(store, resume(read_schedule(store), later + 2), now=later + 2)
        assert {line.reason for line in ledger(store)} == {"paused by ann: rest"}
        assert fire(store, now=later + 3).jobs == []

    @stopping
    @pytest.mark.parametrize("whose", ["tenant", "own"])
    def test_what_was_missed_between_two_is_caught_up(
        self,
        store: Store,
        stop: Callable[[Schedule, int], Edit | None],
        start: Callable[[Schedule, int], Edit | None],
        why: str,
        whose: str,
    ) -> None:
        """The first pause ended by its set time while no scheduler was alive, before the second began."""
        add_schedule(store, catchup="all", overlap="allow", now=T0 + 5 * MINUTE)
        nap = (_tenant_nap if whose == "tenant" else _nap)(T0 + 7 * MINUTE)
        change_schedule(store, nap(read_schedule(store), STOPPED), now=STOPPED)
        change_schedule(store, stop(read_schedule(store), STARTED), now=STARTED)
        change_schedule(store, start(read_schedule(store), OVER), now=OVER)
        words = "paused with tenant acme by bob: nap" if whose == "tenant" else "paused by bob: nap"
        assert entries(store) == [(6, 1, words), (11, 3, why)]
        fire(store, now=OVER)
        assert sorted(job.fire_at or 0 for job in all_jobs(store)) == [T0 + number * MINUTE for number in (7, 8)]

    def test_it_ends_where_nothing_was_missed_before_it(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=T0 + 5 * MINUTE)
        silenced(store, disable, enable)
        after = read_schedule(store)
        assert (after.ahead, after.fired_through, after.next_at) == (None, T0 + 8 * MINUTE, T0 + 9 * MINUTE)

    @stopping
    def test_one_that_no_time_fell_into_decides_on_no_date_of_another_zone(
        self,
        store: Store,
        stop: Callable[[Schedule, int], Edit | None],
        start: Callable[[Schedule, int], Edit | None],
        why: str,
    ) -> None:
        """The schedule never ran. The date announced before the pause is still announced after two changes of zone."""
        add_schedule(store, trigger="cron 30 2 * * *", tz="Europe/Paris", now=STOPPED - MINUTE)
        announced = read_schedule(store).next_at
        silenced(store, stop, start)
        for number, zone in enumerate(("Asia/Tokyo", "Europe/Paris"), start=1):
            before, now = read_schedule(store), STARTED + number * MINUTE
            spec = msgspec.structs.replace(before.spec, tz=zone)
            change_schedule(store, register(before, "tick", spec, before.origin, now, fresh_id), now=now)
        assert read_schedule(store).next_at == announced
        assert why not in {line.reason for line in ledger(store)}
