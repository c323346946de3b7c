"""A calendar that has no start begins on the day it was made; a move to another zone does not change that day."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from rota.model.micros import micros_of
from rota.model.schedules.edit import register
from rota.model.schedules.schedule import Origin, Schedule, ScheduleSpec

WEDNESDAY_NIGHT = micros_of(datetime(2026, 1, 7, 22, 0, tzinfo=UTC))  # in Tokyo it is Thursday already
DAY = 86_400_000_000


def made(trigger: str, tz: str) -> Schedule:
    spec = ScheduleSpec(trigger=trigger, task="t", tz=tz)
    edit = register(None, "s", spec, Origin("code", "shop", "1"), WEDNESDAY_NIGHT, lambda: "id")
    assert edit is not None
    return edit.after


def moved(schedule: Schedule, tz: str, *, version: str = "1") -> Schedule:
    spec = msgspec.structs.replace(schedule.spec, tz=tz)
    edit = register(schedule, "s", spec, Origin("code", "shop", version), WEDNESDAY_NIGHT + DAY, lambda: "id")
    assert edit is not None
    return edit.after


def weekdays(schedule: Schedule) -> set[str]:
    runs = schedule.trigger.next_runs(5, after=datetime(2026, 2, 1, tzinfo=UTC))
    return {f"{run:%a %H:%M}" for run in runs}


@pytest.mark.parametrize("tz", ["Asia/Tokyo", "America/Los_Angeles", "Europe/Paris"])
def test_a_weekly_rule_keeps_its_weekday_in_every_zone(tz):
    schedule = made("calendar weeks=1 at=09:00", "UTC")
    assert weekdays(schedule) == {"Wed 09:00"}
    assert weekdays(moved(schedule, tz)) == {"Wed 09:00"}


def test_it_keeps_it_through_several_moves_and_the_way_back():
    schedule = made("calendar weeks=1 at=09:00", "Asia/Tokyo")
    assert weekdays(schedule) == {"Thu 09:00"}
    for tz in ("America/Lima", "Europe/Paris", "Asia/Tokyo"):
        schedule = moved(schedule, tz)
        assert weekdays(schedule) == {"Thu 09:00"}


def test_a_deploy_of_the_same_definition_changes_nothing():
    schedule = moved(made("calendar weeks=1 at=09:00", "UTC"), "Asia/Tokyo")
    again = Origin("code", "shop", "1")
    assert register(schedule, "s", schedule.spec, again, WEDNESDAY_NIGHT + 2 * DAY, lambda: "id") is None
    newer = register(schedule, "s", schedule.spec, Origin("code", "shop", "2"), WEDNESDAY_NIGHT + 2 * DAY, lambda: "id")
    assert newer is not None
    assert weekdays(newer.after) == {"Wed 09:00"}
