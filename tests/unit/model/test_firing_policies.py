"""Firing: which occurrences of a due schedule make jobs, beside a simple oracle that walks one occurrence at a time."""

from __future__ import annotations

from itertools import count, product

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.model.micros import SECOND
from rota.model.schedules.edit import pause
from rota.model.schedules.firing import MOST_JOBS, fired, jitter_of, place, plan
from rota.model.schedules.schedule import CATCHUPS, OVERLAPS
from rota.model.schedules.slots import next_slot
from unit.model.values import HOUR, MINUTE, NOON, a_schedule, some_id

DAY = 24 * HOUR
DOWNTIMES = [0, 9 * MINUTE, 10 * MINUTE, 11 * MINUTE, 47 * MINUTE, 3 * HOUR, 25 * HOUR]


class Oracle:
    """The same decision, made by walking every occurrence with nothing but trigger.next_second."""

    def __init__(self, schedule, now):
        spec = schedule.spec
        self.slots = self._walk(schedule, now)
        late = [slot for slot in self.slots if now - slot > spec.grace]
        in_time = [slot for slot in self.slots if now - slot <= spec.grace]
        kept = self._kept(spec, late, in_time)
        left = len(self.slots) if spec.max_runs is None else max(0, spec.max_runs - schedule.run_count)
        self.made = [*kept, *in_time][:left]
        self.is_spent = spec.max_runs is not None and schedule.run_count + len(self.made) >= spec.max_runs
        self.missed = [slot for slot in self.made if slot in set(kept)]
        self.dropped = [slot for slot in late if slot not in set(kept)]

    @staticmethod
    def _walk(schedule, now):
        spec, slots = schedule.spec, []
        second = schedule.trigger.next_second(schedule.fired_through // SECOND)
        while second is not None and second * SECOND <= now:
            slot = second * SECOND
            if (spec.start is None or slot >= spec.start) and (spec.end is None or slot <= spec.end):
                slots.append(slot)
            second = schedule.trigger.next_second(second)
        return slots

    @staticmethod
    def _kept(spec, late, in_time):
        """skip: none. latest: the newest one that is due, which an on-time one already is. all: the newest few."""
        match spec.catchup:
            case "skip":
                return []
            case "latest":
                return [] if in_time else late[-1:]
            case _:
                return late[-spec.catchup_limit :]


def fired_out(schedule, now):
    """Fire until nothing is due any more: all firings, and the schedule that they leave."""
    firings = []
    for _ in range(100):
        if schedule.due_at is None or schedule.due_at > now:
            return firings, schedule
        firing = plan(schedule, now, some_id)
        firings.append(firing)
        after = fired(firing, len(firing.shots), now, firing.shots[-1].job.id if firing.shots else None)
        assert after.fired_through > schedule.fired_through or after.due_at != schedule.due_at, "it would spin"
        schedule = after
    raise AssertionError("it never stops firing")


def covered(ranges, slots):
    """Which of the slots lie in the ranges, each as often as it is covered."""
    return [slot for after, through in ranges for slot in slots if after < slot <= through]


def check_against_oracle(schedule, now):
    oracle = Oracle(schedule, now)
    firings, after = fired_out(schedule, now)
    shots = [shot for firing in firings for shot in firing.shots]
    skips = [skip for firing in firings for skip in firing.skips]

    assert [shot.job.fire_at for shot in shots] == oracle.made
    assert [shot.job.fire_at for shot in shots if shot.job.made_by == "catchup"] == oracle.missed
    skipped = [(skip.after_at, skip.through_at) for skip in skips]
    if not oracle.is_spent:
        assert covered(skipped, oracle.slots) == oracle.dropped
    assert sum(skip.count for skip in skips) == len(covered(skipped, oracle.slots))
    assert {skip.reason for skip in skips} <= {"catch-up"}
    assert {skip.outcome for skip in skips} <= {"coalesced" if schedule.spec.catchup == "latest" else "skipped"}

    # Every occurrence up to fired_through has exactly one line: a job's or a skip's.
    lines = [*skipped, *((shot.job.after_at, shot.job.fire_at) for shot in shots)]
    assert sorted(covered(lines, oracle.slots)) == [slot for slot in oracle.slots if slot <= after.fired_through]
    assert after.run_count == schedule.run_count + len(shots)
    if oracle.is_spent:
        assert after.next_at is None
    else:
        ahead = after.trigger.next_second(max(now, (schedule.spec.start or now) - 1) // SECOND)
        in_bounds = ahead is not None and (schedule.spec.end is None or ahead * SECOND <= schedule.spec.end)
        assert after.next_at == (ahead * SECOND if in_bounds else None)
    return shots


def check_shots(schedule, shots):
    spec = schedule.spec
    for shot in shots:
        is_missed = shot.job.made_by == "catchup"
        assert shot.when_busy == spec.overlap
        assert shot.chained == (is_missed and spec.catchup == "all" and spec.overlap != "allow")
        assert shot.job.slot == (None if spec.overlap == "allow" else schedule.id)
        assert shot.job.run_at == shot.job.fire_at + jitter_of(schedule)
        assert 0 <= jitter_of(schedule) < max(spec.jitter, 1)
        assert shot.job.generation == schedule.generation
        assert is_missed or shot.job.made_by == spec.trigger.split()[0]


@pytest.mark.parametrize("catchup", CATCHUPS)
@pytest.mark.parametrize("overlap", OVERLAPS)
def test_every_policy_with_every_bound_and_downtime_agrees_with_the_oracle(overlap, catchup):
    grid = product(
        ["every 10m", "cron */7 * * * *", "cron 30 */2 * * * tz=America/New_York"],
        [SECOND, MINUTE, 30 * MINUTE],  # grace
        [0, 30 * SECOND],  # jitter
        [None, -HOUR, 25 * MINUTE],  # start
        [None, 20 * MINUTE, 2 * HOUR],  # end
        [None, 1, 5],  # max_runs
        DOWNTIMES,
        [3, 100],  # catchup_limit
    )
    for trigger, grace, jitter, start, end, max_runs, downtime, limit in grid:
        if catchup != "all" and limit != 100:
            continue
        schedule = a_schedule(
            trigger,
            overlap=overlap,
            catchup=catchup,
            catchup_limit=limit,
            grace=grace,
            jitter=jitter,
            start=None if start is None else NOON + start,
            end=None if end is None else NOON + end,
            max_runs=max_runs,
        )
        check_shots(schedule, check_against_oracle(schedule, NOON + downtime))


RULES = [
    "every 1s",
    "every 45s",
    "every 1d",
    "cron * * * * *",
    "cron 0 3 * * *",
    "cron 30 2 * * * tz=Europe/Berlin",
    "cron 0 12 31 * *",
    "calendar months=1 at=00:05 start=2026-01-31",
    "calendar weeks=2 on=mon at=09:00 start=2026-01-05 tz=America/New_York",
]


@settings(max_examples=300, deadline=None)
@given(
    trigger=st.sampled_from(RULES),
    created=st.integers(0, 400 * 86_400),
    fraction=st.integers(0, SECOND - 1),
    downtime=st.one_of(st.integers(0, 5 * MINUTE), st.integers(0, 20 * MINUTE), st.integers(0, HOUR)),
    stretch=st.sampled_from([1, 24, 24 * 90]),
    spec=st.fixed_dictionaries(
        {
            "overlap": st.sampled_from(OVERLAPS),
            "catchup": st.sampled_from(CATCHUPS),
            "catchup_limit": st.sampled_from([1, 2, 99, 100, 101, 250, 10_000]),
            "grace": st.integers(1, 7200).map(lambda seconds: seconds * SECOND),
            "jitter": st.sampled_from([0, SECOND, HOUR]),
            "max_runs": st.none() | st.integers(1, 300),
        }
    ),
)
def test_any_schedule_after_any_downtime_agrees_with_the_oracle(trigger, created, fraction, downtime, stretch, spec):
    fine = trigger in {"every 1s", "every 45s", "cron * * * * *"}
    created_at = NOON + created * SECOND + fraction
    schedule = a_schedule(trigger, created_at=created_at, **spec)
    now = created_at + downtime * (1 if fine else stretch)
    check_shots(schedule, check_against_oracle(schedule, now))


# The same in plain words.


def made(schedule, now):
    return [shot.job.fire_at for firing in fired_out(schedule, now)[0] for shot in firing.shots]


def test_an_occurrence_within_its_grace_is_on_time_and_past_it_is_missed():
    schedule = a_schedule("every 10m", catchup="skip", grace=MINUTE)
    assert made(schedule, NOON + 11 * MINUTE) == [NOON + 10 * MINUTE]
    assert made(schedule, NOON + 11 * MINUTE + 1) == []


def test_latest_runs_the_newest_missed_occurrence_once():
    schedule = a_schedule("every 10m", catchup="latest", grace=SECOND)
    assert made(schedule, NOON + 35 * MINUTE) == [NOON + 30 * MINUTE]


def test_latest_coalesces_what_was_missed_into_one_that_is_on_time():
    schedule = a_schedule("every 10m", catchup="latest", grace=MINUTE)
    (firing,) = fired_out(schedule, NOON + 30 * MINUTE)[0]
    assert [shot.job.fire_at for shot in firing.shots] == [NOON + 30 * MINUTE]
    assert [(skip.outcome, skip.count) for skip in firing.skips] == [("coalesced", 2)]


def test_all_runs_the_newest_of_what_was_missed_oldest_first():
    schedule = a_schedule("every 10m", catchup="all", catchup_limit=3, grace=SECOND)
    assert made(schedule, NOON + 65 * MINUTE) == [NOON + 40 * MINUTE, NOON + 50 * MINUTE, NOON + 60 * MINUTE]


def test_a_long_absence_is_caught_up_in_bounded_rounds():
    schedule = a_schedule("every 1s", catchup="all", catchup_limit=250, grace=SECOND)
    firings, after = fired_out(schedule, NOON + HOUR)
    assert all(len(firing.shots) <= MOST_JOBS for firing in firings)
    assert sum(len(firing.shots) for firing in firings) == 252  # the missed ones, and two within the grace
    assert after.next_at == NOON + HOUR + SECOND


def test_a_century_of_missed_seconds_is_skipped_without_walking_it():
    schedule = a_schedule("every 1s", catchup="skip", grace=SECOND)
    (firing, *_) = fired_out(schedule, NOON + 36_500 * DAY)[0]
    assert firing.skips[0].count == 36_500 * 86_400 - 2


def test_nothing_runs_before_the_start_nor_after_the_end_whatever_the_backlog():
    start, end = NOON + 25 * MINUTE, NOON + 50 * MINUTE
    schedule = a_schedule("cron */10 * * * *", catchup="all", start=start, end=end)
    times = made(schedule, NOON + 10 * DAY)
    assert times
    assert all(start <= at <= end for at in times)
    assert fired_out(schedule, NOON + 10 * DAY)[1].next_at is None


def test_an_occurrence_at_the_very_start_or_end_counts():
    schedule = a_schedule("every 10m", catchup="all", start=NOON + 10 * MINUTE, end=NOON + 30 * MINUTE)
    assert made(schedule, NOON + DAY) == [NOON + 10 * MINUTE, NOON + 20 * MINUTE, NOON + 30 * MINUTE]


def test_max_runs_counts_the_jobs_that_the_trigger_made():
    schedule = a_schedule("every 10m", max_runs=3, run_count=1, grace=SECOND)
    at = NOON
    for _ in range(5):
        at += 10 * MINUTE
        schedule = fired_out(schedule, at)[1]
    assert (schedule.run_count, schedule.next_at, schedule.due_at) == (3, None, None)


def test_a_schedule_that_has_made_all_its_runs_has_no_next_one():
    schedule = a_schedule("every 10m", max_runs=3, run_count=3)
    assert next_slot(schedule, NOON) is None


def test_jitter_moves_the_run_and_never_the_occurrence():
    schedule = a_schedule("every 10m", jitter=5 * MINUTE)
    (firing,) = fired_out(schedule, NOON + 10 * MINUTE)[0]
    (shot,) = firing.shots
    assert shot.job.fire_at == NOON + 10 * MINUTE
    assert NOON + 10 * MINUTE <= shot.job.run_at < NOON + 15 * MINUTE


def test_jitter_is_the_same_for_one_schedule_and_spread_over_many():
    spread = {jitter_of(a_schedule(schedule_id=f"s-{number}", jitter=HOUR)) for number in range(500)}
    assert len(spread) == 500
    assert max(spread) - min(spread) > 50 * MINUTE
    assert jitter_of(a_schedule(jitter=HOUR)) == jitter_of(a_schedule(jitter=HOUR, created_at=NOON + 5))


def test_months_are_counted_from_the_anchor_whatever_happened_in_between():
    schedule = a_schedule("calendar months=1 at=00:05 start=2026-01-31", catchup="all", grace=SECOND)
    steady, now = [], NOON
    walking = schedule
    while len(steady) < 24:
        now += 17 * DAY
        firings, walking = fired_out(walking, now)
        steady += [shot.job.fire_at for firing in firings for shot in firing.shots]
    assert steady == made(schedule, now)


# A pause with an end.


def test_when_a_pause_is_over_what_fell_into_it_is_recorded_with_who_and_why():
    held = pause(a_schedule("every 10m"), NOON + MINUTE, reason="month end", by="ann", until=NOON + 35 * MINUTE).after
    assert held.due_at == NOON + 35 * MINUTE
    firings, after = fired_out(held, NOON + 36 * MINUTE)
    assert [shot for firing in firings for shot in firing.shots] == []
    assert [(skip.count, skip.outcome, skip.reason) for firing in firings for skip in firing.skips] == [
        (3, "skipped", "paused by ann: month end")
    ]
    assert (after.pause, after.next_at) == (None, NOON + 40 * MINUTE)


def test_an_occurrence_at_the_very_end_of_a_pause_runs():
    held = pause(a_schedule("every 10m"), NOON + MINUTE, reason="", by="", until=NOON + 30 * MINUTE).after
    assert made(held, NOON + 30 * MINUTE + SECOND) == [NOON + 30 * MINUTE]


def test_what_was_missed_after_the_end_of_a_pause_is_caught_up():
    held = pause(a_schedule("every 10m", grace=SECOND), NOON, reason="", by="", until=NOON + 15 * MINUTE).after
    assert made(held, NOON + 35 * MINUTE) == [NOON + 30 * MINUTE]


# Where a shot goes when the schedule is busy.


def a_shot(overlap, catchup="latest"):
    grace = SECOND if catchup == "all" else MINUTE
    schedule = a_schedule("every 10m", overlap=overlap, catchup=catchup, grace=grace)
    late = 5 * SECOND if catchup == "all" else 0
    return plan(schedule, NOON + 10 * MINUTE + late, some_id).shots[0]


@pytest.mark.parametrize("overlap", OVERLAPS)
def test_a_schedule_without_a_live_job_gets_its_job(overlap):
    shot = a_shot(overlap)
    assert place(shot, None, None).job == shot.job


def test_allow_runs_beside_the_live_job():
    shot = a_shot("allow")
    assert place(shot, "live", None).job == shot.job


def test_skip_records_the_overlap():
    placement = place(a_shot("skip"), "live", None)
    assert placement.job is None
    assert (placement.skip.outcome, placement.skip.reason, placement.skip.count) == ("skipped", "overlap (job live)", 1)
    assert (placement.skip.after_at, placement.skip.through_at) == (NOON, NOON + 10 * MINUTE)


def test_queue_holds_one_job_and_records_the_others():
    shot = a_shot("queue")
    held = place(shot, "live", None)
    assert (held.job.waits_for, held.job.slot, held.cancels) == ("live", None, None)
    assert place(shot, "live", "held").skip.reason == "overlap (job live, then job held)"


def test_cancel_holds_one_job_and_asks_the_live_one_to_stop():
    placement = place(a_shot("cancel"), "live", None)
    assert (placement.job.waits_for, placement.cancels) == ("live", "live")


@pytest.mark.parametrize("overlap", ["skip", "queue", "cancel"])
def test_missed_runs_wait_for_each_other_in_a_chain(overlap):
    shot = a_shot(overlap, "all")
    assert shot.chained
    assert place(shot, "live", None).job.waits_for == "live"
    behind = place(shot, "live", "held")
    assert (behind.job.waits_for, behind.cancels) == ("held", None)


@pytest.mark.parametrize("overlap", ["allow", "skip", "queue", "cancel"])
def test_a_key_that_another_job_holds_is_recorded(overlap):
    placement = place(a_shot(overlap), None, None, "holder")
    assert (placement.job, placement.skip.word) == (None, "unique")
    assert (placement.skip.outcome, placement.skip.reason, placement.skip.count) == (
        "skipped",
        "unique (job holder)",
        1,
    )


@pytest.mark.parametrize("overlap", ["queue", "cancel"])
def test_a_successor_that_its_key_refuses_neither_waits_nor_replaces(overlap):
    placement = place(a_shot(overlap), "live", None, "live")
    assert (placement.job, placement.cancels, placement.skip.reason) == (None, None, "unique (job live)")


def test_overlap_decides_before_the_key():
    assert place(a_shot("skip"), "live", None, "holder").skip.reason == "overlap (job live)"


def test_a_held_job_keeps_its_key_and_leaves_the_slot():
    shot = a_shot("queue")
    keyed = msgspec.structs.replace(shot, job=msgspec.structs.replace(shot.job, key="k", slot="nightly"))
    job = place(keyed, "live", None).job
    assert (job.key, job.slot, job.waits_for) == ("k", None, "live")


def test_a_firing_never_changes_what_it_was_decided_on():
    schedule = a_schedule("every 10m", catchup="all")
    before = msgspec.structs.astuple(schedule)
    numbers = count()
    plan(schedule, NOON + DAY, lambda: str(next(numbers)))
    assert msgspec.structs.astuple(schedule) == before
