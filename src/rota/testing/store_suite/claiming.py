"""Tests claims: higher priority first, then older first, over all queues that a worker serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rota.model.jobs.job import State
from rota.model.jobs.outcome import Failed, Returned, Snoozed
from rota.model.micros import SECOND
from rota.store.contract import MOST_PROMOTED, Exchange
from rota.testing.store_suite.builders import HOUR, LEASE, MINUTE, RIVAL, T0, WORKER, a_job
from rota.testing.store_suite.steps import (
    add,
    add_job,
    add_schedule,
    all_jobs,
    claim,
    claim_one,
    fire_due,
    fire_early,
    history,
    ids,
    read,
    read_schedule,
    running_job,
    settle_job,
    succeed,
)

if TYPE_CHECKING:
    from rota.store.contract import Exchanged, Store


class TestClaiming:
    def test_a_claimed_job_runs_under_a_lease(self, store: Store) -> None:
        add_job(store)
        (job,) = claim(store, lease_for=45 * SECOND, now=T0 + 1)
        assert (job.state, job.holder, job.lease_no) == (State.RUNNING, WORKER, 1)
        assert (job.started_at, job.lease_until) == (T0 + 1, T0 + 1 + 45 * SECOND)

    def test_a_claim_gives_the_job_as_it_is_kept(self, store: Store) -> None:
        job = running_job(store, key="k", payload=b"\x00", priority=3)
        assert read(store, job.id) == job

    def test_a_claimed_job_is_not_claimed_again(self, store: Store) -> None:
        running_job(store)
        assert claim(store, holder=RIVAL) == []

    def test_a_claim_takes_no_more_than_it_wants(self, store: Store) -> None:
        made = add(store, *[a_job() for _ in range(5)])
        assert ids(claim(store, 3)) == made[:3]
        assert ids(claim(store, 3)) == made[3:]

    def test_wanting_nothing_claims_nothing(self, store: Store) -> None:
        job_id = add_job(store)
        assert claim(store, 0) == []
        assert read(store, job_id).state is State.QUEUED

    def test_an_empty_store_gives_nothing(self, store: Store) -> None:
        reply = store.exchange(Exchange(holder=WORKER, want=10), now=T0)
        assert (reply.now, reply.claimed, reply.refused, reply.next_due_at) == (T0, [], [], None)

    def test_the_lease_number_rises_at_every_claim(self, store: Store) -> None:
        job = running_job(store)
        numbers = [job.lease_no]
        for holder in (RIVAL, WORKER):
            settle_job(store, job, Returned(), holder=job.holder or "")
            job = claim_one(store, holder=holder)
            numbers.append(job.lease_no)
        assert numbers == [1, 2, 3]

    def test_a_claim_sees_what_it_has_just_given_back(self, store: Store) -> None:
        job = running_job(store)
        settle_job(store, job, Returned(), now=T0 + 1)
        again = claim_one(store, now=T0 + 1)
        assert (again.id, again.lease_no) == (job.id, 2)


class TestClaimOrder:
    def test_higher_priority_comes_first(self, store: Store) -> None:
        low, high, normal = add(store, a_job(priority=-10), a_job(priority=10), a_job())
        assert ids(claim(store, 3)) == [high, normal, low]

    def test_within_a_priority_the_older_comes_first(self, store: Store) -> None:
        made = [add_job(store, priority=5, now=T0 + n) for n in range(5)]
        assert ids(claim(store, 5, now=T0 + 5)) == made

    def test_priorities_that_differ_by_one_are_kept_apart(self, store: Store) -> None:
        made = add(store, *[a_job(priority=priority) for priority in range(-100, 101)])
        assert ids(claim(store, 201)) == made[::-1]

    def test_several_queues_have_one_order(self, store: Store) -> None:
        made = add(store, *[a_job(queue=queue) for queue in ("a", "b", "b", "a", "c", "a")])
        assert ids(claim(store, 6, queues=("c", "b", "a"))) == made

    def test_priority_counts_across_queues(self, store: Store) -> None:
        low, high, other = add(store, a_job(queue="a"), a_job(queue="b", priority=1), a_job(queue="a", priority=2))
        assert ids(claim(store, 2, queues=("a", "b"))) == [other, high]
        assert ids(claim(store, 2, queues=("a", "b"))) == [low]

    def test_other_queues_are_left_alone(self, store: Store) -> None:
        mine, _ = add(store, a_job(queue="mail"), a_job(queue="mail.bulk"))
        assert ids(claim(store, 5, queues=("mail",))) == [mine]

    def test_a_queue_named_twice_counts_once(self, store: Store) -> None:
        made = add(store, a_job(), a_job())
        assert ids(claim(store, 5, queues=("default", "default"))) == made

    def test_a_job_that_was_given_back_keeps_its_place(self, store: Store) -> None:
        first = running_job(store)
        second = add_job(store)
        settle_job(store, first, Returned())
        assert ids(claim(store, 2)) == [first.id, second]

    def test_a_retry_stands_where_its_age_puts_it(self, store: Store) -> None:
        first = running_job(store)
        second = add_job(store)
        settle_job(store, first, Failed("boom"), retries=1)
        assert ids(claim(store, 2, now=T0 + MINUTE)) == [first.id, second]


class TestPausedQueues:
    def test_a_paused_queue_gives_nothing(self, store: Store) -> None:
        add_job(store)
        store.pause_queue("default", paused=True)
        assert claim(store) == []

    def test_a_paused_queue_takes_jobs(self, store: Store) -> None:
        store.pause_queue("default", paused=True)
        assert read(store, add_job(store)).state is State.QUEUED

    def test_a_resumed_queue_continues_in_order(self, store: Store) -> None:
        store.pause_queue("default", paused=True)
        made = add(store, a_job(), a_job())
        store.pause_queue("default", paused=False)
        assert ids(claim(store, 2)) == made

    def test_the_other_queues_go_on(self, store: Store) -> None:
        _, mine = add(store, a_job(queue="a"), a_job(queue="b"))
        store.pause_queue("a", paused=True)
        assert ids(claim(store, 5, queues=("a", "b"))) == [mine]

    def test_a_running_job_of_a_paused_queue_settles(self, store: Store) -> None:
        job = running_job(store)
        store.pause_queue("default", paused=True)
        assert settle_job(store, job, Returned()) == []

    def test_a_job_in_a_paused_queue_is_not_the_next_due(self, store: Store) -> None:
        """If it were, workers would poll without a pause."""
        add_job(store, delay=MINUTE)
        store.pause_queue("default", paused=True)
        reply = store.exchange(Exchange(holder=WORKER, want=1), now=T0 + HOUR)
        assert (reply.claimed, reply.next_due_at) == ([], None)


class TestPromotion:
    def test_a_scheduled_job_waits_for_its_time(self, store: Store) -> None:
        add_job(store, delay=MINUTE)
        assert claim(store, now=T0 + MINUTE - 1) == []

    def test_a_scheduled_job_is_claimed_at_its_instant(self, store: Store) -> None:
        job_id = add_job(store, delay=MINUTE)
        assert ids(claim(store, now=T0 + MINUTE)) == [job_id]

    def test_a_promotion_is_an_entry(self, store: Store) -> None:
        job_id = add_job(store, delay=MINUTE)
        job = claim_one(store, now=T0 + HOUR)
        assert (job.queued_at, job.started_at) == (T0 + HOUR, T0 + HOUR)
        assert history(store, job_id) == [State.SCHEDULED, State.QUEUED, State.RUNNING]

    def test_a_due_job_is_not_overtaken_by_what_was_queued_after_it(self, store: Store) -> None:
        due = add_job(store, delay=MINUTE)
        later = add_job(store)
        assert ids(claim(store, 2, now=T0 + MINUTE)) == [due, later]

    def test_a_due_job_stands_by_its_priority(self, store: Store) -> None:
        low = add_job(store)
        high = add_job(store, priority=1, delay=MINUTE)
        assert ids(claim(store, now=T0 + MINUTE)) == [high]
        assert ids(claim(store, now=T0 + MINUTE)) == [low]

    def test_a_snoozed_job_is_claimed_when_it_wakes(self, store: Store) -> None:
        job = running_job(store)
        settle_job(store, job, Snoozed(MINUTE))
        assert claim(store, now=T0 + MINUTE - 1) == []
        assert ids(claim(store, now=T0 + MINUTE)) == [job.id]

    def test_one_claim_promotes_a_bounded_number_and_the_next_continues(self, store: Store) -> None:
        made = add(store, *[a_job(delay=SECOND) for _ in range(MOST_PROMOTED + 50)])
        ask = Exchange(holder=WORKER, want=len(made))
        first = store.exchange(ask, now=T0 + MINUTE)
        second = store.exchange(ask, now=T0 + MINUTE)
        assert len(first.claimed) == MOST_PROMOTED
        assert first.next_due_at is not None
        assert first.next_due_at <= T0 + MINUTE
        assert ids([*first.claimed, *second.claimed]) == made
        assert second.next_due_at is None

    def test_that_number_is_for_all_queues_of_the_claim_and_the_earliest_due_are_made_ready(self, store: Store) -> None:
        times = [T0 + n for n in range(1, MOST_PROMOTED + 51)]
        made = add(store, *[a_job(queue="ab"[at % 2], run_at=at, priority=-(at % 3)) for at in reversed(times)])[::-1]
        ask = Exchange(holder=WORKER, want=len(made), queues=("b", "a"))
        first, second = (ids(store.exchange(ask, now=T0 + MINUTE).claimed) for _ in range(2))
        assert set(first) == set(made[:MOST_PROMOTED])
        assert set(second) == set(made[MOST_PROMOTED:])

    def test_as_many_jobs_that_schedules_created_in_advance_are_decided_on(self, store: Store) -> None:
        for name in ("a", "b"):
            add_schedule(store, name, trigger="every 1s", queue=name, overlap="allow", grace=HOUR, lookahead=5 * MINUTE)
        while any(fired.jobs for fired in fire_due(store, now=T0 + 1)):
            pass
        made = [job.run_at for job in all_jobs(store)]
        ask = Exchange(holder=WORKER, want=len(made), queues=("a", "b"))
        first = store.exchange(ask, now=T0 + 5 * MINUTE).claimed
        assert len(made) > MOST_PROMOTED
        assert sorted(job.run_at for job in first) == sorted(made)[:MOST_PROMOTED]


class TestNextDue:
    @pytest.mark.parametrize("want", [0, 1])
    def test_the_earliest_scheduled_job_is_named(self, store: Store, want: int) -> None:
        add(store, a_job(delay=HOUR), a_job(delay=MINUTE), a_job(delay=2 * HOUR))
        reply = store.exchange(Exchange(holder=WORKER, want=want), now=T0)
        assert reply.next_due_at == T0 + MINUTE

    def test_only_the_queues_asked_for_count(self, store: Store) -> None:
        add(store, a_job(queue="a", delay=MINUTE), a_job(queue="b", delay=HOUR))
        reply = store.exchange(Exchange(holder=WORKER, want=1, queues=("b",)), now=T0)
        assert reply.next_due_at == T0 + HOUR

    def test_the_earliest_of_several_queues_counts(self, store: Store) -> None:
        add(store, a_job(queue="a", delay=MINUTE), a_job(queue="b", delay=HOUR))
        reply = store.exchange(Exchange(holder=WORKER, want=1, queues=("b", "a")), now=T0)
        assert reply.next_due_at == T0 + MINUTE

    def test_ready_and_running_jobs_are_not_due_later(self, store: Store) -> None:
        add(store, a_job(), a_job())
        claim(store)
        assert store.exchange(Exchange(holder=WORKER), now=T0).next_due_at is None

    def test_a_retry_is_due_after_its_pause(self, store: Store) -> None:
        job = running_job(store)
        settle_job(store, job, Failed("boom"), retries=1)
        reply = store.exchange(Exchange(holder=WORKER, want=1), now=T0)
        assert reply.next_due_at == T0 + 10 * SECOND


class TestClaimingAhead:
    """An idle worker may claim jobs shortly before they are due, and starts them on time."""

    def ask(self, store: Store, ahead: int, *, want: int = 9, now: int = T0) -> Exchanged:
        return store.exchange(Exchange(holder=WORKER, want=want, lease_for=LEASE, ahead=ahead), now=now)

    def test_what_is_due_within_that_time_is_claimed(self, store: Store) -> None:
        job_id, later = add_job(store, run_at=T0 + 10), add_job(store, run_at=T0 + 11)
        answer = self.ask(store, 10)
        assert (ids(answer.claimed), answer.next_due_at, answer.now) == ([job_id], T0 + 11, T0)
        assert read(store, later).state is State.SCHEDULED

    def test_it_starts_at_its_time(self, store: Store) -> None:
        job_id = add_job(store, run_at=T0 + 10)
        (job,) = self.ask(store, 10).claimed
        assert (job.run_at, job.queued_at, job.started_at) == (T0 + 10, T0 + 10, T0 + 10)
        assert (job.lease_until, job.lease_no) == (T0 + LEASE, 1)
        kept = read(store, job_id)
        assert (kept.queued_at, kept.started_at, kept.lease_until) == (T0 + 10, T0 + 10, T0 + LEASE)
        assert succeed(store, job, now=T0 + 20) == []
        assert history(store, job_id) == [State.SCHEDULED, State.QUEUED, State.RUNNING, State.SUCCEEDED]

    def test_who_does_not_ask_for_it_gets_none(self, store: Store) -> None:
        add_job(store, run_at=T0 + 10)
        answer = self.ask(store, 0)
        assert (answer.claimed, answer.next_due_at) == ([], T0 + 10)

    def test_what_is_ready_stands_in_one_order_with_it(self, store: Store) -> None:
        soon = add_job(store, run_at=T0 + 10, priority=5)
        ready = [add_job(store, priority=priority) for priority in (9, 1)]
        claimed = self.ask(store, 10).claimed
        assert ids(claimed) == [ready[0], soon, ready[1]]
        assert [job.started_at for job in claimed] == [T0, T0 + 10, T0]

    def test_many_of_them_are_claimed_and_each_starts_at_its_time(self, store: Store) -> None:
        jobs = [add_job(store, run_at=T0 + 1 + n) for n in range(30)]
        claimed = self.ask(store, 25, want=100).claimed
        assert ids(claimed) == jobs[:25]
        assert [(job.queued_at, job.started_at) for job in claimed] == [(T0 + 1 + n, T0 + 1 + n) for n in range(25)]
        kept = store.get_jobs(ids(claimed))
        assert [(job.queued_at, job.started_at) for job in kept] == [(T0 + 1 + n, T0 + 1 + n) for n in range(25)]

    def test_of_many_a_worker_claims_no_more_than_it_wants(self, store: Store) -> None:
        jobs = [add_job(store, run_at=T0 + 10) for _ in range(12)]
        assert ids(self.ask(store, 10, want=5).claimed) == jobs[:5]
        assert ids(self.ask(store, 0, want=9, now=T0 + 10).claimed) == jobs[5:]

    def test_an_attempt_after_a_failure_is_claimed_so_too(self, store: Store) -> None:
        job = running_job(store)
        settle_job(store, job, Failed("boom"), retries=1)
        (again,) = self.ask(store, SECOND, now=T0 + 9 * SECOND + SECOND // 2).claimed
        assert (again.lease_no, again.attempts, again.started_at) == (2, 1, T0 + 10 * SECOND)
        assert read(store, job.id).started_at == T0 + 10 * SECOND

    def test_a_schedules_job_is_claimed_so_too(self, store: Store) -> None:
        add_schedule(store)
        fire_early(store, T0 + MINUTE, now=T0 + MINUTE - 20)
        (job,) = self.ask(store, 20, now=T0 + MINUTE - 20).claimed
        assert (job.fire_at, job.started_at) == (T0 + MINUTE, T0 + MINUTE)
        assert succeed(store, job, now=T0 + MINUTE + 1) == []
        assert read_schedule(store).last.job_id == job.id

    def test_a_job_created_early_is_decided_at_its_time(self, store: Store) -> None:
        add_schedule(store, lookahead=HOUR)
        fire_due(store, now=T0 + 1)
        assert self.ask(store, MINUTE, now=T0 + 1).claimed == []
        assert [job.fire_at for job in self.ask(store, 0, now=T0 + MINUTE).claimed] == [T0 + MINUTE]

    def test_a_paused_queue_gives_none(self, store: Store) -> None:
        add_job(store, run_at=T0 + 10)
        store.pause_queue("default", paused=True)
        assert self.ask(store, 10).claimed == []

    def test_one_that_is_given_back_can_be_claimed_again(self, store: Store) -> None:
        add_job(store, run_at=T0 + 10)
        (job,) = self.ask(store, 10).claimed
        settle_job(store, job, Returned())
        assert ids(self.ask(store, 0).claimed) == [job.id]
