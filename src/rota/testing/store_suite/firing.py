"""Tests firings: each occurrence makes one job, in one step with the schedule's advance, guarded by its version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from rota.model.audit_record import Author
from rota.model.jobs.job import State
from rota.model.micros import SECOND
from rota.model.schedules.edit import disable, mark_broken, pause, record_fault, register, remove, trigger_now
from rota.model.schedules.firing import MOST_JOBS, overlap_reason
from rota.store.contract import AuditFilter
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, a_spec, fresh_id
from rota.testing.store_suite.steps import (
    add_schedule,
    all_jobs,
    change_schedule,
    claim,
    claim_one,
    fire,
    fire_due,
    ledger,
    planned,
    read,
    read_schedule,
    succeed,
)

if TYPE_CHECKING:
    from rota.store.contract import Store


def an_author() -> Author:
    return Author(record_id=fresh_id(), by="scheduler", verb="could not fire")


class TestFiring:
    def test_an_occurrence_makes_one_job(self, store: Store) -> None:
        add_schedule(store, queue="mail", priority=4, payload="[[1]]")
        fired = fire(store, now=T0 + MINUTE)
        (job,) = all_jobs(store)
        assert (fired.jobs, fired.skipped) == ([job.id], 0)
        assert (job.schedule_id, job.fire_at, job.after_at) == ("tick", T0 + MINUTE, T0)
        assert (job.task, job.queue, job.priority, job.payload) == ("mail.send", "mail", 4, b"[[1]]")
        assert (job.made_by, job.generation, job.state) == ("every", 1, State.QUEUED)

    def test_a_firing_advances_its_schedule(self, store: Store) -> None:
        before = add_schedule(store)
        (job_id,) = fire(store, now=T0 + MINUTE + 5).jobs
        after = read_schedule(store)
        assert (after.version, after.run_count) == (before.version + 1, 1)
        assert (after.fired_through, after.next_at) == (T0 + MINUTE, T0 + 2 * MINUTE)
        assert (after.last.enqueued_at, after.last.job_id) == (T0 + MINUTE + 5, job_id)

    def test_a_failed_firing_is_kept_on_its_schedule_until_it_is_fired(self, store: Store) -> None:
        before = add_schedule(store)
        failed = change_schedule(store, record_fault(before, T0 + MINUTE, "too large", an_author()))
        assert (failed.last_error, failed.due_at, failed.fired_through) == ("too large", T0 + MINUTE, T0)
        assert record_fault(failed, T0 + MINUTE, "too large", an_author()) is None
        (audit,) = store.list_audit_records(AuditFilter()).items
        assert (audit.verb, audit.after) == ("could not fire", '{"error":"too large"}')
        (job_id,) = fire(store, now=T0 + MINUTE + 5).jobs
        fired = read_schedule(store)
        assert (fired.last_error, fired.ahead, fired.last.job_id) == (None, None, job_id)

    def test_a_failed_firing_is_forgotten_when_its_schedule_is_edited_or_set_aside(self, store: Store) -> None:
        before = add_schedule(store)
        failed = change_schedule(store, record_fault(before, T0 + MINUTE, "too large", an_author()))
        smaller = msgspec.structs.replace(failed.spec, payload="[[1]]")
        edited = change_schedule(store, register(failed, "tick", smaller, failed.origin, T0 + MINUTE, fresh_id))
        assert (edited.last_error, edited.due_at) == (None, T0 + MINUTE)
        again = change_schedule(store, record_fault(edited, T0 + MINUTE, "too large", an_author()))
        broken = change_schedule(store, mark_broken(again, T0 + MINUTE, "too large five times"))
        assert (broken.fault, broken.last_error, broken.due_at) == ("", "too large five times", None)

    def test_a_firing_is_taken_once(self, store: Store) -> None:
        add_schedule(store)
        firing = planned(store, now=T0 + MINUTE)
        first, second = (store.fire([firing], now=T0 + MINUTE)[0] for _ in range(2))
        assert (first.is_accepted, second.is_accepted, second.jobs) == (True, False, [])
        assert len(all_jobs(store)) == 1

    def test_two_schedulers_with_one_view_fire_once(self, store: Store) -> None:
        add_schedule(store)
        mine, theirs = planned(store, now=T0 + MINUTE), planned(store, now=T0 + MINUTE)
        answers = store.fire([mine, theirs], now=T0 + MINUTE)
        assert [fired.is_accepted for fired in answers] == [True, False]
        assert [job.id for job in all_jobs(store)] == [mine.shots[0].job.id]

    def test_a_refused_firing_changes_nothing(self, store: Store) -> None:
        schedule = add_schedule(store)
        stale = planned(store, now=T0 + MINUTE)
        after = change_schedule(store, disable(schedule, T0 + 1))
        (fired,) = store.fire([stale], now=T0 + MINUTE)
        assert not fired.is_accepted
        assert (all_jobs(store), ledger(store), read_schedule(store)) == ([], [], after)

    def test_a_removed_schedule_does_not_fire(self, store: Store) -> None:
        schedule = add_schedule(store)
        stale = planned(store, now=T0 + MINUTE)
        change_schedule(store, remove(schedule, T0 + 1))
        assert not store.fire([stale], now=T0 + MINUTE)[0].is_accepted
        assert all_jobs(store) == []

    def test_a_schedule_of_the_same_name_does_not_fire_for_one_that_is_gone(self, store: Store) -> None:
        """It was removed and made again between plan and fire: no time at or before its creation may fire."""
        old = add_schedule(store)
        stale = planned(store, now=T0 + MINUTE)
        change_schedule(store, remove(old, T0 + HOUR), now=T0 + HOUR)
        new = add_schedule(store, now=T0 + HOUR)
        assert not store.fire([stale], now=T0 + HOUR)[0].is_accepted
        assert (all_jobs(store), read_schedule(store)) == ([], new)

    def test_one_call_fires_many_schedules_and_each_stands_alone(self, store: Store) -> None:
        for name in ("a", "b", "c"):
            add_schedule(store, name)
        firings = [planned(store, name, now=T0 + MINUTE) for name in ("a", "b", "c")]
        change_schedule(store, pause(read_schedule(store, "b"), T0, reason="", by="", until=None))
        answers = store.fire(firings, now=T0 + MINUTE)
        assert [(fired.schedule_id, fired.is_accepted) for fired in answers] == [("a", True), ("b", False), ("c", True)]
        assert {job.schedule_id for job in all_jobs(store)} == {"a", "c"}

    def test_positions_follow_the_order_of_firings(self, store: Store) -> None:
        """Also if one of them overlaps with a live job, or makes up for a missed time."""
        names = ("plain", "busy", "late", "plain too")
        for name in names:
            add_schedule(store, name, overlap="queue" if name == "busy" else "allow", catchup="all")
        fire(store, "busy", now=T0 + MINUTE)
        (live,) = claim(store, 9, now=T0 + MINUTE)
        fire(store, "plain", now=T0 + MINUTE)
        fire(store, "plain too", now=T0 + MINUTE)
        early = [job.id for job in all_jobs(store)]
        firings = [planned(store, name, now=T0 + 2 * MINUTE) for name in names]
        made = [job_id for fired in store.fire(firings, now=T0 + 2 * MINUTE) for job_id in fired.jobs]
        succeed(store, live, now=T0 + 2 * MINUTE)
        assert [job.id for job in sorted(all_jobs(store), key=lambda job: job.seq) if job.id not in early] == made
        assert [read(store, job_id).schedule_id for job_id in made] == ["plain", "busy", "late", "late", "plain too"]

    def test_a_crowd_fires_whole_where_one_has_been_changed(self, store: Store) -> None:
        for number in range(30):
            add_schedule(store, f"s{number:02}")
        firings = [planned(store, f"s{number:02}", now=T0 + MINUTE) for number in range(30)]
        change_schedule(store, disable(read_schedule(store, "s07"), T0 + 1))
        answers = store.fire(firings, now=T0 + MINUTE)
        assert [fired.schedule_id for fired in answers if not fired.is_accepted] == ["s07"]
        assert len({job.schedule_id for job in all_jobs(store)}) == 29
        assert {read_schedule(store, fired.schedule_id).run_count for fired in answers if fired.is_accepted} == {1}

    def test_firing_nothing_changes_nothing(self, store: Store) -> None:
        assert store.fire([], now=T0) == []

    def test_jitter_moves_the_run_and_not_the_occurrence(self, store: Store) -> None:
        add_schedule(store, jitter=30 * SECOND)
        (job_id,) = fire(store, now=T0 + MINUTE).jobs
        job = read(store, job_id)
        assert job.fire_at == T0 + MINUTE
        assert T0 + MINUTE < job.run_at < T0 + MINUTE + 30 * SECOND
        assert job.state is State.SCHEDULED


class TestFiredThrough:
    def test_a_pruned_or_deleted_job_never_happens_again(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        job = claim_one(store, now=T0 + MINUTE)
        succeed(store, job, now=T0 + MINUTE)
        store.delete_jobs([job.id], now=T0 + MINUTE)
        assert fire_due(store, now=T0 + MINUTE) == []
        assert fire(store, now=T0 + MINUTE).jobs == []

    def test_a_schedule_fires_each_of_its_times_once_over_an_hour(self, store: Store) -> None:
        add_schedule(store)
        for minute in range(1, 61):
            for _ in range(2):
                fire_due(store, now=T0 + minute * MINUTE)
            succeed(store, claim_one(store, now=T0 + minute * MINUTE), now=T0 + minute * MINUTE)
        made = sorted(job.fire_at or 0 for job in all_jobs(store))
        assert made == [T0 + minute * MINUTE for minute in range(1, 61)]
        assert read_schedule(store).run_count == 60

    def test_a_new_spec_does_not_bring_back_what_was_fired(self, store: Store) -> None:
        schedule = add_schedule(store)
        fire(store, now=T0 + MINUTE)
        schedule = read_schedule(store)
        edit = register(schedule, "tick", a_spec(trigger="every 30s"), schedule.origin, T0 + MINUTE, fresh_id)
        after = change_schedule(store, edit, now=T0 + MINUTE)
        assert (after.next_at, after.generation) == (T0 + MINUTE + 30 * SECOND, 2)
        assert fire_due(store, now=T0 + MINUTE) == []


class TestMaxRuns:
    def test_a_schedule_ends_when_its_runs_are_spent(self, store: Store) -> None:
        add_schedule(store, max_runs=2, overlap="allow")
        for minute in range(1, 5):
            fire_due(store, now=T0 + minute * MINUTE)
        assert len(all_jobs(store)) == 2
        assert read_schedule(store).next_at is None

    def test_one_firing_makes_no_more_than_are_allowed(self, store: Store) -> None:
        add_schedule(store, max_runs=3, overlap="allow", catchup="all")
        assert len(fire(store, now=T0 + 10 * MINUTE).jobs) == 3
        assert read_schedule(store).next_at is None

    def test_a_skipped_run_is_not_counted(self, store: Store) -> None:
        add_schedule(store, max_runs=2)
        fire(store, now=T0 + MINUTE)
        assert fire(store, now=T0 + 2 * MINUTE).skipped == 1
        schedule = read_schedule(store)
        assert (schedule.run_count, schedule.next_at) == (1, T0 + 3 * MINUTE)

    def test_a_run_by_hand_is_not_counted(self, store: Store) -> None:
        add_schedule(store, max_runs=1, run_on_start=True)
        assert read_schedule(store).run_count == 0
        assert len(fire(store, now=T0 + MINUTE).jobs) == 1


class TestDoneDates:
    """A local date for which its trigger made a job is done, whatever wall time the schedule gets later."""

    def test_the_last_time_that_made_a_job_is_kept(self, store: Store) -> None:
        add_schedule(store, key="k")
        fire(store, now=T0 + MINUTE)
        assert read_schedule(store).last.fired_for == T0 + MINUTE
        fire(store, now=T0 + 2 * MINUTE)  # overlap
        change_schedule(store, trigger_now(read_schedule(store), T0 + 2 * MINUTE, "refused"), now=T0 + 2 * MINUTE)
        succeed(store, claim_one(store, now=T0 + 2 * MINUTE), now=T0 + 2 * MINUTE)
        change_schedule(store, trigger_now(read_schedule(store), T0 + 2 * MINUTE, "made"), now=T0 + 2 * MINUTE)
        fire(store, now=T0 + 3 * MINUTE)  # the key
        last = read_schedule(store).last
        assert (last.fired_for, last.enqueued_at, last.job_id) == (T0 + MINUTE, T0 + 2 * MINUTE, "made")

    @pytest.mark.parametrize("done", [0, 1], ids=["by hand", "by its trigger"])
    def test_a_run_by_hand_is_no_run_of_its_date(self, store: Store, done: int) -> None:
        day = 24 * HOUR
        add_schedule(store, trigger="calendar days=1 at=09:00")
        fire(store, now=T0 + 9 * HOUR)
        first = claim_one(store, now=T0 + 9 * HOUR)
        if done:
            succeed(store, first, now=T0 + 10 * HOUR)
        fire(store, now=T0 + day + 9 * HOUR)
        at = T0 + day + 11 * HOUR
        change_schedule(store, trigger_now(read_schedule(store), at - HOUR, "by hand"), now=at - HOUR)
        before = read_schedule(store)
        later = msgspec.structs.replace(before.spec, trigger="calendar days=1 at=18:00")
        after = change_schedule(store, register(before, "tick", later, before.origin, at, fresh_id), now=at)
        assert after.next_at == T0 + day + 18 * HOUR + done * day


class TestCatchUp:
    def test_the_latest_missed_run_is_made_up_for(self, store: Store) -> None:
        add_schedule(store)
        fired = fire(store, now=T0 + 10 * MINUTE + 1)
        (job,) = all_jobs(store)
        assert (fired.skipped, job.fire_at, job.made_by) == (9, T0 + 10 * MINUTE, "catchup")
        assert [(line.count, line.outcome) for line in ledger(store)] == [(9, "coalesced"), (1, "queued")]

    def test_missed_runs_can_be_skipped(self, store: Store) -> None:
        add_schedule(store, catchup="skip")
        fired = fire(store, now=T0 + 10 * MINUTE + 1)
        assert (fired.jobs, fired.skipped) == ([], 10)
        (line,) = ledger(store)
        assert (line.after_at, line.through_at, line.count) == (T0, T0 + 10 * MINUTE, 10)
        assert (line.outcome, line.reason, line.job_id) == ("skipped", "catch-up", None)

    def test_all_missed_runs_run_one_after_another(self, store: Store) -> None:
        add_schedule(store, catchup="all")
        made = fire(store, now=T0 + 3 * MINUTE + 1).jobs
        assert [job.state for job in store.get_jobs(made)] == [State.QUEUED, State.HELD, State.HELD]
        for expected in made:
            (job,) = claim(store, 9, now=T0 + HOUR)
            assert job.id == expected
            succeed(store, job, now=T0 + HOUR)

    def test_the_order_of_missed_runs_is_their_time(self, store: Store) -> None:
        add_schedule(store, catchup="all")
        made = fire(store, now=T0 + 4 * MINUTE + 1).jobs
        times = [job.fire_at for job in store.get_jobs(made)]
        assert times == [T0 + minute * MINUTE for minute in (1, 2, 3, 4)]

    def test_a_chain_waits_for_the_live_job(self, store: Store) -> None:
        add_schedule(store, catchup="all")
        (first,) = fire(store, now=T0 + MINUTE).jobs
        made = fire(store, now=T0 + 3 * MINUTE + 1).jobs
        assert [read(store, job_id).waits_for for job_id in made] == [first, made[0]]

    def test_a_later_chain_stands_behind_the_earlier(self, store: Store) -> None:
        add_schedule(store, catchup="all")
        first = fire(store, now=T0 + 2 * MINUTE + 1).jobs
        (last,) = fire(store, now=T0 + 3 * MINUTE + 1).jobs
        assert read(store, last).waits_for == first[-1]

    def test_where_overlap_is_allowed_all_missed_runs_are_ready(self, store: Store) -> None:
        add_schedule(store, catchup="all", overlap="allow")
        made = fire(store, now=T0 + 3 * MINUTE + 1).jobs
        assert [job.id for job in claim(store, 9, now=T0 + HOUR)] == made

    def test_catch_up_is_bounded_and_what_it_leaves_out_is_recorded(self, store: Store) -> None:
        add_schedule(store, catchup="all", catchup_limit=3, overlap="allow")
        fired = fire(store, now=T0 + HOUR + 1)
        assert (len(fired.jobs), fired.skipped) == (3, 57)
        assert ledger(store)[0].count == 57

    def test_a_long_catch_up_continues_in_the_next_round(self, store: Store) -> None:
        add_schedule(store, catchup="all", catchup_limit=1000, overlap="allow")
        now = T0 + (MOST_JOBS + 20) * MINUTE + 1
        rounds = [len(fire_due(store, now=now)[0].jobs) for _ in range(2)]
        assert rounds == [MOST_JOBS, 20]
        assert len({job.fire_at for job in all_jobs(store)}) == MOST_JOBS + 20

    def test_what_the_firing_skips_is_counted_with_what_the_store_skips(self, store: Store) -> None:
        add_schedule(store, grace=MINUTE)
        (live,) = fire(store, now=T0 + MINUTE).jobs
        fired = fire(store, now=T0 + 10 * MINUTE)
        assert (fired.jobs, fired.skipped) == ([], 9)
        entries = [(line.outcome, line.reason, line.count) for line in ledger(store)[1:]]
        assert entries == [("coalesced", "catch-up", 7), ("skipped", overlap_reason(live), 2)]

    def test_an_unknown_schedule_is_not_accepted(self, store: Store) -> None:
        add_schedule(store)
        firing = planned(store, now=T0 + MINUTE)
        other = msgspec.structs.replace(firing, schedule=msgspec.structs.replace(firing.schedule, id="tock"))
        (fired,) = store.fire([other], now=T0 + MINUTE)
        assert (fired.schedule_id, fired.is_accepted) == ("tock", False)
