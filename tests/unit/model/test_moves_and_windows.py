"""Found by years of simulated tenants: changes of zone, kept runs and windows of look-ahead at their edges."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from rota.model.micros import SECOND, datetime_of, micros_of
from rota.model.schedules.edit import disable, enable, follow_pause, follow_spec, pause, register, resume
from rota.model.schedules.firing import fired, plan
from rota.model.schedules.schedule import Origin, Pause, ScheduleSpec
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
    return fired(firing, len(firing.shots), at(when), firing.shots[-1].job.id if firing.shots else None)


def moved(schedule, tz: str, when: str, *, keeps_next: bool = False):
    spec = msgspec.structs.replace(schedule.spec, tz=tz)
    return follow_spec(schedule, spec, at(when), keeps_next=keeps_next)


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


def test_a_yearly_date_that_is_done_does_not_hold_up_other_times():
    schedule = ran(made(YEARLY, "Asia/Kolkata", "2026-01-15 12:00"), "2026-01-15 18:35")
    after = moved(schedule, "UTC", "2026-01-15 20:00").after
    assert shown(after.next_at) == "2027-01-16 00:05"
    assert shown(retimed(after, DAILY, "2026-01-16 12:00").after.next_at) == "2026-01-17 00:05"


def test_a_yearly_run_that_was_kept_does_not_hold_up_other_times():
    schedule = made(YEARLY, "UTC", "2026-01-15 12:00")
    after = moved(schedule, "Asia/Kolkata", "2026-01-15 20:00", keeps_next=True).after
    assert shown(after.next_at) == "2026-01-16 00:05"
    assert shown(ran(after, "2026-01-16 00:05").next_at) == "2027-01-15 18:35"
    assert shown(retimed(after, DAILY, "2026-01-15 21:00").after.next_at) == "2026-01-16 18:35"


def test_a_kept_run_that_is_kept_twice_still_stands_for_its_own_date():
    """Announced in Kolkata for the 17th, where New York still had the 16th; London's 17th is that same date."""
    schedule = made(DAILY, "Asia/Kolkata", "2026-01-16 12:00")
    once = moved(schedule, "America/New_York", "2026-01-16 13:00", keeps_next=True).after
    twice = moved(once, "Europe/London", "2026-01-16 14:00", keeps_next=True)
    assert shown(twice.after.next_at) == "2026-01-16 18:35"
    assert shown(ran(twice.after, "2026-01-16 18:35").next_at) == "2026-01-18 00:05"


def test_the_last_run_of_all_is_kept_when_it_is_made_already():
    """All that is left was made ahead, so there is no next one to make."""
    end = at("2026-01-16 23:59")
    schedule = ran(made(DAILY, "UTC", "2026-01-15 12:00", lookahead=24 * HOUR, end=end), "2026-01-15 12:00")
    assert schedule.next_at is None
    edit = moved(schedule, "Asia/Kolkata", "2026-01-15 13:00", keeps_next=True)
    assert shown(edit.after.next_at) == "2026-01-16 00:05"
    assert [shown(shot.job.fire_at) for shot in plan(edit.after, at("2026-01-15 13:00"), some_id).shots] == [
        "2026-01-16 00:05"
    ]
    assert ran(edit.after, "2026-01-16 00:05").next_at is None


def test_what_was_missed_before_a_kept_run_is_caught_up_at_its_old_instants():
    schedule = made(DAILY, "UTC", "2026-01-12 12:00", catchup="all")
    edit = moved(schedule, "Asia/Kolkata", "2026-01-15 13:00", keeps_next=True)
    assert edit.skips == []
    shots = plan(edit.after, at("2026-01-15 13:00"), some_id).shots
    assert [shown(shot.job.fire_at) for shot in shots] == [f"2026-01-{day} 00:05" for day in (13, 14, 15)]
    assert shown(ran(edit.after, "2026-01-15 13:00").next_at) == "2026-01-16 00:05"


