"""Every zone that tzdata has is walked from 1970 through 2100 without a hang, a repeat or a step back.

Every change of a zone's offset is crossed by a cadence and by fixed times. Around each kind of change, each one that
lasts some weeks only and a tenth of the others, two days are walked in both directions. Long strides then cross the
whole range.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from amounts import IS_SOAK
from reference.zones import (
    FIRST,
    LAST,
    distinct_zones,
    instant,
    load,
    offset_at,
    second_of,
    transitions,
    zone_names,
)
from rota import Trigger, calendar, cron

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARDS = 8
DAY, HOUR = 86_400, 3_600
AROUND = ("30 2 * * *", "15 * * * *", "0 0 * * *", "*/20 1-3 * * *")
STRIDES = ("0 0 1 1 *", "30 2 29 2 *", "0 3 * MAR SUN#2", "0 0 L DEC *")
MOST_RUNS = 60  # in a window of two days, an hourly trigger has 48 runs or so


def zones_of(shard: int) -> tuple[str, ...]:
    return distinct_zones()[shard::SHARDS]


def walk(trigger: Trigger, start: int, end: int) -> Iterator[int]:
    """The runs in (start, end]; a run that is not later than the one before fails."""
    second: int | None = start
    while True:
        following = trigger.next_second(second)
        assert following is None or following > second, f"{trigger}: {following} after {second}"
        if following is None or following > end:
            return
        yield following
        second = following


def check_crossing(trigger: Trigger, start: int, end: int) -> None:
    """Some hours around a change: bounded, rising, and as many as are counted."""
    runs = list(islice(walk(trigger, start, end), MOST_RUNS + 1))
    where = f"{trigger} from {instant(start)}"
    assert len(runs) <= MOST_RUNS, f"{where}: too many runs"
    assert trigger.count_between(instant(start), instant(end)) == len(runs), where


def check_window(trigger: Trigger, zone: str, change: int) -> None:
    """Two days around a change: bounded, the same in both directions, and as many as are counted."""
    start, end = change - DAY, change + DAY
    runs = list(islice(walk(trigger, start, end), MOST_RUNS + 1))
    where = f"{trigger} in {zone} around {instant(change)}"
    assert len(runs) <= MOST_RUNS, f"{where}: too many runs"
    assert trigger.count_between(instant(start), instant(end)) == len(runs), where
    backwards, second = [], end + 1
    while (previous := trigger.second_before(second)) is not None and previous > start:
        assert previous < second, f"{where}: {previous} before {second}"
        backwards.append(previous)
        second = previous
    assert backwards[::-1] == runs, where


def telling_changes(zone: str) -> list[int]:
    """Every change that differs from the earlier ones in its offsets or its local hour, every change that lasts
    some weeks only, and each tenth of the rest."""
    kinds, chosen, last = set(), [], FIRST
    for number, (change, old, new) in enumerate(transitions(zone)):
        kind = (old, new, (change + old) % DAY)
        if kind not in kinds or change - last < 30 * DAY or number % 10 == 0:
            kinds.add(kind)
            chosen.append(change)
        last = change
    return chosen


def test_every_name_of_a_zone_is_known_and_kept():
    noon = datetime(2026, 6, 1, 12, tzinfo=UTC)
    for name in zone_names():
        trigger = cron("0 9 * * *", tz=name)
        run = trigger.next_after(noon)
        assert trigger.tz == name
        assert str(run.tzinfo) == name
        assert run.utcoffset() == run.astimezone(UTC).astimezone(load(name)).utcoffset()


@pytest.mark.parametrize("shard", range(SHARDS))
def test_changes_are_crossed_without_a_repeat_or_a_step_back(shard):
    for zone in zones_of(shard):
        triggers = [cron(expression, tz=zone) for expression in AROUND]
        for change in [change for change, _, _ in transitions(zone)] if IS_SOAK else telling_changes(zone):
            for trigger in triggers:
                check_crossing(trigger, change - 3 * HOUR, change + 3 * HOUR)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_runs_around_a_change_are_the_same_in_both_directions(shard):
    for zone in zones_of(shard):
        triggers = [cron(expression, tz=zone) for expression in AROUND]
        for change in telling_changes(zone):
            for trigger in triggers:
                check_window(trigger, zone, change)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_daily_runs_come_once_on_each_local_date_that_exists(shard):
    for zone in zones_of(shard):
        trigger = calendar(days=1, at="00:30", start=datetime(1970, 1, 1, tzinfo=UTC).date(), tz=zone)
        for change in telling_changes(zone):
            runs = list(walk(trigger, change - 3 * DAY, change + 3 * DAY))
            dates = [trigger.wall_time_of(instant(run)).date() for run in runs]
            assert len(set(dates)) == len(dates), f"{zone} around {instant(change)}: {dates}"
            assert len(runs) == trigger.count_between(instant(change - 3 * DAY), instant(change + 3 * DAY))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_long_strides_cross_the_whole_range(shard):
    for number, zone in enumerate(zones_of(shard)):
        for expression in STRIDES if IS_SOAK else STRIDES[number % 2 :: 2]:
            trigger = cron(expression, tz=zone)
            runs = list(islice(walk(trigger, FIRST, LAST - 2 * DAY), 200))
            assert 31 <= len(runs) <= 131, f"{trigger}: {len(runs)} runs"
            assert trigger.count_between(instant(FIRST), instant(LAST - 2 * DAY)) == len(runs), str(trigger)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_run_shows_the_offset_that_its_zone_has_then(shard):
    for zone in zones_of(shard):
        trigger = cron("15 * * * *", tz=zone)
        for change in telling_changes(zone):
            for second in (change - 20 * DAY, change - 7200, change - 3600, change, change + 3600):
                run = trigger.next_after(instant(second))
                offset = run.utcoffset() // timedelta(seconds=1)
                assert offset == offset_at(load(zone), second_of(run)), f"{run!r}"
