"""Found by years of simulated tenants: changes of zone, kept runs and windows of look-ahead at their edges."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from rota.model.edit import follow_spec, register
from rota.model.firing import fired, plan
from rota.model.micros import SECOND, datetime_of, micros_of
from rota.model.schedule import Origin, ScheduleSpec
from unit.model.values import some_id

HOUR = 3600 * SECOND
DAILY = "calendar days=1 at=00:05 start=2026-01-01"
YEARLY = "calendar years=1 at=00:05 start=2025-01-16"


def at(text: str) -> int:
    return micros_of(datetime.fromisoformat(text).replace(tzinfo=UTC))


def shown(micros: int | None) -> str | None:
    return None if micros is None else datetime_of(micros).strftime("%Y-%m-%d %H:%M")


def made(trigger: str, tz: str, created: str, **options):
    spec = ScheduleSpec(trigger=trigger, task="t", tz=tz, **options)
    return register(None, "it", spec, Origin(), at(created), some_id).after


def ran(schedule, when: str):
    firing = plan(schedule, at(when), some_id)
    return fired(firing, len(firing.shots), at(when), "job")


def moved(schedule, tz: str, when: str, *, keeps_next: bool = False):
    spec = msgspec.structs.replace(schedule.spec, tz=tz)
    return follow_spec(schedule, spec, at(when), some_id, keeps_next=keeps_next)


def retimed(schedule, trigger: str, when: str):
    spec = msgspec.structs.replace(schedule.spec, trigger=trigger)
    return register(schedule, "it", spec, Origin(), at(when), some_id)


def test_a_window_is_looked_at_when_it_has_something_to_make():
    """A look at its very edge would find nothing, and be due again at once."""
    schedule = made(DAILY, "UTC", "2026-01-15 12:00", lookahead=6 * HOUR)
    assert plan(schedule, schedule.due_at - 1, some_id).shots == []
    assert len(plan(schedule, schedule.due_at, some_id).shots) == 1


def test_a_date_that_is_past_in_the_new_zone_is_caught_up():
    """New York has had its 15th; in Kolkata it is the 16th already, twenty minutes past five past twelve."""
    schedule = ran(made(DAILY, "America/New_York", "2026-01-14 12:00"), "2026-01-15 05:05")
    after = moved(schedule, "Asia/Kolkata", "2026-01-15 18:55").after
    assert shown(after.next_at) == "2026-01-15 18:35"
    firing = plan(after, at("2026-01-15 18:55"), some_id)
    assert [(shown(shot.job.fire_at), shot.job.made_by) for shot in firing.shots] == [("2026-01-15 18:35", "catchup")]


def test_a_date_that_is_past_in_the_new_zone_is_skipped_where_nothing_is_caught_up():
    schedule = ran(made(DAILY, "America/New_York", "2026-01-14 12:00", catchup="skip"), "2026-01-15 05:05")
    firing = plan(moved(schedule, "Asia/Kolkata", "2026-01-15 18:55").after, at("2026-01-15 18:55"), some_id)
    assert firing.shots == []
    assert [(skip.count, skip.reason) for skip in firing.skips] == [(1, "catch-up")]


def test_it_is_caught_up_with_look_ahead_too():
    schedule = ran(made(DAILY, "America/New_York", "2026-01-14 12:00", lookahead=30 * HOUR), "2026-01-15 05:05")
    assert shown(moved(schedule, "Asia/Kolkata", "2026-01-15 18:55").after.next_at) == "2026-01-15 18:35"


def test_a_paused_one_catches_up_nothing():
    schedule = ran(made(DAILY, "America/New_York", "2026-01-14 12:00"), "2026-01-15 05:05")
    disabled = msgspec.structs.replace(schedule, is_enabled=False)
    assert shown(moved(disabled, "Asia/Kolkata", "2026-01-15 18:55").after.next_at) == "2026-01-16 18:35"


def test_a_yearly_date_that_is_done_does_not_hold_up_other_times():
    schedule = ran(made(YEARLY, "Asia/Kolkata", "2026-01-15 12:00"), "2026-01-15 18:35")
    after = moved(schedule, "UTC", "2026-01-15 20:00").after
    assert shown(after.next_at) == "2027-01-16 00:05"
    assert shown(retimed(after, DAILY, "2026-01-16 12:00").after.next_at) == "2026-01-17 00:05"


def test_a_yearly_run_that_was_kept_does_not_hold_up_other_times():
    schedule = made(YEARLY, "UTC", "2026-01-15 12:00")
    after = moved(schedule, "Asia/Kolkata", "2026-01-15 20:00", keeps_next=True).after
    assert shown(after.next_at) == "2027-01-15 18:35"
    assert shown(retimed(after, DAILY, "2026-01-16 12:00").after.next_at) == "2026-01-16 18:35"


def test_a_kept_run_that_is_kept_twice_still_stands_for_its_own_date():
    """Announced in Kolkata for the 17th, where New York still had the 16th; London's 17th is that same date."""
    schedule = made(DAILY, "Asia/Kolkata", "2026-01-16 12:00")
    once = moved(schedule, "America/New_York", "2026-01-16 13:00", keeps_next=True).after
    twice = moved(once, "Europe/London", "2026-01-16 14:00", keeps_next=True)
    assert [shown(job.fire_at) for job in twice.jobs] == ["2026-01-16 18:35"]
    assert shown(twice.after.next_at) == "2026-01-18 00:05"


def test_the_last_run_of_all_is_kept_when_it_is_made_already():
    """All that is left was made ahead, so there is no next one to make."""
    end = at("2026-01-16 23:59")
    schedule = ran(made(DAILY, "UTC", "2026-01-15 12:00", lookahead=24 * HOUR, end=end), "2026-01-15 12:00")
    assert schedule.next_at is None
    edit = moved(schedule, "Asia/Kolkata", "2026-01-15 13:00", keeps_next=True)
    assert [shown(job.fire_at) for job in edit.jobs] == ["2026-01-16 00:05"]


def test_a_kept_run_begins_where_what_was_skipped_ends():
    """Else its range, once folded, would cover the skipped ones too."""
    schedule = made(DAILY, "UTC", "2026-01-12 12:00")
    edit = moved(schedule, "Asia/Kolkata", "2026-01-15 13:00", keeps_next=True)
    assert edit.skips[0].through_at <= edit.jobs[0].after_at


def test_a_date_that_ran_two_zones_ago_does_not_run_again():
    """By the clock of the zone between, it lay before the schedule was made."""
    monthly = "calendar months=1 at=00:30 start=2026-01-01"
    schedule = ran(made(monthly, "Pacific/Marquesas", "2026-01-01 09:00"), "2026-01-01 10:00")
    between = moved(schedule, "Africa/Johannesburg", "2026-01-25 23:00").after
    assert shown(moved(between, "Pacific/Pago_Pago", "2026-01-31 12:00").after.next_at) == "2026-02-01 11:30"