def test_a_kept_run_that_is_missed_is_one_occurrence_like_any_other():
    """Down for 45 days: the newest run alone is caught up, with what the schedule says by then."""
    schedule = made("calendar months=1 at=00:05 start=2026-01-16", "UTC", "2026-01-12 12:00")
    kept = moved(schedule, "Asia/Kolkata", "2026-01-15 13:00", keeps_next=True).after
    told = register(
        kept, "it", msgspec.structs.replace(kept.spec, payload="[[2]]"), Origin(), at("2026-01-15 14:00"), some_id
    )
    firing = plan(told.after, at("2026-03-02 00:00"), some_id)
    assert [(shown(shot.job.fire_at), shot.job.payload) for shot in firing.shots] == [("2026-02-15 18:35", b"[[2]]")]
    assert [(skip.count, skip.outcome, shown(skip.through_at)) for skip in firing.skips] == [
        (1, "coalesced", "2026-01-16 00:05")
    ]


def test_a_kept_run_is_skipped_where_nothing_is_caught_up():
    schedule = made(DAILY, "UTC", "2026-01-15 12:00", catchup="skip")
    kept = moved(schedule, "Asia/Kolkata", "2026-01-15 13:00", keeps_next=True).after
    firing = plan(kept, at("2026-01-16 00:10"), some_id)
    assert firing.shots == []
    assert [(skip.count, skip.reason) for skip in firing.skips] == [(1, "catch-up")]


def test_a_kept_run_that_falls_into_a_pause_is_paused_and_its_date_is_done():
    schedule = made(DAILY, "UTC", "2026-01-15 12:00")
    kept = moved(schedule, "America/New_York", "2026-01-15 13:00", keeps_next=True).after
    paused = pause(kept, at("2026-01-15 14:00"), reason="", by="", until=None).after
    resumed = resume(paused, at("2026-01-16 01:00"))
    assert [(skip.count, skip.reason) for skip in resumed.skips] == [(1, "paused")]
    assert shown(resumed.after.next_at) == "2026-01-17 05:05"


def test_a_pause_that_was_over_before_it_began_takes_nothing_out():
    schedule = made(DAILY, "UTC", "2026-01-12 12:00", catchup="all")
    paused = pause(schedule, at("2026-01-15 14:00"), reason="", by="", until=at("2026-01-14 12:00")).after
    resumed = resume(paused, at("2026-01-15 15:00"))
    assert resumed.skips == []
    assert len(plan(resumed.after, at("2026-01-15 15:00"), some_id).shots) == 3


def test_a_kept_run_outlives_a_pause_that_ends_before_it():
    schedule = made(DAILY, "UTC", "2026-01-15 12:00")
    kept = moved(schedule, "Asia/Kolkata", "2026-01-15 13:00", keeps_next=True).after
    paused = pause(kept, at("2026-01-15 14:00"), reason="", by="", until=None).after
    assert shown(resume(paused, at("2026-01-15 15:00")).after.next_at) == "2026-01-16 00:05"


@pytest.mark.parametrize("trigger", [DAILY, "cron 5 0 * * *"])
def test_a_zone_more_than_a_day_away_leaves_no_local_date_out(trigger):
    """Pago Pago has had its 15th; on Kiritimati it is the 16th already, and its five past twelve lies further back.

    It becomes a run right after the last one."""
    schedule = ran(made(trigger, "Pacific/Pago_Pago", "2026-01-14 12:00"), "2026-01-15 11:05")
    after = moved(schedule, "Pacific/Kiritimati", "2026-01-15 12:00").after
    assert after.next_at == at("2026-01-15 11:05:01")
    firing = plan(after, at("2026-01-15 12:00"), some_id)
    assert [(shot.job.fire_at, shot.job.made_by) for shot in firing.shots] == [(after.next_at, "catchup")]
    assert shown(firing.next_at) == "2026-01-16 10:05"


