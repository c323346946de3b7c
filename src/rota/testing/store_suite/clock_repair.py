"""Tests a clock that was ahead and is set right: schedules continue from now, and nothing happens twice.

In these tests the clock is ten minutes ahead at first. What happens then is injected as `WRONG`, and what happens after
it was set right as `RIGHT`, which is earlier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rota.model.audit_record import Author
from rota.model.clock.repair import (
    is_ahead_of_clock,
    is_lease_ahead,
    repair_job,
    repair_schedule,
    with_repair_audit,
)
from rota.model.jobs.job import State, history_of
from rota.model.jobs.outcome import Failed
from rota.model.micros import SECOND
from rota.model.schedules.edit import enable, pause, register, resume
from rota.model.schedules.firing import overlap_reason
from rota.model.schedules.schedule import Origin
from rota.store.contract import LARGEST_PAGE, AuditFilter, Retention
from rota.testing.store_suite.builders import HOUR, LEASE, MINUTE, T0, WORKER, a_spec, fresh_id
from rota.testing.store_suite.steps import (
    add_job,
    add_schedule,
    all_jobs,
    cancel_waiting,
    change_schedule,
    claim,
    fire,
    fire_due,
    ids,
    ledger,
    read,
    read_schedule,
    running_job,
    settle_job,
    succeed,
)

if TYPE_CHECKING:
    from rota.model.jobs.job import Job
    from rota.model.schedules.edit import Edit
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Store

SKIPPED = {"latest": "coalesced", "skip": "skipped"}
WRONG = T0 + 11 * MINUTE  # ten minutes ahead of the true 00:01:00
RIGHT = T0 + MINUTE + 10 * SECOND  # the clock is right again, ten seconds later


def repair_edit(store: Store, schedule_id: str = "tick", *, now: int = RIGHT) -> Edit | None:
    """The repair of one schedule after the clock was set right."""
    schedule = read_schedule(store, schedule_id)
    page = store.list_occurrences(schedule_id, now + 1, schedule.made_through + 1, limit=LARGEST_PAGE)
    edit = repair_schedule(schedule, page.items, now, is_whole=page.cursor is None)
    author = Author(record_id=fresh_id(), by="upkeep", verb="moved back")
    return None if edit is None else with_repair_audit(edit, schedule, author)


def repaired(store: Store, schedule_id: str = "tick", *, now: int = RIGHT) -> Schedule:
    return change_schedule(store, repair_edit(store, schedule_id, now=now), now=now)


def run_all(store: Store, *, now: int, keep: bool = True) -> None:
    for job in claim(store, 100, now=now):
        assert succeed(store, job, now=now, keep=keep) == []


def fire_through(store: Store, start: int, end: int, *, keep: bool = True) -> None:
    """Run a scheduler and a worker, minute by minute."""
    for now in range(start, end + 1, MINUTE):
        fire_due(store, now=now)
        run_all(store, now=now, keep=keep)


def runs(store: Store, schedule_id: str = "tick") -> list[int]:
    """The minutes after T0 that have jobs, one number for each job."""
    made = [job.fire_at for job in all_jobs(store) if job.schedule_id == schedule_id and job.fire_at]
    return sorted((fire_at - T0) // MINUTE for fire_at in made)


def fired_ahead(store: Store, *, keep: bool = True, **spec: Any) -> None:
    """A schedule of every minute that fires at 00:01, when the clock shows 00:11, and again a minute later."""
    add_schedule(store, **spec)
    fire_through(store, WRONG, WRONG + MINUTE, keep=keep)


class TestClockSetRight:
    def test_the_true_time_runs(self, store: Store) -> None:
        fired_ahead(store)
        assert store.due_schedules(10, now=RIGHT).schedules == []
        repaired(store)
        fire_through(store, RIGHT, T0 + 5 * MINUTE)
        assert runs(store) == [*range(1, 5), 11, 12]

    def test_what_ran_under_the_wrong_clock_does_not_run_again(self, store: Store) -> None:
        fired_ahead(store)
        repaired(store)
        fire_through(store, RIGHT, T0 + 15 * MINUTE)
        assert runs(store) == list(range(1, 15))

    def test_nor_where_its_job_is_gone(self, store: Store) -> None:
        fired_ahead(store, keep=False)
        assert runs(store) == []
        repaired(store)
        fire_through(store, RIGHT, T0 + 15 * MINUTE)
        assert runs(store) == [*range(1, 11), 13, 14]
        lines = [(line.after_at, line.through_at, line.count) for line in ledger(store) if line.job_id is None]
        assert lines == [(T0 + 10 * MINUTE, T0 + 12 * MINUTE, 2)]

    def test_what_was_missed_is_no_longer_recorded_as_skipped(self, store: Store) -> None:
        fired_ahead(store)
        assert {line.outcome for line in ledger(store)} == {"coalesced", "succeeded"}
        repaired(store)
        assert {line.outcome for line in ledger(store)} == {"succeeded"}

    def test_what_overlapped_stays_skipped(self, store: Store) -> None:
        add_schedule(store, grace=MINUTE)
        fire_due(store, now=WRONG)  # two are in time: one runs, the other overlaps
        run_all(store, now=WRONG)
        repaired(store)
        fire_through(store, RIGHT, T0 + 13 * MINUTE)
        (skip,) = [line for line in ledger(store) if line.outcome == "skipped"]
        assert skip.through_at == T0 + 11 * MINUTE
        assert skip.reason.startswith("overlap")
        assert runs(store) == [*range(1, 11), 12]

    def test_missed_runs_that_all_run_are_taken(self, store: Store) -> None:
        fired_ahead(store, catchup="all", catchup_limit=2, overlap="allow")
        assert runs(store) == [9, 10, 11, 12]
        repaired(store)
        fire_through(store, RIGHT, T0 + 15 * MINUTE)
        assert runs(store) == list(range(1, 15))

    def test_the_record_names_how_far_it_was_moved(self, store: Store) -> None:
        fired_ahead(store)
        repaired(store)
        (audit,) = store.list_audit_records(AuditFilter(subject="schedule:tick")).items
        assert (audit.by, audit.verb, audit.at) == ("upkeep", "moved back", RIGHT)
        assert str(T0 + 12 * MINUTE) in audit.before
        assert str(T0) in audit.after

    def test_it_is_moved_back_once(self, store: Store) -> None:
        fired_ahead(store)
        first, second = repair_edit(store), repair_edit(store)
        assert first is not None
        assert second is not None
        assert store.edit_schedules([first], now=RIGHT) == []
        assert store.edit_schedules([second], now=RIGHT) == ["tick"]
        assert len(store.list_audit_records(AuditFilter(subject="schedule:tick")).items) == 1
        assert repair_edit(store) is None

    def test_a_firing_that_was_decided_before_is_refused(self, store: Store) -> None:
        fired_ahead(store)
        edit = repair_edit(store)
        assert edit is not None
        fire(store, now=WRONG + 2 * MINUTE)
        assert store.edit_schedules([edit], now=RIGHT) == ["tick"]
        assert read_schedule(store).fired_through == WRONG + 2 * MINUTE

    def test_what_is_taken_is_forgotten_once_it_is_past(self, store: Store) -> None:
        fired_ahead(store)
        assert repaired(store).taken == ((T0 + 11 * MINUTE - 1, T0 + 12 * MINUTE),)
        fire_through(store, RIGHT, T0 + 15 * MINUTE)
        assert read_schedule(store).ahead is None

    def test_an_outage_over_what_is_taken_counts_only_the_rest(self, store: Store) -> None:
        fired_ahead(store, catchup="skip")
        assert runs(store) == [11, 12]
        repaired(store)
        fire_due(store, now=T0 + 20 * MINUTE)
        skipped = [line for line in ledger(store) if line.outcome == "skipped"]
        assert sum(line.count for line in skipped) == 17
        assert all(line.through_at < T0 + 11 * MINUTE or line.after_at >= T0 + 12 * MINUTE for line in skipped)

    def test_a_pause_and_its_end_keep_what_is_taken(self, store: Store) -> None:
        fired_ahead(store, keep=False)
        schedule = repaired(store)
        schedule = change_schedule(store, pause(schedule, RIGHT, reason="", by="", until=T0 + 5 * MINUTE), now=RIGHT)
        fire_due(store, now=T0 + 5 * MINUTE)
        schedule = change_schedule(store, pause(read_schedule(store), T0 + 6 * MINUTE, reason="", by="", until=None))
        change_schedule(store, resume(schedule, T0 + 8 * MINUTE))
        fire_through(store, T0 + 8 * MINUTE, T0 + 15 * MINUTE)
        assert runs(store) == [5, *range(9, 11), 13, 14, 15]  # the fifth was missed before the second pause

    def test_the_jobs_of_the_wrong_time_are_pruned_without_coming_back(self, store: Store) -> None:
        fired_ahead(store)
        repaired(store)
        store.prune(Retention(succeeded_for=0), 100, now=WRONG + 2 * MINUTE)
        fire_through(store, RIGHT, T0 + 15 * MINUTE)
        assert runs(store) == [*range(1, 11), 13, 14]

    def test_a_schedule_that_ended_under_the_wrong_clock_continues(self, store: Store) -> None:
        fired_ahead(store, end=T0 + 5 * MINUTE)
        assert read_schedule(store).next_at is None
        repaired(store)
        fire_through(store, RIGHT, T0 + 10 * MINUTE)
        assert runs(store) == [1, 2, 3, 4, 5]


class TestMadeUnderAWrongClock:
    def test_a_schedule_runs_from_now_on(self, store: Store) -> None:
        add_schedule(store, now=WRONG)
        schedule = repaired(store)
        assert (schedule.created_at, schedule.next_at) == (RIGHT, RIGHT + MINUTE)
        fire_through(store, RIGHT + MINUTE, RIGHT + 3 * MINUTE)
        assert len(all_jobs(store)) == 3
        assert [line.outcome for line in ledger(store)] == ["succeeded"] * 3

    def test_what_it_ran_by_then_stays_its_record(self, store: Store) -> None:
        add_schedule(store, now=WRONG)
        fire_through(store, WRONG, WRONG + MINUTE, keep=False)
        repaired(store)
        fire_through(store, RIGHT + MINUTE, RIGHT + 2 * MINUTE)
        assert [line.through_at for line in ledger(store)] == [RIGHT + MINUTE, RIGHT + 2 * MINUTE, WRONG + MINUTE]

    def test_a_schedule_that_was_retimed_then_runs_at_its_new_times(self, store: Store) -> None:
        schedule = add_schedule(store, trigger="every 1d")
        edit = register(schedule, "tick", a_spec(trigger="cron * * * * *"), Origin(), WRONG, fresh_id)
        change_schedule(store, edit, now=WRONG)
        repaired(store)
        fire_through(store, RIGHT, T0 + 4 * MINUTE)
        assert runs(store) == [2, 3]

    def test_one_that_was_enabled_then_runs(self, store: Store) -> None:
        schedule = add_schedule(store, enabled=False)
        change_schedule(store, enable(schedule, WRONG), now=WRONG)
        repaired(store)
        fire_through(store, RIGHT, T0 + 4 * MINUTE)
        assert runs(store) == [1, 2, 3]

    def test_a_pause_that_ended_by_itself_stays_skipped(self, store: Store) -> None:
        """By the right clock, its end is still to come."""
        schedule = add_schedule(store)
        change_schedule(store, pause(schedule, T0, reason="", by="", until=T0 + 8 * MINUTE))
        fire_due(store, now=WRONG)
        repaired(store)
        fire_through(store, RIGHT, T0 + 10 * MINUTE)
        assert runs(store) == [8, 9]


class TestWhatIsNoWrongClock:
    def test_a_schedule_within_the_tolerance(self, store: Store) -> None:
        schedule = add_schedule(store)
        fire_due(store, now=T0 + MINUTE)
        assert not is_ahead_of_clock(schedule, T0 - SECOND)
        assert repair_edit(store, now=T0 + MINUTE - SECOND) is None

    def test_jobs_that_were_created_early(self, store: Store) -> None:
        add_schedule(store, lookahead=HOUR)
        fire_due(store, now=T0)
        assert repair_edit(store, now=T0 + SECOND) is None

    def test_a_zone_in_which_the_local_day_has_had_its_run(self, store: Store) -> None:
        """It waits for a later time, and its ledger has nothing after now."""
        nine = "cron 0 9 * * *"
        add_schedule(store, trigger=nine, tz="Europe/Paris")
        fire_due(store, now=T0 + 8 * HOUR)
        now = T0 + 9 * HOUR
        moved = register(
            read_schedule(store), "tick", a_spec(trigger=nine, tz="America/New_York"), Origin(), now, fresh_id
        )
        assert (change_schedule(store, moved, now=now).next_at or 0) > now + 24 * HOUR
        assert repair_edit(store, now=now + MINUTE) is None


class TestLookaheadAndTheClock:
    def test_jobs_created_early_are_not_changed(self, store: Store) -> None:
        add_schedule(store, lookahead=20 * MINUTE, overlap="allow", grace=2 * HOUR)
        while fire_due(store, now=T0):
            pass
        made = all_jobs(store)
        fire_due(store, now=WRONG)
        run_all(store, now=WRONG)
        before = {job.id: job for job in all_jobs(store)}
        repaired(store)
        assert {job.id: job for job in all_jobs(store)} == before
        fire_through(store, RIGHT, T0 + 13 * MINUTE)
        assert runs(store) == sorted(set(runs(store)))
        assert {job.id for job in made} <= {job.id for job in all_jobs(store)}

    def test_what_was_missed_beyond_the_window_runs(self, store: Store) -> None:
        add_schedule(store, lookahead=5 * MINUTE, overlap="allow")
        fire_due(store, now=T0)
        fire_through(store, WRONG, WRONG)
        assert runs(store) == list(range(11, 16))
        repaired(store)
        fire_through(store, RIGHT, T0 + 20 * MINUTE)
        assert runs(store) == list(range(1, 25))  # five are ahead

    @pytest.mark.parametrize("is_fired", [0, 1], ids=["only claimed", "fired and claimed"])
    @pytest.mark.parametrize("catchup", ["latest", "skip"])
    def test_a_job_created_early_and_skipped_as_late_runs(self, store: Store, catchup: str, is_fired: int) -> None:
        """By the wrong clock, a worker decided that the jobs of the true time were late."""
        add_schedule(store, lookahead=15 * MINUTE, overlap="allow", catchup=catchup, grace=30 * SECOND)
        fire_due(store, now=T0)
        if is_fired:
            fire_due(store, now=WRONG)
        run_all(store, now=WRONG)
        assert {line.outcome for line in ledger(store)} - {"scheduled"} == {SKIPPED[catchup], "succeeded"}
        assert repair_edit(store) is not None
        repaired(store)
        assert {line.outcome for line in ledger(store)} == {"scheduled", "succeeded"}
        fire_through(store, RIGHT, T0 + 20 * MINUTE)
        done = [job for job in all_jobs(store) if job.state is State.SUCCEEDED]
        assert sorted((job.fire_at or 0) - T0 for job in done) == [minute * MINUTE for minute in range(1, 20)]

    def test_a_job_created_early_and_not_claimed_needs_no_repair(self, store: Store) -> None:
        add_schedule(store, lookahead=15 * MINUTE, overlap="allow", grace=2 * HOUR)
        fire_due(store, now=T0)
        run_all(store, now=WRONG)
        before = read_schedule(store)
        assert repair_edit(store) is None
        assert read_schedule(store) == before

    def test_a_pause_afterwards_leaves_a_record_of_what_it_cancels(self, store: Store) -> None:
        add_schedule(store, lookahead=5 * MINUTE)
        fire_due(store, now=T0)
        fire_due(store, now=WRONG)
        schedule = repaired(store)
        change_schedule(store, pause(schedule, RIGHT, reason="", by="ann", until=None), now=RIGHT)
        waiting = [job for job in all_jobs(store) if job.state is State.SCHEDULED]
        assert waiting == []
        assert {job.state for job in all_jobs(store)} == {State.CANCELLED}


class TestClockWronglySetBack:
    def test_nothing_runs_twice(self, store: Store) -> None:
        """The clock is ten minutes behind for two minutes, and upkeep treats it as one that was ahead."""
        add_schedule(store)
        fire_through(store, T0 + MINUTE, T0 + 20 * MINUTE)
        before = runs(store)
        repaired(store, now=T0 + 10 * MINUTE)
        fire_through(store, T0 + 10 * MINUTE, T0 + 12 * MINUTE)
        assert runs(store) == before
        fire_through(store, T0 + 22 * MINUTE, T0 + 24 * MINUTE)
        assert runs(store) == [*before, 22, 23, 24]


def moved_job(store: Store, job_id: str, *, now: int = RIGHT) -> Job:
    """The repair of one waiting job after the clock was set right."""
    change = repair_job(read(store, job_id), now)
    assert change is not None
    assert store.change_jobs([change], now=now) == []
    return read(store, job_id)


class TestDelaysUnderAWrongClock:
    def test_a_delay_is_counted_from_now(self, store: Store) -> None:
        job_id = add_job(store, delay=10 * MINUTE, now=WRONG)
        assert moved_job(store, job_id).run_at == RIGHT + 10 * MINUTE
        assert claim(store, now=RIGHT + 10 * MINUTE - 1) == []
        assert ids(claim(store, now=RIGHT + 10 * MINUTE)) == [job_id]

    def test_the_history_says_so(self, store: Store) -> None:
        job_id = add_job(store, delay=10 * MINUTE, now=WRONG)
        (line,) = history_of(moved_job(store, job_id))
        assert (line.state, line.at) == (State.SCHEDULED, RIGHT)
        assert line.reason == "enqueued; moved back with the store's clock"

    def test_it_is_moved_once(self, store: Store) -> None:
        job_id = add_job(store, delay=10 * MINUTE, now=WRONG)
        moved_job(store, job_id)
        assert repair_job(read(store, job_id), RIGHT + MINUTE) is None

    def test_an_instant_that_was_named_stays(self, store: Store) -> None:
        job_id = add_job(store, run_at=WRONG + HOUR, now=WRONG)
        assert repair_job(read(store, job_id), RIGHT) is None

    def test_a_retry_waits_from_now(self, store: Store) -> None:
        job = running_job(store, now=WRONG)
        settle_job(store, job, Failed("boom"), now=WRONG, retries=3)
        after = moved_job(store, job.id)
        assert after.run_at == RIGHT + 10 * SECOND
        assert (after.state, after.failures, after.error) == (State.SCHEDULED, 1, "boom")
        assert ids(claim(store, now=after.run_at)) == [job.id]

    @pytest.mark.parametrize("overlap", ["skip", "queue"])
    def test_a_retry_keeps_its_schedules_slot_and_its_key(self, store: Store, overlap: str) -> None:
        add_schedule(store, overlap=overlap, key="report")
        fire_due(store, now=WRONG)
        (job,) = claim(store, now=WRONG)
        settle_job(store, job, Failed("boom"), now=WRONG, retries=3)
        after = moved_job(store, job.id)
        assert (after.slot, after.key) == ("tick", "report")
        repaired(store)
        fire_due(store, now=RIGHT)
        assert claim(store, now=RIGHT) == []
        reasons = [line.reason for line in ledger(store) if line.outcome == "skipped"]
        assert reasons == {"skip": [overlap_reason(job.id)], "queue": [f"unique (job {job.id})"]}[overlap]

    def test_a_run_that_waits_behind_a_repaired_retry_follows_it(self, store: Store) -> None:
        add_schedule(store, overlap="queue")
        fire_due(store, now=WRONG)
        (job,) = claim(store, now=WRONG)
        settle_job(store, job, Failed("boom"), now=WRONG, retries=3)
        again = moved_job(store, job.id).run_at
        repaired(store)
        fire_due(store, now=RIGHT)
        assert ids(claim(store, 10, now=again)) == [job.id]
        assert succeed(store, read(store, job.id), now=again) == []
        (held,) = claim(store, 10, now=again)
        assert (held.fire_at, held.slot) == (T0 + MINUTE, "tick")
        assert succeed(store, held, now=again) == []

    def test_a_held_job_waits_from_now_and_for_the_same_job(self, store: Store) -> None:
        first = running_job(store, now=WRONG)
        held = add_job(store, waits_for=first.id, delay=10 * MINUTE, now=WRONG)
        after = moved_job(store, held)
        assert (after.state, after.waits_for, after.run_at) == (State.HELD, first.id, RIGHT + 10 * MINUTE)
        succeed(store, first, now=RIGHT)
        assert claim(store, now=RIGHT + MINUTE) == []
        assert ids(claim(store, now=RIGHT + 10 * MINUTE)) == [held]

    @pytest.mark.parametrize("is_released", [False, True])
    def test_an_occurrence_that_was_due_waits_for_its_turn_alone(self, store: Store, is_released: bool) -> None:  # noqa: FBT001 - a parameter of the test
        """Made up for under the wrong clock, one behind the other; the schedule runs nothing else until then."""
        add_schedule(store, overlap="queue", catchup="all")
        fire_due(store, now=WRONG)
        (first,) = claim(store, 10, now=WRONG)
        second = next(job.id for job in all_jobs(store) if job.waits_for == first.id)
        if is_released:
            assert succeed(store, first, now=RIGHT) == []
            assert claim(store, 10, now=RIGHT) == []
        after = moved_job(store, second)
        assert (after.run_at, after.slot) == (RIGHT, "tick" if is_released else None)
        if not is_released:
            assert succeed(store, first, now=RIGHT) == []
        assert ids(claim(store, 10, now=RIGHT)) == [second]

    def test_a_job_created_early_under_the_wrong_clock_waits_for_its_time(self, store: Store) -> None:
        add_schedule(store, lookahead=HOUR)
        fire_due(store, now=WRONG)
        waiting = [job for job in all_jobs(store) if job.run_at > WRONG]
        assert waiting
        assert [repair_job(job, RIGHT) for job in waiting] == [None] * len(waiting)

    def test_a_job_that_changed_meanwhile_is_not_changed(self, store: Store) -> None:
        job_id = add_job(store, delay=10 * MINUTE, now=WRONG)
        change = repair_job(read(store, job_id), RIGHT)
        assert change is not None
        cancel_waiting(store, job_id, now=RIGHT)
        assert [refusal.id for refusal in store.change_jobs([change], now=RIGHT)] == [job_id]

    def test_what_was_delayed_under_a_right_clock_is_left_alone(self, store: Store) -> None:
        job_id = add_job(store, delay=10 * MINUTE, now=T0)
        assert repair_job(read(store, job_id), T0 - SECOND) is None
        assert repair_job(read(store, job_id), RIGHT) is None


class TestLeasesUnderAWrongClock:
    def test_a_lease_is_shortened_in_the_name_of_its_holder(self, store: Store) -> None:
        """Its worker died while the clock was ten minutes ahead; no other worker would get its job until then."""
        job = running_job(store, now=WRONG)
        assert is_lease_ahead(read(store, job.id), WRONG)
        assert store.expired_jobs(10, now=RIGHT + LEASE) == []
        assert store.extend_leases(WORKER, [(job.id, job.lease_no)], LEASE, now=RIGHT).lost == []
        assert ids(store.expired_jobs(10, now=RIGHT + LEASE)) == [job.id]


class TestLocksUnderAWrongClock:
    @pytest.fixture(autouse=True)
    def is_concerned(self, store: Store) -> None:
        if store.features.has_lease_clock:
            pytest.skip("the locks of this store use a clock that cannot be set")

    def test_a_lock_is_free_a_whole_term_after_somebody_wants_it(self, store: Store) -> None:
        """Its owner may be alive, so it keeps the lock for the time that it requested, counted from now."""
        assert store.change_lock("report", "acquire", "ann", MINUTE, now=WRONG) is not None
        assert store.change_lock("report", "acquire", "bob", MINUTE, now=RIGHT) is None
        assert store.change_lock("report", "acquire", "bob", MINUTE, now=RIGHT + MINUTE - 1) is None
        assert store.change_lock("report", "acquire", "bob", MINUTE, now=RIGHT + MINUTE) is not None

    def test_an_owner_that_lives_keeps_its_lock(self, store: Store) -> None:
        store.change_lock("report", "acquire", "ann", MINUTE, now=WRONG)
        assert store.change_lock("report", "acquire", "bob", MINUTE, now=RIGHT) is None
        assert store.change_lock("report", "extend", "ann", MINUTE, now=RIGHT + 30 * SECOND)
        assert store.change_lock("report", "acquire", "bob", MINUTE, now=RIGHT + MINUTE) is None

    def test_a_lock_of_a_right_clock_is_not_shortened(self, store: Store) -> None:
        store.change_lock("report", "acquire", "ann", HOUR, now=T0)
        assert store.change_lock("report", "acquire", "bob", MINUTE, now=T0 + MINUTE) is None
        assert store.change_lock("report", "acquire", "bob", MINUTE, now=T0 + HOUR - 1) is None
        assert store.change_lock("report", "acquire", "bob", MINUTE, now=T0 + HOUR) is not None
