"""A schedule that changes its zone: right at once, and never twice for one local time."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from rota.model.micros import datetime_of, micros_of
from rota.model.schedules.edit import disable, enable, follow_pause, pause, register, resume
from rota.model.schedules.firing import fired, plan
from rota.model.schedules.schedule import Origin, Pause, ScheduleSpec
from unit.model.values import some_id


def at(text: str) -> int:
    return micros_of(datetime.fromisoformat(text).replace(tzinfo=UTC))


def made(trigger: str, tz: str, created: str):
    spec = ScheduleSpec(trigger=trigger, task="t", tz=tz)
    return register(None, "daily", spec, Origin(), at(created), some_id).after


def ran(schedule, when: str):
    """The schedule after its run at that time."""
    firing = plan(schedule, at(when), lambda: "job")
    assert [shot.job.fire_at for shot in firing.shots] == [at(when)]
    return fired(firing, 1, at(when), "job")


def moved(schedule, tz: str, when: str):
    """When it runs next, after its zone was changed."""
    edit = register(schedule, "daily", msgspec.structs.replace(schedule.spec, tz=tz), Origin(), at(when), some_id)
    return datetime_of(edit.after.next_at).strftime("%Y-%m-%d %H:%M")


DAILY = "calendar days=1 at=00:05"


def test_moving_east_the_next_local_day_runs_at_once():
    schedule = made(f"{DAILY} start=2026-01-01", "UTC", "2026-01-15 11:00")
    assert moved(schedule, "Asia/Kolkata", "2026-01-15 12:00") == "2026-01-15 18:35"  # 01-16 00:05 there


def test_moving_east_after_the_run_the_next_date_follows():
    schedule = ran(made(f"{DAILY} start=2026-01-01", "UTC", "2026-01-15 12:00"), "2026-01-16 00:05")
    assert moved(schedule, "Asia/Kolkata", "2026-01-16 00:06") == "2026-01-16 18:35"  # 01-17 00:05 there


def test_moving_west_a_date_that_ran_does_not_run_again():
    schedule = ran(made(f"{DAILY} start=2026-01-01", "Asia/Kolkata", "2026-01-15 12:00"), "2026-01-15 18:35")
    assert moved(schedule, "UTC", "2026-01-15 20:00") == "2026-01-17 00:05"  # 01-16 has had its run in Kolkata


def test_moving_west_a_date_that_has_not_run_runs():
    schedule = made(f"{DAILY} start=2026-01-01", "Asia/Kolkata", "2026-01-15 12:00")
    assert moved(schedule, "UTC", "2026-01-15 13:00") == "2026-01-16 00:05"


def test_cron_at_fixed_hours_is_guarded_by_the_local_time():
    schedule = ran(made("cron 0 9,15 * * *", "Europe/Berlin", "2026-01-15 06:00"), "2026-01-15 08:00")
    assert moved(schedule, "America/New_York", "2026-01-15 09:00") == "2026-01-15 20:00"  # 15:00; 09:00 is done


@pytest.mark.parametrize("trigger", ["cron 0 * * * *", "every 1h"])
def test_what_runs_every_hour_goes_on_every_hour(trigger):
    schedule = ran(made(trigger, "Europe/Berlin", "2026-01-15 06:00"), "2026-01-15 07:00")
    assert moved(schedule, "America/New_York", "2026-01-15 07:30") == "2026-01-15 08:00"


def test_a_new_rule_in_a_new_zone_leaves_a_date_that_is_done():
    schedule = ran(made(f"{DAILY} start=2026-01-01", "Asia/Kolkata", "2026-01-15 12:00"), "2026-01-15 18:35")
    spec = msgspec.structs.replace(schedule.spec, tz="UTC", trigger="calendar days=1 at=00:10 start=2026-01-01")
    edit = register(schedule, "daily", spec, Origin(), at("2026-01-15 20:00"), some_id)
    assert datetime_of(edit.after.next_at).strftime("%Y-%m-%d %H:%M") == "2026-01-17 00:10"


SILENCES = {  # how each begins and ends
    "its own pause": (lambda one, now: pause(one, now, reason="", by="ann", until=None), resume),
    "its tenant's pause": (
        lambda one, now: follow_pause(one, Pause(now, "", "bob", None, "acme"), now),
        lambda one, now: follow_pause(one, None, now),
    ),
    "disabled": (disable, enable),
}
OVERLAPS = [(first, second) for first in SILENCES for second in SILENCES if first != second]


@pytest.mark.parametrize("is_first_lifted", [True, False])
@pytest.mark.parametrize(("first", "second"), OVERLAPS)
def test_silences_that_overlap_are_one_whichever_is_lifted_first(first, second, is_first_lifted):
    schedule = made("calendar days=1 at=12:00 start=2026-01-01", "UTC", "2026-01-14 13:00")
    schedule = SILENCES[first][0](schedule, at("2026-01-15 09:30")).after
    schedule = SILENCES[second][0](schedule, at("2026-01-15 11:00")).after
    lifted, last = (first, second) if is_first_lifted else (second, first)
    schedule = SILENCES[lifted][1](schedule, at("2026-01-15 11:30")).after
    spec = msgspec.structs.replace(schedule.spec, tz="Europe/Athens")
    schedule = register(schedule, "daily", spec, Origin(), at("2026-01-15 11:45"), some_id).after
    edit = SILENCES[last][1](schedule, at("2026-01-15 12:30"))
    assert [skip.through_at for skip in edit.skips] == [at("2026-01-15 10:00")]  # 12:00 in Athens: it was silent then
    assert plan(edit.after, at("2026-01-15 12:30"), some_id).shots == []
    assert datetime_of(edit.after.next_at).strftime("%Y-%m-%d %H:%M") == "2026-01-16 10:00"


@pytest.mark.parametrize(("first", "second"), OVERLAPS)
def test_a_silence_after_another_begins_by_itself(first, second):
    schedule = made("calendar days=1 at=12:00 start=2026-01-01", "UTC", "2026-01-14 13:00")
    schedule = SILENCES[first][0](schedule, at("2026-01-15 09:30")).after
    schedule = SILENCES[first][1](schedule, at("2026-01-15 10:30")).after
    schedule = SILENCES[second][0](schedule, at("2026-01-15 11:00")).after
    spec = msgspec.structs.replace(schedule.spec, tz="Europe/Athens")
    schedule = register(schedule, "daily", spec, Origin(), at("2026-01-15 11:45"), some_id).after
    edit = SILENCES[second][1](schedule, at("2026-01-15 12:30"))
    assert edit.skips == []
    shots = plan(edit.after, at("2026-01-15 12:30"), some_id).shots  # the first silence is over: it was missed
    assert [shot.job.fire_at for shot in shots] == [at("2026-01-15 10:00")]
