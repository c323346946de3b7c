"""Tests jobs that are created before they are due: decided when due, and deleted when their schedule changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rota.model.jobs.job import State
from rota.model.jobs.outcome import Failed, RetryAsked
from rota.model.jobs.settle import retry_by_hand
from rota.model.schedules.edit import disable, follow_spec, pause, register, remove, resume
from rota.model.schedules.firing import overlap_reason, plan
from rota.model.schedules.schedule import Origin
from rota.model.schedules.slots import NOT_CLAIMED
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, a_line, fresh_id
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.steps import (
    add_job,
    add_schedule,
    all_jobs,
    cancel_waiting,
    change_schedule,
    claim,
    claim_one,
    fire,
    fire_due,
    history,
    ids,
    is_kept,
    ledger,
    planned,
    queue_info,
    read,
    read_schedule,
    running_job,
    settle_job,
    succeed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.jobs.job import Job
    from rota.model.schedules.edit import Edit
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Store

SOON = 3 * MINUTE + 30_000_000  # three occurrences lie within it
GRACE = MINUTE // 2


def created_early(store: Store, **spec: Any) -> list[Job]:
    """Create the jobs of the first three minutes at once; oldest first. None of them is late within the hour."""
    add_schedule(store, **{"lookahead": SOON, "grace": HOUR, **spec})
    made = fire(store, now=T0).jobs
    return store.get_jobs(made)


def kept_run(store: Store, **spec: Any) -> int:
    """A daily schedule that moves from Tokyo to Paris and keeps its announced run; return that time."""
    schedule = add_schedule(store, **{"trigger": "cron 0 9 * * *", "tz": "Asia/Tokyo", **spec})
    moved = msgspec.structs.replace(schedule.spec, tz="Europe/Paris")
    change_schedule(store, follow_spec(schedule, moved, T0 + 1, keeps_next=True), now=T0 + 1)
    assert schedule.next_at is not None
    return schedule.next_at


def stop_paused(schedule: Schedule, now: int) -> Edit | None:
    return pause(schedule, now, reason="rest", by="ann", until=None)


def stop_retimed(schedule: Schedule, now: int) -> Edit | None:
    spec = msgspec.structs.replace(schedule.spec, trigger="every 1h")
    return register(schedule, schedule.id, spec, schedule.origin, now, fresh_id)


STOPS = [stop_paused, disable, remove, stop_retimed]
stopping = pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.__name__)


class TestCreatingEarly:
    def test_coming_occurrences_are_made_as_scheduled_jobs(self, store: Store) -> None:
        jobs = created_early(store)
        assert [(job.state, job.fire_at, job.run_at) for job in jobs] == [
            (State.SCHEDULED, T0 + number * MINUTE, T0 + number * MINUTE) for number in (1, 2, 3)
        ]
        assert [(job.key, job.slot) for job in jobs] == [(None, None)] * 3
        assert queue_info(store).counts == {"scheduled": 3}

    def test_the_window_is_half_open(self, store: Store) -> None:
        add_schedule(store, lookahead=3 * MINUTE)
        assert len(fire(store, now=T0).jobs) == 2

    def test_the_next_one_is_made_when_it_comes_into_the_window(self, store: Store) -> None:
        created_early(store)
        due_at = T0 + 4 * MINUTE - SOON + 1
        assert store.due_schedules(9, now=due_at - 1).next_due_at == due_at
        (fired,) = fire_due(store, now=due_at)
        assert [job.fire_at for job in store.get_jobs(fired.jobs)] == [T0 + 4 * MINUTE]

    def test_each_occurrence_is_made_once_by_two_schedulers(self, store: Store) -> None:
        add_schedule(store, lookahead=SOON)
        first, second = planned(store, now=T0), planned(store, now=T0)
        assert [fired.is_accepted for fired in store.fire([first, second], now=T0)] == [True, False]
        assert len(all_jobs(store)) == 3

    def test_they_become_ready_without_a_scheduler(self, store: Store) -> None:
        made = created_early(store, overlap="allow")
        assert claim(store, 9, now=T0 + MINUTE - 1) == []
        assert ids(claim(store, 9, now=T0 + 3 * MINUTE)) == ids(made)

    def test_a_claim_says_when_the_next_is_due(self, store: Store) -> None:
        created_early(store)
        job = claim_one(store, now=T0 + MINUTE)
        succeed(store, job, now=T0 + MINUTE)
        (waiting, *_) = sorted(all_jobs(store), key=lambda job: job.run_at)[1:]
        assert waiting.run_at == T0 + 2 * MINUTE

    def test_they_are_in_the_ledger(self, store: Store) -> None:
        created_early(store)
        assert [line.outcome for line in ledger(store)] == ["scheduled"] * 3


class TestDecidingWhenDue:
    @pytest.mark.parametrize("overlap", ["skip", "queue", "cancel"])
    def test_one_that_is_due_takes_its_schedules_slot(self, store: Store, overlap: str) -> None:
        first, *_ = created_early(store, overlap=overlap)
        job = claim_one(store, now=T0 + MINUTE)
        assert (job.id, job.slot, job.key, job.waits_for) == (first.id, "tick", None, None)
        assert history(store, job.id) == [State.SCHEDULED, State.QUEUED, State.RUNNING]

    def test_an_overlap_is_skipped_when_it_is_due(self, store: Store) -> None:
        first, second, _ = created_early(store, overlap="skip")
        claim_one(store, now=T0 + MINUTE)
        assert claim(store, now=T0 + 2 * MINUTE) == []
        assert not is_kept(store, second.id)
        lines = {line.through_at: (line.outcome, line.reason) for line in ledger(store)}
        assert lines[T0 + 2 * MINUTE] == ("skipped", overlap_reason(first.id))
        assert lines[T0 + MINUTE][0] == "running"
        assert queue_info(store).counts == {"running": 1, "scheduled": 1}
        assert read(store, first.id).state is State.RUNNING

    def test_one_that_is_skipped_is_deleted_with_its_logs(self, store: Store) -> None:
        _, second, _ = created_early(store, overlap="skip")
        store.append_logs([a_line(second.id, "early")])
        claim(store, 9, now=T0 + 2 * MINUTE)
        assert not is_kept(store, second.id)
        assert store.list_logs(second.id) == []

    def test_it_runs_where_the_one_before_has_ended(self, store: Store) -> None:
        _, second, _ = created_early(store, overlap="skip")
        succeed(store, claim_one(store, now=T0 + MINUTE), now=T0 + MINUTE)
        assert ids(claim(store, now=T0 + 2 * MINUTE)) == [second.id]

    def test_an_overlap_is_held_and_released(self, store: Store) -> None:
        _, second, third = created_early(store, overlap="queue")
        running = claim_one(store, now=T0 + MINUTE)
        assert claim(store, 9, now=T0 + 2 * MINUTE) == []
        held = read(store, second.id)
        assert (held.state, held.waits_for) == (State.HELD, running.id)
        assert claim(store, 9, now=T0 + 3 * MINUTE) == []
        assert not is_kept(store, third.id)
        succeed(store, running, now=T0 + 3 * MINUTE)
        assert ids(claim(store, 9, now=T0 + 3 * MINUTE)) == [second.id]
        assert history(store, second.id) == [State.SCHEDULED, State.HELD, State.QUEUED, State.RUNNING]

    def test_an_overlap_asks_the_one_before_to_stop(self, store: Store) -> None:
        _, second, _ = created_early(store, overlap="cancel")
        running = claim_one(store, now=T0 + MINUTE)
        claim(store, now=T0 + 2 * MINUTE)
        assert read(store, running.id).cancel_reason == "replaced by the next occurrence"
        assert read(store, second.id).state is State.HELD

    def test_the_schedule_shows_one_that_was_replaced_before_it_began(self, store: Store) -> None:
        first, second, _ = created_early(store, overlap="cancel")
        assert ids(claim(store, 9, now=T0 + 2 * MINUTE)) == [second.id]
        last = read_schedule(store).last
        assert (last.job_id, last.status, last.finished_at) == (first.id, "cancelled", T0 + 2 * MINUTE)
        assert last.error == "replaced by the next occurrence"

    def test_several_that_are_due_at_once_are_decided_in_order(self, store: Store) -> None:
        first, second, third = created_early(store, overlap="skip")
        assert ids(claim(store, 9, now=T0 + HOUR)) == [first.id]
        assert not is_kept(store, second.id)
        assert not is_kept(store, third.id)

    def test_the_policy_of_the_day_decides(self, store: Store) -> None:
        _, second, _ = created_early(store, overlap="skip")
        schedule = read_schedule(store)
        spec = msgspec.structs.replace(schedule.spec, overlap="queue")
        change_schedule(store, register(schedule, "tick", spec, schedule.origin, T0, fresh_id))
        claim_one(store, now=T0 + MINUTE)
        claim(store, now=T0 + 2 * MINUTE)
        assert read(store, second.id).state is State.HELD

    def test_it_is_decided_once(self, store: Store) -> None:
        """A retry of it waits as any job does."""
        created_early(store, overlap="skip")
        job = claim_one(store, now=T0 + MINUTE)
        assert read(store, job.id).waits_for is None

    def test_a_retry_of_one_that_was_held_is_not_decided(self, store: Store) -> None:
        """Its history shows that it was held. It has its schedule's key now."""
        add_schedule(store, overlap="queue")
        fire(store, now=T0 + MINUTE)
        first = claim_one(store, now=T0 + MINUTE)
        (second,) = fire(store, now=T0 + 2 * MINUTE).jobs
        succeed(store, first, now=T0 + 2 * MINUTE)
        settle_job(store, claim_one(store, now=T0 + 2 * MINUTE), Failed("boom"), now=T0 + 2 * MINUTE, retries=1)
        assert read(store, second).state is State.SCHEDULED
        assert ids(claim(store, 9, now=T0 + HOUR)) == [second]

    def test_one_that_is_released_before_its_time_is_not_decided(self, store: Store) -> None:
        first = running_job(store)
        held = add_job(store, waits_for=first.id, delay=MINUTE)
        succeed(store, first)
        assert read(store, held).state is State.SCHEDULED
        assert ids(claim(store, 9, now=T0 + MINUTE)) == [held]

    def test_a_retry_of_one_that_was_cancelled_before_its_time_is_not_decided_after_it(self, store: Store) -> None:
        """It was cancelled, and retried by hand after it was due: that is a separate run."""
        now = T0 + 2 * MINUTE
        _, second, _ = created_early(store, overlap="skip")
        claim_one(store, now=T0 + MINUTE)
        cancel_waiting(store, second.id, now=T0 + MINUTE)
        store.change_jobs([retry_by_hand(read(store, second.id), now, "by ann")], now=now)
        settle_job(store, claim_one(store, now=now), Failed("boom"), now=now, retries=1)
        assert read(store, second.id).state is State.SCHEDULED
        assert ids(claim(store, 9, now=T0 + HOUR)) == [second.id]

    def test_a_retry_before_its_time_is_decided_when_that_comes(self, store: Store) -> None:
        _, second, _ = created_early(store, overlap="skip")
        first = claim_one(store, now=T0 + MINUTE)
        cancel_waiting(store, second.id, now=T0 + MINUTE)
        store.change_jobs([retry_by_hand(read(store, second.id), T0 + MINUTE, "by ann")], now=T0 + MINUTE)
        assert read(store, second.id).state is State.SCHEDULED
        assert claim(store, 9, now=T0 + 2 * MINUTE) == []
        lines = {line.through_at: line.reason for line in ledger(store)}
        assert lines[T0 + 2 * MINUTE] == overlap_reason(first.id)

    def test_a_retry_that_is_due_at_once_with_them_is_replaced_once(self, store: Store) -> None:
        """A job that a decision ends is not made ready by the same claim. The last of them has the key."""
        first, second, third = created_early(store, overlap="cancel")
        later = RetryAsked(after=MINUTE + MINUTE // 2, error="boom")
        settle_job(store, claim_one(store, now=T0 + MINUTE), later, now=T0 + MINUTE, retries=1)
        assert ids(claim(store, 9, now=T0 + HOUR)) == [third.id]
        ended = store.get_jobs([first.id, second.id])
        assert [(job.state, job.key) for job in ended] == [(State.CANCELLED, None)] * 2
        assert ended[0].queued_at is None
        check_store(store)

    def test_a_paused_queue_decides_nothing(self, store: Store) -> None:
        created_early(store)
        store.pause_queue("default", paused=True)
        assert claim(store, 9, now=T0 + HOUR) == []
        assert queue_info(store).counts == {"scheduled": 3}

    def test_other_queues_decide_nothing(self, store: Store) -> None:
        created_early(store)
        assert claim(store, 9, queues=("other",), now=T0 + HOUR) == []
        assert queue_info(store).counts == {"scheduled": 3}

    def test_other_jobs_go_beside_it(self, store: Store) -> None:
        created_early(store)
        plain = add_job(store, run_at=T0 + MINUTE)
        assert len(claim(store, 9, now=T0 + MINUTE)) == 2
        assert read(store, plain).state is State.RUNNING

    def test_what_waits_for_one_that_is_skipped_is_released(self, store: Store) -> None:
        first, second, _ = created_early(store, overlap="skip")
        behind = add_job(store, waits_for=second.id)
        assert ids(claim(store, 9, now=T0 + MINUTE)) == [first.id]
        claim(store, 9, now=T0 + 2 * MINUTE)
        assert not is_kept(store, second.id)
        assert read(store, behind).state is not State.HELD

    def test_a_schedule_that_is_gone_runs_nothing_more(self, store: Store) -> None:
        created_early(store)
        change_schedule(store, remove(read_schedule(store), T0), now=T0)
        assert claim(store, 9, now=T0 + HOUR) == []

    def test_a_job_whose_schedule_is_gone_leaves_no_occurrence(self, store: Store) -> None:
        """A copy may not have the schedule. Then no ledger entry is made, because none would delete it."""
        ahead = created_early(store)[0]
        change_schedule(store, remove(read_schedule(store), T0))
        live = read(store, add_job(store))
        store.load(
            [
                msgspec.structs.replace(live, id=fresh_id(), schedule_id="gone", slot="gone"),
                msgspec.structs.replace(ahead, id=fresh_id(), schedule_id="gone"),
            ]
        )
        assert len(claim(store, 9, now=T0 + MINUTE)) == 2
        assert [job.schedule_id for job in all_jobs(store)] == ["gone", None]
        assert ledger(store, "gone") == []


class TestCatchUpAhead:
    """A job that was created before it was due and is late at its claim: catch-up decides, as for a firing."""

    @pytest.mark.parametrize("overlap", ["skip", "allow"])
    def test_skip_runs_none_that_is_late(self, store: Store, overlap: str) -> None:
        first, second, third = created_early(store, grace=GRACE, overlap=overlap, catchup="skip")
        assert ids(claim(store, 9, now=T0 + 3 * MINUTE + GRACE)) == [third.id]
        assert not is_kept(store, first.id)
        assert not is_kept(store, second.id)
        line = ledger(store)[0]  # one range of two
        assert (line.through_at, line.count) == (T0 + 2 * MINUTE, 2)
        assert (line.outcome, line.reason) == ("skipped", NOT_CLAIMED)
        assert queue_info(store).counts == {"running": 1}

    @pytest.mark.parametrize("overlap", ["skip", "allow"])
    def test_latest_runs_the_newest(self, store: Store, overlap: str) -> None:
        _, _, third = created_early(store, grace=GRACE, overlap=overlap, catchup="latest", end=T0 + 3 * MINUTE)
        assert ids(claim(store, 9, now=T0 + HOUR)) == [third.id]
        line = ledger(store)[0]
        assert (line.through_at, line.count, line.outcome) == (T0 + 2 * MINUTE, 2, "coalesced")

    def test_latest_leaves_a_late_one_to_a_newer_one_that_a_scheduler_makes(self, store: Store) -> None:
        created_early(store, grace=GRACE, catchup="latest")
        assert claim(store, 9, now=T0 + HOUR) == []
        fire(store, now=T0 + HOUR)
        assert [job.fire_at for job in claim(store, 9, now=T0 + HOUR)] == [T0 + HOUR]

    def test_latest_runs_the_last_of_max_runs(self, store: Store) -> None:
        _, _, third = created_early(store, grace=GRACE, catchup="latest", max_runs=3)
        assert ids(claim(store, 9, now=T0 + HOUR)) == [third.id]

    def test_all_runs_each_one_after_another(self, store: Store) -> None:
        made = created_early(store, grace=GRACE, overlap="skip", catchup="all")
        ran = []
        for _ in made:
            job = claim_one(store, now=T0 + HOUR)
            ran.append(job.id)
            succeed(store, job, now=T0 + HOUR)
        assert ran == ids(made)
        check_store(store)

    def test_all_runs_no_more_than_its_limit(self, store: Store) -> None:
        made = created_early(store, grace=GRACE, overlap="allow", catchup="all", catchup_limit=2, end=T0 + 3 * MINUTE)
        assert ids(claim(store, 9, now=T0 + HOUR)) == ids(made[1:])
        assert [(line.through_at, line.outcome) for line in ledger(store)[:1]] == [(T0 + MINUTE, "skipped")]

    @pytest.mark.parametrize("catchup", ["skip", "latest", "all"])
    def test_one_within_its_grace_runs(self, store: Store, catchup: str) -> None:
        first, *_ = created_early(store, grace=GRACE, overlap="allow", catchup=catchup)
        assert claim_one(store, now=T0 + MINUTE + GRACE).id == first.id

    def test_what_waits_for_one_that_is_skipped_is_released(self, store: Store) -> None:
        first, *_ = created_early(store, grace=GRACE, catchup="skip")
        behind = add_job(store, waits_for=first.id)
        claim(store, 9, now=T0 + HOUR)
        assert not is_kept(store, first.id)
        assert read(store, behind).state is not State.HELD
        check_store(store)


class TestDeletingEarlyJobs:
    @stopping
    def test_future_jobs_are_deleted_without_a_record(
        self, store: Store, stop: Callable[[Schedule, int], Edit | None]
    ) -> None:
        made = created_early(store)
        now = T0 + MINUTE + 1
        change_schedule(store, stop(read_schedule(store), now), now=now)
        assert read(store, made[0].id).state is State.CANCELLED
        assert not is_kept(store, made[1].id)
        assert not is_kept(store, made[2].id)
        assert queue_info(store).totals == {"cancelled": 1}
        assert claim(store, 9, now=T0 + 4 * MINUTE) == []

    @stopping
    def test_what_waits_for_one_that_is_deleted_is_released(
        self, store: Store, stop: Callable[[Schedule, int], Edit | None]
    ) -> None:
        _, second, _ = created_early(store)
        behind = add_job(store, waits_for=second.id)
        change_schedule(store, stop(read_schedule(store), T0 + 1), now=T0 + 1)
        assert ids(claim(store, 9, now=T0 + 1)) == [behind]

    @stopping
    def test_a_running_job_is_not_affected(self, store: Store, stop: Callable[[Schedule, int], Edit | None]) -> None:
        created_early(store)
        running = claim_one(store, now=T0 + MINUTE)
        change_schedule(store, stop(read_schedule(store), T0 + MINUTE), now=T0 + MINUTE)
        assert ids(all_jobs(store)) == [running.id]
        assert succeed(store, running, now=T0 + MINUTE) == []

    def test_after_a_pause_they_are_created_again(self, store: Store) -> None:
        created_early(store)
        change_schedule(store, stop_paused(read_schedule(store), T0 + 1), now=T0 + 1)
        schedule = change_schedule(store, resume(read_schedule(store), T0 + 2), now=T0 + 2)
        assert (schedule.fired_through, schedule.run_count) == (T0, 0)
        fired = fire(store, now=T0 + 2)
        assert [job.fire_at for job in store.get_jobs(fired.jobs)] == [T0 + number * MINUTE for number in (1, 2, 3)]

    def test_each_occurrence_has_one_record_after_all(self, store: Store) -> None:
        created_early(store)
        change_schedule(store, stop_paused(read_schedule(store), T0 + 1), now=T0 + 1)
        change_schedule(store, resume(read_schedule(store), T0 + MINUTE), now=T0 + MINUTE)
        fire(store, now=T0 + MINUTE + 1)
        lines = [(line.through_at, line.outcome) for line in ledger(store)]
        assert lines == [
            (T0 + MINUTE, "skipped"),
            *((T0 + number * MINUTE, "scheduled") for number in (2, 3, 4)),
        ]

    def test_one_that_was_cancelled_by_hand_is_not_made_again(self, store: Store) -> None:
        _, second, _ = created_early(store)
        assert cancel_waiting(store, second.id, now=T0) == []
        change_schedule(store, stop_paused(read_schedule(store), T0 + 1), now=T0 + 1)
        change_schedule(store, resume(read_schedule(store), T0 + 2), now=T0 + 2)
        fired = fire(store, now=T0 + 2)
        assert [job.fire_at for job in store.get_jobs(fired.jobs)] == [T0 + MINUTE, T0 + 3 * MINUTE]

    def test_an_edit_of_anything_else_unmakes_nothing(self, store: Store) -> None:
        made = created_early(store)
        schedule = read_schedule(store)
        spec = msgspec.structs.replace(schedule.spec, payload="[[2]]")
        after = change_schedule(store, register(schedule, "tick", spec, schedule.origin, T0 + 1, fresh_id))
        assert (after.ahead, after.next_at) == (schedule.ahead, schedule.next_at)
        assert [job.payload for job in store.get_jobs(ids(made))] == [b"[]"] * 3

    def test_a_kept_run_happens_at_its_old_instant(self, store: Store) -> None:
        """The zone changes, and the announced run still happens at its old instant, as an occurrence like any other."""
        kept = kept_run(store)
        assert read_schedule(store).next_at == kept
        assert all_jobs(store) == []
        spec = msgspec.structs.replace(read_schedule(store).spec, payload="[[2]]")
        change_schedule(store, register(read_schedule(store), "tick", spec, Origin(), T0 + 2, fresh_id), now=T0 + 2)
        (job_id,) = fire(store, now=kept).jobs
        job = read(store, job_id)
        assert (job.fire_at, job.payload) == (kept, b"[[2]]")
        after = read_schedule(store)
        assert after.next_at is not None
        assert after.next_at > kept + 24 * HOUR  # Paris has had that date

    def test_catch_up_decides_on_a_kept_run_that_is_missed(self, store: Store) -> None:
        kept = kept_run(store, catchup="skip")
        assert fire(store, now=kept + HOUR).jobs == []
        assert [(line.through_at, line.outcome, line.reason) for line in ledger(store)] == [
            (kept, "skipped", "catch-up")
        ]

    def test_a_kept_run_that_was_cancelled_by_hand_is_not_made_again(self, store: Store) -> None:
        add_schedule(store, trigger="cron 0 9 * * *", tz="Asia/Tokyo", lookahead=48 * HOUR)
        first, *_ = fire(store, now=T0).jobs
        assert cancel_waiting(store, first, now=T0) == []
        schedule = read_schedule(store)
        spec = msgspec.structs.replace(schedule.spec, tz="Europe/Paris")
        change_schedule(store, follow_spec(schedule, spec, T0 + 1, keeps_next=True), now=T0 + 1)
        assert fire(store, now=T0 + 2).jobs == []
        assert ids(all_jobs(store)) == [first]

    def test_the_schedule_is_as_it_was_after_a_round_trip(self, store: Store) -> None:
        created_early(store)
        schedule = read_schedule(store)
        assert schedule.ahead is not None
        assert schedule.ahead.through == T0 + 3 * MINUTE
        assert plan(schedule, T0 + 1, fresh_id).shots == []