def test_a_zone_more_than_a_day_away_goes_by_catch_up():
    schedule = ran(made(DAILY, "Pacific/Pago_Pago", "2026-01-14 12:00", catchup="skip"), "2026-01-15 11:05")
    after = moved(schedule, "Pacific/Kiritimati", "2026-01-15 12:00").after
    firing = plan(after, at("2026-01-15 12:00"), some_id)
    assert firing.shots == []
    assert [(skip.count, skip.reason, shown(skip.through_at)) for skip in firing.skips] == [
        (1, "catch-up", "2026-01-15 11:05")
    ]


def test_several_times_that_a_zone_change_skips_are_one_run():
    schedule = ran(made("cron 0 0,1 * * *", "Pacific/Pago_Pago", "2026-01-14 13:00"), "2026-01-15 11:00")
    schedule = ran(schedule, "2026-01-15 12:00")
    after = moved(schedule, "Pacific/Kiritimati", "2026-01-15 12:30").after
    firing = plan(after, at("2026-01-15 12:30"), some_id)
    assert [shot.job.fire_at for shot in firing.shots] == [at("2026-01-15 12:00:01")]
    assert shown(firing.next_at) == "2026-01-16 10:00"


@pytest.mark.parametrize(
    ("before", "after"),
    [(DAILY, "calendar days=1 at=18:00"), ("cron 5 0 * * *", "cron 0 18 * * *"), (DAILY, "cron 0 18 * * *")],
)
def test_a_new_wall_time_does_not_run_a_date_that_is_done(before, after):
    schedule = ran(made(before, "UTC", "2026-01-14 12:00"), "2026-01-15 00:05")
    edit = retimed(schedule, after, "2026-01-15 10:00")
    assert shown(edit.after.next_at) == "2026-01-16 18:00"
    assert (
        shown(retimed(edit.after, "calendar days=1 at=20:00", "2026-01-15 11:00").after.next_at) == "2026-01-16 20:00"
    )


def test_a_new_wall_time_runs_a_date_that_is_not_done():
    schedule = ran(made("calendar days=1 at=18:00", "UTC", "2026-01-13 12:00"), "2026-01-14 18:00")
    earlier = retimed(schedule, "calendar days=1 at=06:00", "2026-01-15 10:00").after
    assert shown(earlier.next_at) == "2026-01-16 06:00"  # nothing that lies behind is replayed
    assert shown(retimed(earlier, "calendar days=1 at=20:00", "2026-01-15 10:05").after.next_at) == "2026-01-15 20:00"
    fresh = made(DAILY, "UTC", "2026-01-15 09:00")
    assert shown(retimed(fresh, "calendar days=1 at=20:00", "2026-01-15 10:05").after.next_at) == "2026-01-15 20:00"


def test_a_date_that_is_done_does_not_hold_up_a_rule_with_several_times_a_day():
    schedule = ran(made(DAILY, "UTC", "2026-01-14 12:00"), "2026-01-15 00:05")
    evening = retimed(schedule, "calendar days=1 at=18:00", "2026-01-15 10:00").after
    assert shown(retimed(evening, "cron */5 * * * *", "2026-01-15 11:00").after.next_at) == "2026-01-15 11:05"


def test_a_date_that_is_done_stays_done_in_another_zone():
    schedule = ran(made(DAILY, "UTC", "2026-01-14 12:00"), "2026-01-15 00:05")
    evening = retimed(schedule, "calendar days=1 at=18:00", "2026-01-15 10:00").after
    assert shown(moved(evening, "America/New_York", "2026-01-15 11:00").after.next_at) == "2026-01-16 23:00"


def test_several_times_a_day_are_no_date_that_is_done():
    schedule = ran(made("cron 0 0,12 * * *", "UTC", "2026-01-14 13:00"), "2026-01-15 00:00")
    assert shown(retimed(schedule, "cron 0 6,18 * * *", "2026-01-15 10:00").after.next_at) == "2026-01-15 18:00"


