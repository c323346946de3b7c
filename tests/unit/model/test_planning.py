"""What a deploy would change: added, re-timed, changed, retired, restored, or left to a newer version."""

from __future__ import annotations

import msgspec
import pytest

from rota.errors import Refused
from rota.model.micros import SECOND
from rota.model.schedules.edit import disable, enable, register, retire
from rota.model.schedules.planning import plan_changes
from rota.model.schedules.schedule import Origin, ScheduleSpec
from unit.model.values import HOUR, MINUTE, NOON, some_id

OLD, NEW = Origin("code", "shop", "1.0"), Origin("code", "shop", "1.10")
LATER = NOON + HOUR


def a_spec(trigger="every 10m", **fields):
    return ScheduleSpec(trigger=trigger, task="mail.send", **fields)


def existing(name="nightly", spec=None, origin=OLD, at=NOON):
    return register(None, name, spec or a_spec(), origin, at, some_id).after


def planned(declared, *there, origin=NEW):
    return plan_changes(declared, {schedule.id: schedule for schedule in there}, origin, LATER, some_id)


def test_what_is_new_is_added_with_its_next_three_runs():
    (one,) = planned({"nightly": a_spec()})
    assert (one.kind, one.before) == ("add", None)
    assert one.runs(one.after, LATER) == [LATER + 10 * MINUTE * number for number in (1, 2, 3)]


def test_what_is_the_same_is_not_planned():
    assert planned({"nightly": a_spec()}, existing()) == []


def test_other_times_show_the_runs_before_and_after():
    (one,) = planned({"nightly": a_spec("every 1h")}, existing())
    assert (one.kind, one.says) == ("re-time", ["trigger: every 10m → every 1h"])
    assert one.runs(one.before, LATER)[0] == LATER + 10 * MINUTE
    assert one.runs(one.after, LATER)[0] == LATER + HOUR


def test_another_queue_changes_no_time():
    (one,) = planned({"nightly": a_spec(queue="mail")}, existing())
    assert (one.kind, one.says) == ("change", ["queue: default → mail"])
    assert one.after.next_at == one.before.next_at


def test_what_moves_to_the_file_is_taken_over_and_not_retired():
    file = Origin("file", "shop", "1.10")
    (one,) = planned({"nightly": a_spec()}, existing(), origin=file)
    assert (one.kind, one.after.origin) == ("change", file)
    assert one.says == ["defined by: the code of app 'shop' → a file of app 'shop'"]
    there = existing()
    assert plan_changes({}, {there.id: there}, NEW, LATER, some_id, kept={"nightly"}) == []


def test_what_is_no_longer_declared_is_retired():
    (one,) = planned({}, existing())
    assert (one.kind, one.after.is_enabled, one.after.origin.is_retired, one.edit.revoke) == (
        "retire",
        False,
        True,
        "schedule retired",
    )
    assert planned({}, one.after) == []


def test_what_others_define_is_neither_retired_nor_changed():
    other = existing(origin=Origin("code", "mail", "1.0"))
    by_hand = existing("by-hand", origin=Origin())
    assert planned({}, other, by_hand) == []
    (one,) = planned({"nightly": a_spec("every 1h")}, other)
    assert (one.kind, one.edit) == ("refused", None)
    assert "is defined by the code of app 'mail'" in one.says[0]


def test_an_older_version_plans_nothing():
    newer = existing(origin=NEW)
    (one,) = planned({"nightly": a_spec("every 1h")}, newer, origin=OLD)
    assert (one.kind, one.edit) == ("newer", None)
    assert planned({}, newer, origin=OLD) == []


def test_a_retired_schedule_stays_retired_for_older_versions_and_comes_back_for_newer_ones():
    retired = retire(existing(), NEW, LATER).after
    assert register(retired, "nightly", a_spec(), OLD, LATER, some_id) is None
    (one,) = planned({"nightly": a_spec()}, retired)
    assert one.kind == "restore"
    back = one.after
    assert (back.is_enabled, back.origin.is_retired, back.next_at) == (True, False, LATER + 10 * MINUTE)


def test_what_fell_into_the_retirement_is_recorded_so():
    retired = retire(existing(), NEW, NOON + MINUTE).after
    (one,) = planned({"nightly": a_spec()}, retired)
    assert [(skip.reason, skip.count) for skip in one.edit.skips] == [("retired", 6)]


def test_a_retired_schedule_cannot_be_enabled_by_hand():
    retired = retire(existing(), NEW, LATER).after
    with pytest.raises(Refused, match="declare it again there, or remove it"):
        enable(retired, LATER)
    assert disable(retired, LATER) is None


# A start that lies earlier today.

MIDNIGHT = NOON // (24 * HOUR) * 24 * HOUR


@pytest.mark.parametrize(
    ("trigger", "start", "expected"),
    [
        ("every 6h", MIDNIGHT, MIDNIGHT + (NOON - MIDNIGHT) // (6 * HOUR) * 6 * HOUR),
        ("every 6h", NOON + HOUR, None),  # it lies ahead
        ("every 6h", MIDNIGHT - SECOND, None),  # yesterday
        ("calendar months=1 at=00:05 start=2020-01-31", MIDNIGHT, None),  # no run today
    ],
)
def test_a_start_earlier_today_runs_at_once_on_creation(trigger, start, expected):
    edit = register(None, "nightly", a_spec(trigger, start=start), OLD, NOON, some_id)
    assert [job.fire_at for job in edit.jobs] == ([] if expected is None else [expected])
    assert edit.after.run_count == len(edit.jobs)
    assert edit.after.next_at > NOON


def test_a_start_earlier_today_runs_nothing_on_an_update_nor_when_disabled():
    edit = register(existing(), "nightly", a_spec("every 6h", start=MIDNIGHT), OLD, NOON + SECOND, some_id)
    assert (edit.jobs, edit.after.next_at > NOON) == ([], True)
    off = register(None, "nightly", a_spec("every 6h", start=MIDNIGHT, enabled=False), OLD, NOON, some_id)
    assert off.jobs == []


def test_the_day_is_that_of_the_schedules_zone():
    start = MIDNIGHT + 15 * HOUR  # 2 in the morning in Kiritimati, on the next day there
    spec = a_spec("every 1h", start=MIDNIGHT, tz="Pacific/Kiritimati")
    assert register(None, "nightly", spec, OLD, start, some_id).jobs == []
    in_utc = msgspec.structs.replace(spec, tz="UTC")
    assert len(register(None, "nightly", in_utc, OLD, start, some_id).jobs) == 1


def test_one_run_at_once_spends_one_of_the_runs():
    edit = register(None, "nightly", a_spec("every 6h", start=MIDNIGHT, max_runs=1), OLD, NOON, some_id)
    assert (len(edit.jobs), edit.after.next_at) == (1, None)
