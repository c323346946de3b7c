"""Tests firings that are recorded before their time, for a claim on time, if nothing prevents them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rota.model.jobs.job import State
from rota.model.schedules.edit import disable, pause
from rota.store.contract import Exchange
from rota.testing.store_suite.builders import LEASE, MINUTE, T0, WORKER
from rota.testing.store_suite.steps import (
    add_schedule,
    all_jobs,
    change_schedule,
    claim,
    claim_one,
    fire,
    fire_early,
    history,
    ids,
    ledger,
    planned,
    planned_early,
    queue_info,
    read,
    read_schedule,
    succeed,
)

if TYPE_CHECKING:
    from rota.store.contract import Store

FIRST, SECOND = T0 + MINUTE, T0 + 2 * MINUTE
EARLY_BY = 20_000  # microseconds


class TestFiringEarly:
    def test_its_job_waits_for_its_time(self, store: Store) -> None:
        add_schedule(store)
        fired = fire_early(store, FIRST, now=FIRST - EARLY_BY)
        (job,) = all_jobs(store)
        assert (fired.is_accepted, fired.jobs, fired.skipped) == (True, [job.id], 0)
        assert (job.state, job.run_at, job.fire_at, job.created_at) == (
            State.SCHEDULED,
            FIRST,
            FIRST,
            FIRST - EARLY_BY,
        )
        assert claim(store, now=FIRST - 1) == []

    def test_it_is_claimed_at_its_time(self, store: Store) -> None:
        add_schedule(store)
        (job_id,) = fire_early(store, FIRST, now=FIRST - EARLY_BY).jobs
        job = claim_one(store, now=FIRST)
        assert (job.id, job.started_at) == (job_id, FIRST)
        succeed(store, job, now=FIRST)
        assert history(store, job_id) == [State.SCHEDULED, State.QUEUED, State.RUNNING, State.SUCCEEDED]

    def test_the_schedule_continues(self, store: Store) -> None:
        before = add_schedule(store)
        fire_early(store, FIRST, now=FIRST - EARLY_BY)
        after = read_schedule(store)
        assert (after.version, after.run_count) == (before.version + 1, 1)
        assert (after.fired_through, after.next_at) == (FIRST, SECOND)
        assert store.due_schedules(10, now=FIRST).schedules == []

    def test_workers_learn_when_it_is_due(self, store: Store) -> None:
        add_schedule(store)
        fire_early(store, FIRST, now=FIRST - EARLY_BY)
        ask = Exchange(holder=WORKER, queues=("default",), want=1, lease_for=LEASE)
        assert store.exchange(ask, now=FIRST - EARLY_BY + 1).next_due_at == FIRST
        assert queue_info(store).counts[State.SCHEDULED] == 1

    def test_who_fires_on_time_finds_it_done(self, store: Store) -> None:
        add_schedule(store)
        late = planned(store, now=FIRST)
        fire_early(store, FIRST, now=FIRST - EARLY_BY)
        assert not store.fire([late], now=FIRST)[0].is_accepted
        assert len(all_jobs(store)) == 1

    def test_a_crowd_is_fired_in_its_order(self, store: Store) -> None:
        names = [f"tick-{number}" for number in range(30)]
        for name in names:
            add_schedule(store, name, overlap="skip" if name[-1] in "13579" else "allow")
        fired = store.fire([planned_early(store, FIRST, name) for name in names], now=FIRST - EARLY_BY)
        assert [one.is_accepted for one in fired] == [True] * 30
        assert [job.schedule_id for job in claim(store, 100, now=FIRST)] == names


class TestSomethingInTheWay:
    @pytest.mark.parametrize("overlap", ["skip", "queue", "cancel"])
    def test_a_live_job_puts_it_off(self, store: Store, overlap: str) -> None:
        """Whether it overlaps is decided at its own time."""
        add_schedule(store, overlap=overlap)
        fire(store, now=FIRST)
        before, job = read_schedule(store), claim_one(store, now=FIRST)
        fired = fire_early(store, SECOND, now=SECOND - EARLY_BY)
        assert (fired.is_accepted, fired.jobs, fired.skipped) == (False, [], 0)
        assert (read_schedule(store), ids(all_jobs(store))) == (before, [job.id])
        assert len(ledger(store)) == 1
        assert not read(store, job.id).cancel_reason

    def test_it_runs_if_that_job_ends_in_time(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=FIRST)
        job = claim_one(store, now=FIRST)
        assert not fire_early(store, SECOND, now=SECOND - EARLY_BY).is_accepted
        succeed(store, job, now=SECOND - 1)
        assert len(fire(store, now=SECOND).jobs) == 1

    def test_what_may_overlap_is_not_put_off(self, store: Store) -> None:
        add_schedule(store, overlap="allow")
        fire(store, now=FIRST)
        claim_one(store, now=FIRST)
        assert len(fire_early(store, SECOND, now=SECOND - EARLY_BY).jobs) == 1
        assert claim_one(store, now=SECOND).fire_at == SECOND

    def test_of_a_batch_only_that_one_is_put_off(self, store: Store) -> None:
        for name in ("a", "b", "c"):
            add_schedule(store, name)
            fire(store, name, now=FIRST)
        first, busy, last = claim(store, 3, now=FIRST)
        for job in (first, last):
            succeed(store, job, now=FIRST)
        firings = [planned_early(store, SECOND, name) for name in ("a", "b", "c")]
        assert [fired.is_accepted for fired in store.fire(firings, now=SECOND - EARLY_BY)] == [True, False, True]
        assert read_schedule(store, "b").next_at == SECOND
        assert [job.schedule_id for job in claim(store, 3, now=SECOND)] == ["a", "c"]
        assert read(store, busy.id).state is State.RUNNING

    def test_somebody_who_was_first_refuses_it(self, store: Store) -> None:
        add_schedule(store)
        mine, theirs = planned_early(store, FIRST), planned_early(store, FIRST)
        assert store.fire([mine], now=FIRST - EARLY_BY)[0].is_accepted
        assert not store.fire([theirs], now=FIRST - EARLY_BY)[0].is_accepted
        assert len(all_jobs(store)) == 1


class TestChangesInBetween:
    def test_a_schedule_that_is_disabled_before_its_time_revokes_the_job(self, store: Store) -> None:
        add_schedule(store)
        (job_id,) = fire_early(store, FIRST, now=FIRST - EARLY_BY).jobs
        change_schedule(store, disable(read_schedule(store), FIRST - 1), now=FIRST - 1)
        assert claim(store, now=FIRST) == []
        assert read(store, job_id).state is State.CANCELLED

    def test_one_that_is_paused_before_its_time_revokes_the_job(self, store: Store) -> None:
        add_schedule(store)
        (job_id,) = fire_early(store, FIRST, now=FIRST - EARLY_BY).jobs
        edit = pause(read_schedule(store), FIRST - 1, reason="stocktaking", by="ann", until=None)
        change_schedule(store, edit, now=FIRST - 1)
        assert claim(store, now=FIRST) == []
        assert read(store, job_id).state is State.CANCELLED

    def test_the_next_occurrence_meets_it_as_any_other(self, store: Store) -> None:
        add_schedule(store)
        fire_early(store, FIRST, now=FIRST - EARLY_BY)
        job = claim_one(store, now=FIRST)
        assert fire(store, now=SECOND).skipped == 1
        assert succeed(store, job, now=SECOND) == []