def test_a_date_that_ran_two_zones_ago_does_not_run_again():
    """By the clock of the zone between, it lay before the schedule was made."""
    monthly = "calendar months=1 at=00:30 start=2026-01-01"
    schedule = ran(made(monthly, "Pacific/Marquesas", "2026-01-01 09:00"), "2026-01-01 10:00")
    between = moved(schedule, "Africa/Johannesburg", "2026-01-25 23:00").after
    assert shown(moved(between, "Pacific/Pago_Pago", "2026-01-31 12:00").after.next_at) == "2026-02-01 11:30"


NIGHTLY = "cron 30 2 * * *"
SILENCES = {
    "pause": (lambda it, now: pause(it, now, reason="", by="", until=None), resume),
    "tenant": (lambda it, now: follow_pause(it, Pause(now), now), lambda it, now: follow_pause(it, None, now)),
    "disable": (disable, enable),
}
every_silence = pytest.mark.parametrize("kind", list(SILENCES))


def silent(schedule, kind: str, since: str, until: str):
    stop, start = SILENCES[kind]
    return start(stop(schedule, at(since)).after, at(until)).after


@every_silence
def test_a_silence_that_no_time_fell_into_leaves_the_schedule_as_it_was(kind):
    schedule = made(NIGHTLY, "Europe/Paris", "2026-11-16 17:52")
    after = silent(schedule, kind, "2026-11-16 17:53:00", "2026-11-16 17:53:20")
    assert (after.fired_through, after.next_at, after.ahead) == (schedule.fired_through, schedule.next_at, None)


@every_silence
def test_a_date_that_never_ran_is_still_to_come_after_a_silence_and_two_moves(kind):
    """By the clock of the zone between, it lay before the schedule was made."""
    schedule = made(NIGHTLY, "Europe/Paris", "2026-11-16 17:52")
    schedule = silent(schedule, kind, "2026-11-16 17:53:00", "2026-11-16 17:53:20")
    between = moved(schedule, "Asia/Tokyo", "2026-11-16 17:54").after
    assert shown(between.next_at) == "2026-11-17 17:30"
    assert shown(moved(between, "Europe/Paris", "2026-11-16 17:55").after.next_at) == "2026-11-17 01:30"


@every_silence
def test_a_date_that_is_caught_up_after_a_silence_has_the_time_of_its_rule(kind):
    schedule = ran(made(NIGHTLY, "Europe/Paris", "2026-11-15 17:52"), "2026-11-16 01:30")
    schedule = silent(schedule, kind, "2026-11-16 17:53:00", "2026-11-16 17:53:20")
    after = moved(schedule, "Asia/Tokyo", "2026-11-16 17:54").after
    assert after.next_at == at("2026-11-16 17:30")
    (shot,) = plan(after, at("2026-11-16 17:54"), some_id).shots
    assert (shot.job.fire_at, shot.job.made_by) == (after.next_at, "catchup")


@every_silence
def test_a_date_that_fell_into_a_silence_is_done_in_every_zone(kind):
    schedule = made(NIGHTLY, "Europe/Paris", "2026-11-15 17:52")
    schedule = silent(schedule, kind, "2026-11-15 18:00", "2026-11-16 17:53")
    assert schedule.fired_through == at("2026-11-16 01:30")
    assert shown(moved(schedule, "Europe/London", "2026-11-16 17:54").after.next_at) == "2026-11-17 02:30"
    assert shown(moved(schedule, "Asia/Tokyo", "2026-11-16 17:54").after.next_at) == "2026-11-16 17:30"


def test_what_was_missed_before_a_silence_is_caught_up_in_another_zone():
    schedule = made(NIGHTLY, "Europe/Paris", "2026-11-15 17:52")
    schedule = silent(schedule, "pause", "2026-11-16 10:00", "2026-11-16 10:01")
    assert shown(moved(schedule, "Europe/London", "2026-11-16 10:02").after.next_at) == "2026-11-16 02:30"


