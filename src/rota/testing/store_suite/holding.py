"""Tests held jobs: they wait for another job to end, and are released in the same step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rota.model.jobs.job import State, history_of
from rota.model.jobs.outcome import Failed, Outcome, Returned, Stopped, Succeeded
from rota.model.jobs.settle import cancel, settle
from rota.model.schedules.edit import disable
from rota.store.contract import Exchange
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, WORKER, a_policy
from rota.testing.store_suite.steps import (
    add_job,
    add_schedule,
    cancel_waiting,
    change_schedule,
    claim,
    fire,
    history,
    ids,
    queue_info,
    read,
    read_schedule,
    rescue_expired,
    running_job,
    settle_job,
    succeed,
    succeeded_job,
)

if TYPE_CHECKING:
    from rota.model.jobs.job import Job
    from rota.store.contract import Store

ENDS: list[Outcome] = [Succeeded(), Failed("boom", may_retry=False), Stopped("enough")]


def settle_and_claim(store: Store, jobs: list[Job], *, want: int = 9, now: int = T0) -> list[Job]:
    """Settle these and claim the next, in one exchange."""
    changes = [settle(job, Succeeded(), a_policy(), now, 0.0) for job in jobs]
    reply = store.exchange(Exchange(holder=WORKER, settled=changes, want=want), now=now)
    assert reply.refused == []
    return reply.claimed


class TestHeldJobs:
    def test_a_held_job_is_not_claimed(self, store: Store) -> None:
        first = running_job(store)
        held = add_job(store, waits_for=first.id)
        assert read(store, held).state is State.HELD
        assert claim(store, now=T0 + HOUR) == []

    @pytest.mark.parametrize("outcome", ENDS, ids=str)
    def test_a_held_job_is_ready_however_the_other_ends(self, store: Store, outcome: Outcome) -> None:
        first = running_job(store)
        held = add_job(store, waits_for=first.id)
        settle_job(store, first, outcome, now=T0 + 1)
        assert read(store, held).state is State.QUEUED
        assert ids(claim(store, now=T0 + 1)) == [held]

    def test_a_released_job_is_claimed_in_the_same_exchange(self, store: Store) -> None:
        first = running_job(store)
        held = add_job(store, waits_for=first.id)
        assert ids(settle_and_claim(store, [first])) == [held]

    def test_a_claim_that_releases_jobs_claims_them_in_order(self, store: Store) -> None:
        first = running_job(store)
        older = add_job(store)
        held = [add_job(store, waits_for=first.id) for _ in range(2)]
        younger = add_job(store)
        better = add_job(store, priority=1)
        best = add_job(store, priority=2, waits_for=first.id)
        assert ids(settle_and_claim(store, [first])) == [best, better, older, *held, younger]

    def test_a_claim_that_releases_jobs_leaves_the_last_in_the_queue(self, store: Store) -> None:
        first = running_job(store)
        older = add_job(store)
        held = [add_job(store, waits_for=first.id) for _ in range(3)]
        younger = add_job(store, priority=1)
        due = add_job(store, delay=MINUTE)
        assert ids(settle_and_claim(store, [first], want=3, now=T0 + MINUTE)) == [younger, older, held[0]]
        assert ids(claim(store, 9, now=T0 + MINUTE)) == [*held[1:], due]

    def test_jobs_released_by_several_ends_are_one_queue(self, store: Store) -> None:
        firsts = [running_job(store) for _ in range(2)]
        held = [add_job(store, waits_for=firsts[n % 2].id) for n in range(4)]
        assert ids(settle_and_claim(store, firsts[::-1])) == held

    def test_a_released_job_of_another_queue_is_not_claimed(self, store: Store) -> None:
        first = running_job(store)
        held = add_job(store, waits_for=first.id, queue="other")
        mine = add_job(store, waits_for=first.id)
        assert ids(settle_and_claim(store, [first])) == [mine]
        assert ids(claim(store, queues=("other",))) == [held]

    def test_a_release_is_one_entry(self, store: Store) -> None:
        first = running_job(store)
        held = add_job(store, waits_for=first.id)
        succeed(store, first, now=T0 + MINUTE)
        line = history_of(read(store, held))[-1]
        assert (line.state, line.at, line.reason) == (State.QUEUED, T0 + MINUTE, "released")
        assert history(store, held) == [State.HELD, State.QUEUED]

    def test_a_job_that_is_removed_at_its_end_releases_too(self, store: Store) -> None:
        first = running_job(store)
        held = add_job(store, waits_for=first.id)
        succeed(store, first, keep=False)
        assert read(store, held).state is State.QUEUED

    def test_cancelling_the_awaited_job_releases(self, store: Store) -> None:
        first = add_job(store, delay=HOUR)
        held = add_job(store, waits_for=first)
        cancel_waiting(store, first)
        assert read(store, held).state is State.QUEUED

    def test_a_job_that_fails_by_deaths_releases(self, store: Store) -> None:
        first = running_job(store)
        held = add_job(store, waits_for=first.id)
        for n in (1, 2, 3):
            rescue_expired(store, now=T0 + n * HOUR)
            claim(store, now=T0 + n * HOUR)
        assert read(store, first.id).state is State.FAILED
        assert read(store, held).state is State.RUNNING

    def test_a_retry_releases_nothing(self, store: Store) -> None:
        first = running_job(store)
        held = add_job(store, waits_for=first.id)
        settle_job(store, first, Failed("boom"), retries=1)
        assert read(store, held).state is State.HELD

    def test_giving_back_releases_nothing(self, store: Store) -> None:
        first = running_job(store)
        held = add_job(store, waits_for=first.id)
        settle_job(store, first, Returned())
        assert read(store, held).state is State.HELD

    def test_every_job_that_waited_is_released(self, store: Store) -> None:
        first = running_job(store)
        held = [add_job(store, waits_for=first.id) for _ in range(3)]
        other = add_job(store, waits_for=add_job(store, delay=HOUR))
        succeed(store, first)
        assert ids(claim(store, 9)) == held
        assert read(store, other).state is State.HELD

    def test_the_counters_follow(self, store: Store) -> None:
        first = running_job(store)
        add_job(store, waits_for=first.id)
        assert queue_info(store).counts == {"running": 1, "held": 1}
        succeed(store, first, keep=False)
        assert queue_info(store).counts == {"queued": 1}

    def test_a_released_job_keeps_its_own_key(self, store: Store) -> None:
        first = running_job(store)
        held = add_job(store, waits_for=first.id, key="k")
        succeed(store, first)
        assert read(store, held).key == "k"
        assert add_job(store, key="k") == held

    def test_a_held_job_can_be_cancelled(self, store: Store) -> None:
        first = running_job(store)
        held = add_job(store, waits_for=first.id)
        assert cancel_waiting(store, held) == []
        succeed(store, first)
        assert history(store, held) == [State.HELD, State.CANCELLED]


class TestChainsOfHeldJobs:
    def test_a_job_behind_a_cancelled_one_waits_for_what_that_one_waited_for(self, store: Store) -> None:
        first = running_job(store)
        second = add_job(store, waits_for=first.id)
        third = add_job(store, waits_for=second)
        cancel_waiting(store, second)
        assert read(store, third).state is State.HELD
        succeed(store, first)
        assert read(store, third).state is State.QUEUED

    @pytest.mark.parametrize("turn", [1, -1], ids=["in order", "in reverse"])
    def test_a_job_behind_two_that_are_cancelled_together_is_ready(self, store: Store, turn: int) -> None:
        first = add_job(store)
        second = add_job(store, waits_for=first)
        third = add_job(store, waits_for=second)
        decided = [cancel(read(store, job_id), T0, "all") for job_id in (first, second)][::turn]
        assert store.change_jobs(decided, now=T0) == []
        assert ids(claim(store, 9)) == [third]

    def test_a_job_behind_a_chain_that_is_revoked_is_ready(self, store: Store) -> None:
        add_schedule(store, catchup="all")
        made = fire(store, now=T0 + 3 * MINUTE + 1).jobs
        behind = add_job(store, waits_for=made[-1], now=T0 + 4 * MINUTE)
        change_schedule(store, disable(read_schedule(store), T0 + 4 * MINUTE), now=T0 + 4 * MINUTE)
        assert ids(claim(store, 9, now=T0 + 4 * MINUTE)) == [behind]


class TestWaitingForWhatHasEnded:
    """No job may be stuck behind one that will not end again."""

    def test_a_job_that_waits_for_an_ended_job_is_ready_at_once(self, store: Store) -> None:
        ended = succeeded_job(store)
        add_job(store, waits_for=ended)
        assert len(claim(store)) == 1

    def test_a_job_that_waits_for_a_removed_job_is_ready_at_once(self, store: Store) -> None:
        job = running_job(store)
        succeed(store, job, keep=False)
        add_job(store, waits_for=job.id)
        assert len(claim(store)) == 1
