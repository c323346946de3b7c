"""Tests what a firing does while the schedule has a live job, decided in the same step as the firing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rota.model.jobs.job import State
from rota.model.jobs.outcome import Failed
from rota.model.schedules.edit import trigger_now
from rota.model.schedules.firing import overlap_reason
from rota.testing.store_suite.builders import HOUR, LEASE, MINUTE, T0, WORKER
from rota.testing.store_suite.steps import (
    add_schedule,
    all_jobs,
    cancel_waiting,
    change_schedule,
    claim,
    claim_one,
    fire,
    history,
    ids,
    ledger,
    planned,
    read,
    read_schedule,
    rescue_expired,
    settle_job,
    succeed,
)

if TYPE_CHECKING:
    from rota.model.jobs.job import Job
    from rota.store.contract import Store

SECOND_RUN = T0 + 2 * MINUTE
THIRD_RUN = T0 + 3 * MINUTE


def first_run(store: Store, overlap: str) -> Job:
    """A schedule whose first job is running."""
    add_schedule(store, overlap=overlap)
    fire(store, now=T0 + MINUTE)
    return claim_one(store, now=T0 + MINUTE)


class TestOverlapSkip:
    def test_an_occurrence_is_skipped_while_a_job_runs(self, store: Store) -> None:
        first = first_run(store, "skip")
        fired = fire(store, now=SECOND_RUN)
        assert (fired.is_accepted, fired.jobs, fired.skipped) == (True, [], 1)
        assert ids(all_jobs(store)) == [first.id]

    def test_the_skip_is_recorded(self, store: Store) -> None:
        live = first_run(store, "skip")
        fire(store, now=SECOND_RUN)
        line = ledger(store)[-1]
        assert (line.after_at, line.through_at, line.count) == (T0 + MINUTE, SECOND_RUN, 1)
        assert (line.outcome, line.reason, line.job_id) == ("skipped", overlap_reason(live.id), None)

    def test_a_job_that_still_waits_counts_as_live(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        assert fire(store, now=SECOND_RUN).skipped == 1

    def test_a_job_that_waits_for_its_retry_counts_as_live(self, store: Store) -> None:
        settle_job(store, first_run(store, "skip"), Failed("boom"), now=T0 + MINUTE, retries=1)
        assert fire(store, now=SECOND_RUN).skipped == 1

    def test_a_rescued_job_counts_as_live(self, store: Store) -> None:
        first_run(store, "skip")
        rescue_expired(store, now=T0 + MINUTE + LEASE)
        assert fire(store, now=SECOND_RUN).skipped == 1

    def test_when_it_has_ended_the_next_occurrence_runs(self, store: Store) -> None:
        succeed(store, first_run(store, "skip"), now=T0 + MINUTE)
        assert len(fire(store, now=SECOND_RUN).jobs) == 1

    def test_what_counts_is_the_moment_of_firing_and_not_of_planning(self, store: Store) -> None:
        first = first_run(store, "skip")
        firing = planned(store, now=SECOND_RUN)
        succeed(store, first, now=SECOND_RUN)
        (fired,) = store.fire([firing], now=SECOND_RUN)
        assert (len(fired.jobs), fired.skipped) == (1, 0)

    def test_two_occurrences_of_one_firing_meet_each_other(self, store: Store) -> None:
        add_schedule(store, grace=HOUR)
        fired = fire(store, now=THIRD_RUN)
        assert (len(fired.jobs), fired.skipped) == (1, 2)

    def test_a_run_by_hand_ignores_overlap(self, store: Store) -> None:
        first_run(store, "skip")
        change_schedule(store, trigger_now(read_schedule(store), SECOND_RUN, "by-hand"), now=SECOND_RUN)
        assert claim_one(store, now=SECOND_RUN).id == "by-hand"

    def test_a_run_by_hand_is_not_in_the_way(self, store: Store) -> None:
        schedule = add_schedule(store)
        change_schedule(store, trigger_now(schedule, T0, "by-hand"))
        assert len(fire(store, now=T0 + MINUTE).jobs) == 1

    def test_other_schedules_are_not_in_the_way(self, store: Store) -> None:
        first_run(store, "skip")
        add_schedule(store, "tock")
        assert len(fire(store, "tock", now=SECOND_RUN).jobs) == 1


class TestOverlapAllow:
    def test_every_occurrence_runs_whatever_is_live(self, store: Store) -> None:
        first_run(store, "allow")
        fire(store, now=SECOND_RUN)
        fire(store, now=THIRD_RUN)
        assert len(claim(store, 9, now=THIRD_RUN)) == 2

    def test_its_jobs_have_no_key(self, store: Store) -> None:
        assert first_run(store, "allow").key is None


class TestOverlapQueue:
    def test_one_job_is_held_behind_the_live_one(self, store: Store) -> None:
        first = first_run(store, "queue")
        (held,) = fire(store, now=SECOND_RUN).jobs
        job = read(store, held)
        assert (job.state, job.waits_for, job.fire_at) == (State.HELD, first.id, SECOND_RUN)

    def test_while_one_is_held_the_next_is_skipped(self, store: Store) -> None:
        live = first_run(store, "queue")
        (held,) = fire(store, now=SECOND_RUN).jobs
        fired = fire(store, now=THIRD_RUN)
        assert (fired.jobs, fired.skipped) == ([], 1)
        assert ledger(store)[-1].reason == overlap_reason(live.id, held)

    def test_the_held_job_runs_when_the_live_one_has_ended(self, store: Store) -> None:
        first = first_run(store, "queue")
        (held,) = fire(store, now=SECOND_RUN).jobs
        succeed(store, first, now=SECOND_RUN)
        assert claim_one(store, now=SECOND_RUN).id == held

    def test_a_released_job_takes_over_the_schedules_key(self, store: Store) -> None:
        first = first_run(store, "queue")
        (second,) = fire(store, now=SECOND_RUN).jobs
        succeed(store, first, now=SECOND_RUN)
        assert read(store, second).slot == "tick"
        (third,) = fire(store, now=THIRD_RUN).jobs
        assert read(store, third).waits_for == second

    def test_the_live_job_keeps_the_key_until_it_ends(self, store: Store) -> None:
        first = first_run(store, "queue")
        (held,) = fire(store, now=SECOND_RUN).jobs
        assert [job.slot for job in store.get_jobs([first.id, held])] == ["tick", None]

    def test_a_cancelled_held_job_makes_room(self, store: Store) -> None:
        first_run(store, "queue")
        (held,) = fire(store, now=SECOND_RUN).jobs
        cancel_waiting(store, held, now=SECOND_RUN)
        assert len(fire(store, now=THIRD_RUN).jobs) == 1

    def test_a_removed_live_job_releases_the_held_one(self, store: Store) -> None:
        first = first_run(store, "queue")
        (held,) = fire(store, now=SECOND_RUN).jobs
        succeed(store, first, now=SECOND_RUN, keep=False)
        assert read(store, held).state is State.QUEUED


class TestOverlapCancel:
    def test_the_running_job_is_asked_to_stop(self, store: Store) -> None:
        first = first_run(store, "cancel")
        (held,) = fire(store, now=SECOND_RUN).jobs
        cancels = store.extend_leases(WORKER, [(first.id, 1)], LEASE, now=SECOND_RUN).cancels
        assert list(cancels) == [first.id]
        assert cancels[first.id] != ""
        assert read(store, held).state is State.HELD

    def test_the_next_runs_when_it_has_stopped(self, store: Store) -> None:
        first = first_run(store, "cancel")
        (held,) = fire(store, now=SECOND_RUN).jobs
        succeed(store, first, now=SECOND_RUN)
        assert claim_one(store, now=SECOND_RUN).id == held

    def test_a_waiting_job_is_replaced_at_once(self, store: Store) -> None:
        add_schedule(store, overlap="cancel")
        (first,) = fire(store, now=T0 + MINUTE).jobs
        (second,) = fire(store, now=SECOND_RUN).jobs
        assert [job.state for job in store.get_jobs([first, second])] == [State.CANCELLED, State.QUEUED]
        assert history(store, second) == [State.HELD, State.QUEUED]
        assert read(store, second).slot == "tick"

    def test_the_replaced_occurrence_says_so(self, store: Store) -> None:
        add_schedule(store, overlap="cancel")
        fire(store, now=T0 + MINUTE)
        fire(store, now=SECOND_RUN)
        first, second = ledger(store)
        assert (first.outcome, second.outcome) == ("cancelled", "queued")
        assert first.reason != ""

    def test_while_the_live_one_stops_only_one_waits(self, store: Store) -> None:
        first_run(store, "cancel")
        fire(store, now=SECOND_RUN)
        assert fire(store, now=THIRD_RUN).skipped == 1

    def test_several_at_once_replace_each_other(self, store: Store) -> None:
        add_schedule(store, overlap="cancel", grace=HOUR)
        fire(store, now=T0 + MINUTE)
        fired = fire(store, now=T0 + 4 * MINUTE)
        jobs = store.get_jobs(fired.jobs)
        assert [job.state for job in jobs] == [State.CANCELLED, State.CANCELLED, State.QUEUED]
        assert ids(claim(store, 9, now=T0 + 4 * MINUTE)) == fired.jobs[2:]


class TestChains:
    def test_cancelling_a_job_in_a_chain_leaves_the_others_one_after_another(self, store: Store) -> None:
        """The job behind it must not start while the first still runs."""
        add_schedule(store, catchup="all")
        first, second, third = fire(store, now=T0 + 3 * MINUTE + 1).jobs
        job = claim_one(store, now=T0 + HOUR)
        assert job.id == first
        cancel_waiting(store, second, now=T0 + HOUR)
        assert claim(store, now=T0 + HOUR) == []
        succeed(store, job, now=T0 + HOUR)
        assert ids(claim(store, 9, now=T0 + HOUR)) == [third]

    @pytest.mark.parametrize("overlap", ["skip", "queue", "cancel"])
    def test_a_chain_never_has_two_live_holders_of_the_key(self, store: Store, overlap: str) -> None:
        add_schedule(store, catchup="all", overlap=overlap)
        made = fire(store, now=T0 + 4 * MINUTE + 1).jobs
        for _ in made:
            holders = [job.id for job in all_jobs(store) if job.slot == "tick"]
            (job,) = claim(store, 9, now=T0 + HOUR)
            assert holders == [job.id]
            succeed(store, job, now=T0 + HOUR)
        assert [job.key for job in store.get_jobs(made)] == [None] * 4