def test_a_silence_after_a_kept_run_does_not_bring_its_date_back():
    schedule = made(NIGHTLY, "Europe/Paris", "2026-11-16 17:52")
    kept = moved(schedule, "Europe/London", "2026-11-16 18:00", keeps_next=True).after
    after = silent(ran(kept, "2026-11-17 01:30"), "pause", "2026-11-17 01:40", "2026-11-17 03:00")
    assert shown(after.next_at) == "2026-11-18 02:30"


@every_silence
def test_a_time_of_the_new_zone_that_lies_in_the_silence_is_skipped_with_it(kind):
    """Kolkata's 16th is at 18:35, after the silence began; nothing of New York's clock fell into it."""
    stop, start = SILENCES[kind]
    schedule = ran(made(DAILY, "America/New_York", "2026-01-14 12:00"), "2026-01-15 05:05")
    away = moved(stop(schedule, at("2026-01-15 12:00")).after, "Asia/Kolkata", "2026-01-15 18:55")
    assert away.skips == []
    back = start(away.after, at("2026-01-15 19:00"))
    assert [(skip.count, shown(skip.through_at)) for skip in back.skips] == [(1, "2026-01-15 18:35")]
    assert shown(back.after.next_at) == "2026-01-16 18:35"


@every_silence
def test_a_time_of_the_new_zone_that_lies_before_the_silence_was_missed(kind):
    stop, start = SILENCES[kind]
    schedule = ran(made(DAILY, "America/New_York", "2026-01-14 12:00"), "2026-01-15 05:05")
    away = moved(stop(schedule, at("2026-01-15 18:40")).after, "Asia/Kolkata", "2026-01-15 18:55").after
    back = start(away, at("2026-01-15 19:00")).after
    assert shown(back.next_at) == "2026-01-15 18:35"
    (shot,) = plan(back, at("2026-01-15 19:00"), some_id).shots
    assert (shown(shot.job.fire_at), shot.job.made_by) == ("2026-01-15 18:35", "catchup")


@every_silence
def test_a_time_that_fell_into_the_silence_by_the_old_clock_is_decided_by_a_move(kind):
    """Paris had its 16th in the pause; Tokyo's lies before the pause, and is the same date."""
    stop, start = SILENCES[kind]
    schedule = ran(made(NIGHTLY, "Europe/Paris", "2026-11-14 12:00"), "2026-11-15 01:30")
    silent_one = stop(schedule, at("2026-11-16 00:00")).after
    away = moved(silent_one, "Asia/Tokyo", "2026-11-16 12:00")
    assert [(skip.count, shown(skip.through_at)) for skip in away.skips] == [(1, "2026-11-16 01:30")]
    back = start(away.after, at("2026-11-16 13:00"))
    assert back.skips == []
    assert shown(back.after.next_at) == "2026-11-16 17:30"


def test_what_was_missed_before_a_silence_stays_open_through_two_moves():
    schedule = made(NIGHTLY, "Europe/Paris", "2026-11-13 12:00", catchup="all")
    schedule = silent(schedule, "pause", "2026-11-15 12:00", "2026-11-16 12:00")  # the 14th and 15th were missed
    away = moved(schedule, "Asia/Tokyo", "2026-11-16 12:10").after
    back = moved(away, "Europe/Paris", "2026-11-16 12:20").after
    shots = plan(back, at("2026-11-16 12:30"), some_id).shots
    assert [shown(shot.job.fire_at) for shot in shots] == ["2026-11-14 01:30", "2026-11-15 01:30"]
    assert shown(plan(back, at("2026-11-16 12:30"), some_id).next_at) == "2026-11-17 01:30"


def test_a_date_that_never_ran_is_still_to_come_after_an_edit_and_two_moves():
    schedule = ran(made("cron 0 3 * * *", "Europe/Paris", "2026-11-15 17:52"), "2026-11-16 02:00")
    edited = retimed(schedule, NIGHTLY, "2026-11-16 17:53").after
    assert shown(edited.next_at) == "2026-11-17 01:30"
    away = moved(edited, "Asia/Tokyo", "2026-11-16 17:54").after
    assert shown(away.next_at) == "2026-11-17 17:30"
    assert shown(moved(away, "Europe/Paris", "2026-11-16 17:55").after.next_at) == "2026-11-17 01:30"


