"""Edits of schedules: what registering, pausing, resuming, enabling, disabling and removing change, and what not."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadOption, Refused
from rota.model.micros import SECOND
from rota.model.schedules.edit import (
    disable,
    enable,
    mark_broken,
    pause,
    register,
    remove,
    resume,
    retire,
    schedule_after,
    trigger_now,
)
from rota.model.schedules.firing import as_made, fired, plan
from rota.model.schedules.schedule import LastRun, Origin, ScheduleSpec, check_spec, pack_spec, unpack_spec
from unit.model.values import HOUR, MINUTE, NOON, a_schedule, some_id

CODE = Origin("code", "shop", "1.0")
LATER = NOON + HOUR + 17 * SECOND


def a_spec(trigger="every 10m", **fields):
    return ScheduleSpec(**{"trigger": trigger, "task": "mail.send", **fields})


def created(trigger="every 10m", at=NOON, **fields):
    return register(None, "nightly", a_spec(trigger, **fields), CODE, at, some_id)


def seasoned(**fields):
    """A schedule that has fired, with a past that edits must not lose."""
    schedule = created(**fields).after
    firing = plan(schedule, NOON + 10 * MINUTE, lambda: "job-of-10")
    after = fired(firing, 1, NOON + 10 * MINUTE, "job-of-10")
    last = msgspec.structs.replace(after.last, status="succeeded", success_at=NOON + 11 * MINUTE)
    return msgspec.structs.replace(after, last=last)


def changed(existing, **fields):
    return register(existing, "nightly", msgspec.structs.replace(existing.spec, **fields), CODE, LATER, some_id)


# A new schedule.


@pytest.mark.parametrize(
    "trigger", ["every 1h", "cron 0 * * * *", "cron * * * * * *", "calendar months=1 at=00:05 start=2020-01-31"]
)
@given(offset=st.integers(0, 3 * HOUR))
def test_a_new_schedule_never_fires_for_what_lies_behind_it(trigger, offset):
    edit = created(trigger, at=NOON + offset)
    assert edit.jobs == []
    assert edit.after.fired_through == NOON + offset
    assert edit.after.next_at > NOON + offset


@given(st.integers(0, 10 * SECOND))
def test_a_new_interval_first_runs_one_interval_after_its_creation(offset):
    """Not at once: an anchor that is rounded up to the next second would fire within that second."""
    at = NOON + offset
    assert HOUR - SECOND < created("every 1h", at=at).after.next_at - at <= HOUR


def test_a_new_schedule_is_expected_not_to_exist():
    edit = created()
    assert (edit.expect_version, edit.after.version, edit.after.generation, edit.after.run_count) == (0, 1, 1, 0)


def test_run_on_start_makes_one_job_at_once_and_does_not_count_as_a_run_of_the_trigger():
    edit = created(run_on_start=True, max_runs=1)
    (job,) = edit.jobs
    assert (job.run_at, job.fire_at, job.made_by, job.key) == (NOON, None, "start", None)
    assert (edit.after.run_count, edit.after.next_at) == (0, NOON + 10 * MINUTE)


def test_a_schedule_that_is_disabled_from_the_start_does_not_run_on_start():
    edit = created(run_on_start=True, enabled=False)
    assert (edit.jobs, edit.after.is_enabled, edit.after.due_at) == ([], False, None)


def test_run_on_start_runs_once_and_not_at_every_deploy():
    existing = created(run_on_start=True).after
    assert register(existing, "nightly", existing.spec, CODE, LATER, some_id) is None
    assert changed(existing, trigger="every 5m").jobs == []


# Registering again.


def test_registering_an_unchanged_schedule_changes_nothing():
    existing = seasoned()
    assert register(existing, "nightly", existing.spec, CODE, LATER, some_id) is None


def test_registering_an_unchanged_schedule_that_operators_paused_or_disabled_changes_nothing():
    existing = disable(pause(seasoned(), LATER, reason="", by="", until=None).after, LATER).after
    assert register(existing, "nightly", existing.spec, CODE, LATER, some_id) is None


def test_a_spec_that_went_through_a_store_is_still_the_same():
    spec = a_spec(jitter=5, start=NOON, description="ü")
    assert unpack_spec(pack_spec(spec)) == spec


@pytest.mark.parametrize(
    "fields",
    [
        {"trigger": "every 5m"},
        {"tz": "Europe/Berlin"},
        {"start": NOON + 2 * HOUR},
        {"end": NOON + 9 * HOUR},
        {"jitter": MINUTE},
        {"max_runs": 10},
    ],
)
def test_a_change_of_timing_recomputes_the_next_run_and_keeps_the_past(fields):
    existing = seasoned()
    edit = changed(existing, **fields)
    after = edit.after
    assert after.next_at > LATER
    assert after.fired_through == LATER
    assert after.generation == existing.generation + 1
    assert (after.run_count, after.last, after.created_at) == (existing.run_count, existing.last, existing.created_at)
    assert (edit.revoke, edit.jobs) == ("schedule re-timed", [])
    assert (edit.expect_version, after.version) == (existing.version, existing.version + 1)


def test_new_times_hold_from_now_on():
    edit = changed(seasoned(), trigger="cron 0 * * * *")
    assert edit.after.next_at == -(-LATER // HOUR) * HOUR


@pytest.mark.parametrize(
    "fields",
    [
        {"payload": "[[1]]"},
        {"task": "mail.check"},
        {"queue": "slow"},
        {"priority": 7},
        {"overlap": "queue"},
        {"catchup": "all"},
        {"catchup_limit": 7},
        {"grace": HOUR},
        {"description": "as before"},
        {"run_on_start": True},
    ],
)
def test_a_change_of_anything_else_leaves_the_next_run_and_what_waits(fields):
    existing = seasoned()
    edit = changed(existing, **fields)
    after = edit.after
    assert (after.next_at, after.fired_through, after.generation) == (
        existing.next_at,
        existing.fired_through,
        existing.generation,
    )
    assert (after.run_count, after.last) == (existing.run_count, existing.last)
    assert (edit.revoke, edit.jobs, edit.skips) == (None, [], [])
    assert after.version == existing.version + 1


def test_an_edit_of_the_arguments_counts_from_the_next_occurrence_on():
    existing = seasoned()
    after = changed(existing, payload="[[2]]").after
    (shot,) = plan(after, after.next_at, some_id).shots
    assert shot.job.payload == b"[[2]]"


def test_editing_other_fields_never_shifts_months():
    existing = created("calendar months=1 at=00:05 start=2026-01-31").after
    after = changed(existing, payload="[[2]]", description="new").after
    assert after.next_at == existing.next_at


# What the author says of `enabled`.


def test_a_deploy_that_disables_a_schedule_revokes_what_waits():
    edit = changed(seasoned(), enabled=False)
    assert (edit.after.is_enabled, edit.after.due_at) == (False, None)
    assert edit.revoke is not None


def test_a_deploy_that_enables_a_schedule_goes_on_from_now_and_records_what_fell_into_the_time_between():
    off = changed(seasoned(), enabled=False).after
    spec = msgspec.structs.replace(off.spec, enabled=True)
    edit = register(off, "nightly", spec, CODE, LATER + HOUR, some_id)
    assert edit.after.is_enabled
    assert [(skip.count, skip.reason) for skip in edit.skips] == [(6, "disabled")]
    firing = plan(edit.after, LATER + HOUR, some_id)  # five were missed before it was disabled
    assert [skip.count + len(firing.shots) for skip in firing.skips] == [5]
    assert firing.next_at > LATER + HOUR


def test_what_operators_decided_survives_a_deploy_that_says_nothing_new_about_it():
    off = disable(seasoned(), LATER).after
    assert not changed(off, description="new").after.is_enabled
    assert not changed(off, trigger="every 5m").after.is_enabled
    held = pause(seasoned(), LATER, reason="month end", by="ann", until=None).after
    assert changed(held, trigger="every 5m").after.pause == held.pause


# Origins.


@pytest.mark.parametrize(
    "other",
    [Origin("code", "blog", "1.0"), Origin("file", "shop", "1.0"), Origin(), Origin("api", "shop")],
)
def test_only_its_origin_may_edit_a_schedule(other):
    existing = seasoned()
    with pytest.raises(Refused, match="is defined by the code of app 'shop'"):
        register(existing, "nightly", a_spec("every 5m"), other, LATER, some_id)


def test_another_origin_is_refused_even_where_it_says_the_same():
    existing = seasoned()
    with pytest.raises(Refused):
        register(existing, "nightly", existing.spec, Origin("code", "blog"), LATER, some_id)


@pytest.mark.parametrize("spec", [None, a_spec("every 5m")], ids=["same", "other"])
def test_a_schedule_moves_between_the_code_and_the_file_of_an_app_with_a_higher_version(spec):
    code = seasoned()
    moved = register(code, "nightly", spec or code.spec, Origin("file", "shop", "1.1"), LATER, some_id).after
    assert moved.origin == Origin("file", "shop", "1.1")
    assert register(moved, "nightly", code.spec, CODE, LATER, some_id) is None  # an old process starts meanwhile
    back = register(moved, "nightly", code.spec, Origin("code", "shop", "1.2"), LATER, some_id).after
    assert back.origin.name == "code:shop"


def test_what_was_retired_in_the_code_may_come_back_in_the_file():
    retired = retire(seasoned(), CODE, LATER).after
    back = register(retired, "nightly", a_spec(), Origin("file", "shop", "1.0"), LATER, some_id).after
    assert (back.origin, back.is_enabled) == (Origin("file", "shop", "1.0"), True)


def test_a_newer_version_of_the_same_app_may_edit_and_is_remembered():
    edit = register(seasoned(), "nightly", a_spec("every 5m"), Origin("code", "shop", "1.1"), LATER, some_id)
    assert edit.after.origin == Origin("code", "shop", "1.1")


def test_an_older_version_of_the_same_app_never_overwrites_a_newer_ones_schedule():
    """While old and new processes run side by side, the schedule would flap with every restart."""
    newer = register(None, "nightly", a_spec(), Origin("code", "shop", "1.10"), NOON, some_id).after
    assert register(newer, "nightly", a_spec("every 5m"), Origin("code", "shop", "1.9"), LATER, some_id) is None


# Pause, resume, enable, disable, remove.


def test_a_paused_schedule_is_never_due_and_what_waits_is_revoked_with_who_and_why():
    edit = pause(seasoned(), LATER, reason="month end", by="ann", until=None)
    assert edit.after.due_at is None
    assert edit.revoke == "paused by ann: month end"


def test_a_pause_with_an_end_is_due_at_its_end():
    assert pause(seasoned(), LATER, reason="", by="", until=LATER + HOUR).after.due_at == LATER + HOUR


def test_a_resumed_schedule_goes_on_from_now_and_records_what_fell_into_the_pause():
    held = pause(seasoned(), NOON + 15 * MINUTE, reason="month end", by="ann", until=None).after
    edit = resume(held, LATER)
    assert (edit.after.pause, edit.jobs) == (None, [])
    assert edit.after.next_at == NOON + 70 * MINUTE
    assert [(skip.count, skip.outcome, skip.reason) for skip in edit.skips] == [
        (5, "skipped", "paused by ann: month end")
    ]


def test_an_enabled_schedule_goes_on_from_now_and_records_what_it_missed():
    edit = enable(disable(seasoned(), NOON + 15 * MINUTE).after, LATER)
    assert (edit.after.is_enabled, edit.after.next_at) == (True, NOON + 70 * MINUTE)
    assert [(skip.count, skip.reason) for skip in edit.skips] == [(5, "disabled")]


def test_a_disabled_schedule_is_never_due_and_what_waits_is_revoked():
    edit = disable(seasoned(), LATER)
    assert (edit.after.due_at, edit.revoke) == (None, "schedule disabled")


def test_doing_it_twice_changes_nothing():
    schedule = seasoned()
    assert resume(schedule, LATER) is None
    assert enable(schedule, LATER) is None
    assert disable(disable(schedule, LATER).after, LATER) is None


def test_a_removed_schedule_goes_with_what_it_has_waiting():
    edit = remove(seasoned(), LATER)
    assert (edit.is_removal, edit.revoke) == (True, "schedule removed")


def test_a_schedule_that_has_made_all_its_runs_stays_spent_through_pause_and_resume():
    spent = msgspec.structs.replace(seasoned(max_runs=1), next_at=None)
    assert spent.run_count == 1
    assert resume(pause(spent, LATER, reason="", by="", until=None).after, LATER).after.next_at is None
    assert enable(disable(spent, LATER).after, LATER).after.next_at is None


def test_raising_max_runs_wakes_a_spent_schedule():
    spent = msgspec.structs.replace(seasoned(max_runs=1), next_at=None)
    assert changed(spent, max_runs=2).after.next_at > LATER


@given(st.lists(st.sampled_from(["pause", "resume", "enable", "disable", "retime"]), max_size=12))
def test_no_sequence_of_edits_ever_goes_back_in_time(steps):
    schedule, now = seasoned(), NOON + 15 * MINUTE
    for number, step in enumerate(steps):
        now += 7 * MINUTE
        edit = edited(schedule, step, now, number)
        if edit is None:
            continue
        assert edit.after.version == schedule.version + 1 == edit.expect_version + 1
        assert edit.after.fired_through >= schedule.fired_through
        for skip in edit.skips:
            assert schedule.fired_through <= skip.after_at < skip.through_at <= now
        schedule = edit.after
    if schedule.due_at is not None:
        assert schedule.next_at > schedule.fired_through


def edited(schedule, step, now, number):
    match step:
        case "pause":
            return pause(schedule, now, reason="", by="", until=None)
        case "resume":
            return resume(schedule, now)
        case "enable":
            return enable(schedule, now)
        case "disable":
            return disable(schedule, now)
        case _:
            spec = msgspec.structs.replace(schedule.spec, trigger=f"every {number + 2}m")
            return register(schedule, "nightly", spec, CODE, now, some_id)


# By hand, and what is broken.


def test_a_run_by_hand_leaves_the_times_alone():
    schedule = seasoned()
    edit = trigger_now(schedule, LATER, "job-1", by="ann")
    (job,) = edit.jobs
    assert (job.id, job.fire_at, job.made_by, job.reason, job.key) == (
        "job-1",
        None,
        "manual",
        "run now by ann",
        None,
    )
    assert (edit.after.next_at, edit.after.run_count, edit.after.fired_through) == (
        schedule.next_at,
        schedule.run_count,
        schedule.fired_through,
    )
    assert edit.revoke is None


def test_a_broken_schedule_is_set_aside_with_the_reason_and_comes_back_when_it_is_mended():
    parked = mark_broken(seasoned(), LATER, "BadCron: no such date").after
    assert (parked.due_at, parked.problem) == (None, "BadCron: no such date")
    mended = register(parked, "nightly", a_spec("every 5m"), CODE, LATER, some_id).after
    assert mended.problem is None
    assert mended.due_at > LATER


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"overlap": "merge"}, "overlap='merge' must be one of"),
        ({"catchup": "some"}, "catchup='some' must be one of"),
        ({"catchup_limit": 0}, "between 1 and 10,000"),
        ({"catchup_limit": 10_001}, "between 1 and 10,000"),
        ({"max_runs": 0}, "at least 1"),
        ({"start": NOON, "end": NOON - 1}, "end lies before its start"),
    ],
)
def test_policies_that_make_no_sense_are_refused(fields, words):
    with pytest.raises(BadOption, match=words):
        check_spec(a_spec(**fields))


def test_what_a_schedule_knows_of_its_last_run_is_never_written_by_an_edit():
    schedule = msgspec.structs.replace(a_schedule(), last=LastRun(status="failed", error="Boom"))
    for edit in (disable(schedule, LATER), pause(schedule, LATER, reason="", by="", until=None)):
        assert edit.after.last == schedule.last


def test_what_was_not_made_is_no_run():
    schedule = seasoned()
    edit = trigger_now(schedule, LATER, "by-hand")
    counted = schedule_after(edit, schedule.last, ["by-hand"])
    assert (counted.last.job_id, counted.last.enqueued_at, counted.last.by_hand) == ("by-hand", LATER, 1)
    assert schedule_after(edit, schedule.last, []).last == schedule.last


def test_of_several_jobs_the_newest_that_was_made_is_the_last_run():
    edit = created("every 10m", at=NOON, start=NOON - 1, run_on_start=True, max_runs=1)
    begun, on_start = edit.jobs
    assert schedule_after(edit, None, [begun.id, on_start.id]) == edit.after
    one = schedule_after(edit, None, [begun.id])
    assert (one.run_count, one.last.by_hand, one.last.job_id, one.next_at) == (1, 0, begun.id, None)
    other = schedule_after(edit, None, [on_start.id])
    assert (other.run_count, other.last.by_hand, other.last.job_id) == (0, 1, on_start.id)
    assert other.next_at is not None
    neither = schedule_after(edit, None, [])
    assert (neither.runs, neither.last) == (0, LastRun())


def test_a_job_that_a_worker_named_meanwhile_stays_the_last_one():
    edit = trigger_now(seasoned(), LATER, "by-hand")
    last = msgspec.structs.replace(edit.after.last, job_id="ended-since")
    ended = msgspec.structs.replace(edit.after, last=last)
    assert as_made(ended, LastRun(job_id="job-of-10"), edit.jobs, []).last.job_id == "ended-since"