def test_a_time_of_day_that_never_ran_is_still_to_come_after_two_moves():
    schedule = ran(made("cron 0 2,19 * * *", "Europe/Paris", "2026-11-16 17:52"), "2026-11-16 18:00")
    away = moved(schedule, "Asia/Tokyo", "2026-11-16 18:10").after
    assert shown(away.next_at) == "2026-11-17 10:00"
    assert shown(moved(away, "Europe/Paris", "2026-11-16 18:20").after.next_at) == "2026-11-17 01:00"


def test_a_date_that_ran_in_another_zone_is_done_for_a_new_wall_time():
    """Tokyo has had its 17th, by whose clock Paris still has the 16th."""
    schedule = ran(made(NIGHTLY, "Asia/Tokyo", "2026-11-15 17:52"), "2026-11-16 17:30")
    away = moved(schedule, "Europe/Paris", "2026-11-16 18:00").after
    assert shown(away.next_at) == "2026-11-18 01:30"
    assert shown(retimed(away, "cron 0 22 * * *", "2026-11-16 18:10").after.next_at) == "2026-11-18 21:00"


def test_a_date_that_ran_is_done_after_a_rule_with_several_times_a_day_held_in_between():
    schedule = ran(made(NIGHTLY, "UTC", "2026-11-15 17:52"), "2026-11-16 02:30")
    often = ran(retimed(schedule, "cron */5 * * * *", "2026-11-16 10:01").after, "2026-11-16 10:05")
    assert shown(retimed(often, "cron 0 18 * * *", "2026-11-16 10:06").after.next_at) == "2026-11-17 18:00"


def test_a_date_that_is_done_in_another_zone_does_not_hold_up_a_rule_with_several_times_a_day():
    schedule = ran(made(NIGHTLY, "Asia/Tokyo", "2026-11-15 17:52"), "2026-11-16 17:30")
    away = moved(schedule, "Europe/Paris", "2026-11-16 18:00").after
    assert shown(retimed(away, "cron */5 * * * *", "2026-11-16 18:01").after.next_at) == "2026-11-16 18:05"


def test_a_date_whose_run_began_with_the_schedule_is_done_at_another_time_and_in_another_zone():
    start = at("2026-11-16 23:00")  # the 17th in Tokyo
    schedule = made("calendar days=1 at=09:00", "Asia/Tokyo", "2026-11-17 01:00", start=start)
    assert shown(schedule.last.fired_for) == "2026-11-17 00:00"
    assert shown(retimed(schedule, "calendar days=1 at=18:00", "2026-11-17 02:00").after.next_at) == "2026-11-18 09:00"
    assert shown(moved(schedule, "Europe/Paris", "2026-11-17 02:00").after.next_at) == "2026-11-18 08:00"


def test_times_of_one_day_that_a_move_puts_before_the_last_run_are_one_run():
    schedule = ran(made("cron 0 1,3,4 * * *", "Europe/Paris", "2026-11-16 17:52"), "2026-11-17 00:00")
    after = moved(schedule, "Asia/Tokyo", "2026-11-17 00:10").after  # 09:10 there: its 03:00 and 04:00 are past
    assert after.next_at == at("2026-11-17 00:00:01")
    (shot,) = plan(after, at("2026-11-17 00:10"), some_id).shots
    assert shot.job.fire_at == after.next_at
    assert shown(moved(ran(after, "2026-11-17 00:10"), "Europe/Paris", "2026-11-17 00:20").after.next_at) == (
        "2026-11-18 00:00"
    )


def test_times_that_only_a_zone_in_between_has_passed_are_to_come_again():
    schedule = ran(made("cron 0 1,3,4 * * *", "Europe/Paris", "2026-11-15 17:52"), "2026-11-17 00:00")
    away = moved(schedule, "Asia/Tokyo", "2026-11-17 00:10").after  # one run stands for its 03:00 and 04:00
    home = moved(away, "Europe/Paris", "2026-11-17 00:20").after
    assert shown(home.next_at) == "2026-11-17 02:00"
    assert shown(moved(away, "Asia/Dhaka", "2026-11-17 00:20").after.next_at) == "2026-11-17 00:00"  # past there, too


def test_a_run_for_several_times_that_was_missed_before_a_pause_stays_missed():
    schedule = ran(made("cron 0 2,19 * * *", "Europe/Paris", "2026-11-15 17:52"), "2026-11-16 18:00")
    away = moved(schedule, "Asia/Tokyo", "2026-11-16 18:10").after
    paused = pause(away, at("2026-11-16 18:20"), reason="", by="", until=None).after
    open_again = resume(paused, at("2026-11-17 12:00")).after  # Tokyo's 19:00 fell into the pause
    assert open_again.next_at == at("2026-11-16 18:00:01")
    assert moved(open_again, "Europe/Paris", "2026-11-17 12:10").after.next_at == at("2026-11-16 18:00:01")


def test_a_kept_run_that_another_move_drops_is_open_again():
    schedule = ran(made(NIGHTLY, "America/Los_Angeles", "2026-11-15 12:00"), "2026-11-16 10:30")
    kept = moved(schedule, "America/New_York", "2026-11-16 12:00", keeps_next=True).after
    assert shown(kept.next_at) == "2026-11-17 10:30"
    away = moved(kept, "Asia/Tokyo", "2026-11-16 18:00").after  # the 17th there was at 17:30
    assert shown(away.next_at) == "2026-11-16 17:30"


def test_other_bounds_leave_a_kept_run_and_what_is_done():
    schedule = ran(made(NIGHTLY, "America/Los_Angeles", "2026-11-15 12:00"), "2026-11-16 10:30")
    kept = moved(schedule, "America/New_York", "2026-11-16 12:00", keeps_next=True).after
    bounded = msgspec.structs.replace(kept.spec, end=at("2026-12-01 00:00"))
    after = register(kept, "it", bounded, Origin(), at("2026-11-17 08:00"), some_id).after
    assert shown(after.next_at) == "2026-11-17 10:30"
    assert shown(ran(after, "2026-11-17 10:30").next_at) == "2026-11-18 07:30"
    ended = msgspec.structs.replace(kept.spec, end=at("2026-11-17 09:00"))
    assert register(kept, "it", ended, Origin(), at("2026-11-17 08:00"), some_id).after.next_at is None


def test_other_bounds_do_not_run_a_date_again_that_is_done_in_another_zone():
    schedule = ran(made("cron 0 2,3 * * *", "Asia/Tokyo", "2026-11-15 18:52"), "2026-11-16 17:00")
    away = moved(ran(schedule, "2026-11-16 18:00"), "Europe/Paris", "2026-11-16 18:10").after
    assert shown(away.next_at) == "2026-11-18 01:00"
    bounded = msgspec.structs.replace(away.spec, end=at("2026-12-01 00:00"))
    assert shown(register(away, "it", bounded, Origin(), at("2026-11-16 18:20"), some_id).after.next_at) == (
        "2026-11-18 01:00"
    )


def test_a_record_from_before_the_past_was_stored_reads_as_it_did():
    """The last time that lies behind counts as done, whichever clock said so."""
    schedule = ran(made("cron 0 3 * * *", "Europe/Paris", "2026-11-15 17:52"), "2026-11-16 02:00")
    edited = retimed(schedule, NIGHTLY, "2026-11-16 17:53").after
    old = msgspec.structs.replace(moved(edited, "Asia/Tokyo", "2026-11-16 17:54").after, ahead=None)
    assert shown(moved(old, "Europe/Paris", "2026-11-16 17:55").after.next_at) == "2026-11-18 01:30"
