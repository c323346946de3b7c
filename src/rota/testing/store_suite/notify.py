"""Tests notifications: a listener is woken by new work. It may also wake without any, which is not tested."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from rota.model.jobs.job import State
from rota.model.micros import SECOND
from rota.model.schedules.edit import disable
from rota.store.contract import Exchange
from rota.testing.store_suite.builders import LEASE, MINUTE, RIVAL, T0, WORKER, a_job
from rota.testing.store_suite.steps import (
    add,
    add_job,
    add_schedule,
    change_schedule,
    claim,
    fire,
    history,
    ids,
    queue_info,
    read,
    succeed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rota.model.jobs.job import Job
    from rota.store.contract import Channel, Listener, Store

PATIENCE = 60.0  # seconds; a notification that comes takes none of them


@contextmanager
def listener_on(store: Store, channel: Channel) -> Iterator[Listener]:
    listener = store.listen(channel)
    try:
        yield listener
    finally:
        listener.close()


def is_woken(listener: Listener, act: Callable[[], object]) -> bool:
    """Whether a listener that waits in another thread is woken by what this thread does."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(listener.wait, PATIENCE)
        act()
        return waiting.result()


class TestListeners:
    def test_a_waiting_listener_is_woken_by_an_added_job(self, store: Store) -> None:
        with listener_on(store, "jobs") as listener:
            assert is_woken(listener, lambda: add_job(store))

    def test_a_waiting_listener_is_woken_by_a_fired_job(self, store: Store) -> None:
        add_schedule(store)
        with listener_on(store, "jobs") as listener:
            assert is_woken(listener, lambda: fire(store, now=T0 + MINUTE))

    def test_a_waiting_listener_is_woken_by_a_new_schedule(self, store: Store) -> None:
        with listener_on(store, "schedules") as listener:
            assert is_woken(listener, lambda: add_schedule(store))

    def test_a_waiting_listener_is_woken_by_an_edited_schedule(self, store: Store) -> None:
        schedule = add_schedule(store)
        with listener_on(store, "schedules") as listener:
            assert is_woken(listener, lambda: change_schedule(store, disable(schedule, T0)))

    def test_a_notification_before_the_wait_ends_it(self, store: Store) -> None:
        """A job may be added after an empty claim and before the wait."""
        with listener_on(store, "jobs") as listener:
            add_job(store)
            assert listener.wait(PATIENCE)

    def test_every_listener_is_woken(self, store: Store) -> None:
        with listener_on(store, "jobs") as first, listener_on(store, "jobs") as second:
            add_job(store)
            assert first.wait(PATIENCE)
            assert second.wait(PATIENCE)

    def test_a_listener_can_be_woken_by_hand(self, store: Store) -> None:
        with listener_on(store, "jobs") as listener:
            assert is_woken(listener, listener.wake)

    def test_a_closed_listener_disturbs_nobody(self, store: Store) -> None:
        with listener_on(store, "jobs") as listener:
            store.listen("jobs").close()
            add_job(store)
            assert listener.wait(PATIENCE)

    def test_a_wait_is_over_when_its_time_is(self, store: Store) -> None:
        with listener_on(store, "jobs") as listener:
            assert listener.wait(0.001) in {True, False}


def claim_idle(
    store: Store,
    listener: Listener | None = None,
    *,
    holder: str = WORKER,
    queues: tuple[str, ...] = ("default",),
    want: int = 5,
    now: int = T0,
) -> list[Job]:
    """The jobs of an idle worker: what its listener received, else what an exchange claims."""
    claimed = [] if listener is None else listener.take_claimed(holder)
    if claimed:
        return claimed
    request = Exchange(holder=holder, queues=queues, want=want, lease_for=LEASE, is_idle=True)
    return store.exchange(request, now=now).claimed


@pytest.fixture
def listener(store: Store) -> Iterator[Listener]:
    with listener_on(store, "jobs") as opened:
        yield opened


class TestIdleWorkers:
    """A job that is added while idle workers listen is claimed once, whether the store claims it for one or not."""

    @pytest.mark.parametrize("by", ["listener", "exchange", "exchange at once"])
    def test_it_is_claimed_once(self, store: Store, listener: Listener, by: str) -> None:
        assert claim_idle(store) == []
        job_id = add_job(store)
        if by != "exchange at once":
            assert listener.wait(PATIENCE)
        assert ids(claim_idle(store, listener if by == "listener" else None)) == [job_id]
        assert claim_idle(store, listener) == claim(store, 5, holder=RIVAL) == []

    def test_it_has_a_lease_and_ends_as_any_other(self, store: Store, listener: Listener) -> None:
        claim_idle(store)
        job_id = add_job(store, now=T0 + 1)
        assert listener.wait(PATIENCE)
        (job,) = claim_idle(store, listener, now=T0 + 1)
        stored = read(store, job_id)
        assert (job.state, job.holder, job.lease_no, job.lease_until) == (State.RUNNING, WORKER, 1, T0 + 1 + LEASE)
        assert (stored.state, stored.holder, stored.lease_no) == (State.RUNNING, WORKER, 1)
        assert queue_info(store).counts == {State.RUNNING: 1}
        assert succeed(store, job, now=T0 + 2) == []
        assert history(store, job_id) == [State.QUEUED, State.RUNNING, State.SUCCEEDED]

    def test_of_several_idle_workers_one_gets_it(self, store: Store, listener: Listener) -> None:
        workers = [WORKER, RIVAL, "worker-3"]
        for holder in workers:
            claim_idle(store, holder=holder)
        job_id = add_job(store)
        assert listener.wait(PATIENCE)
        assert ids(job for holder in workers * 2 for job in claim_idle(store, listener, holder=holder)) == [job_id]

    def test_each_of_several_jobs_is_claimed_once(self, store: Store, listener: Listener) -> None:
        workers = [WORKER, RIVAL]
        for holder in workers:
            claim_idle(store, holder=holder)
        added = [add_job(store) for _ in range(6)]
        assert listener.wait(PATIENCE)
        claimed = [job for holder in workers * 3 for job in claim_idle(store, listener, holder=holder)]
        assert sorted(ids(claimed)) == sorted(added)

    def test_a_worker_gets_no_more_than_it_wants(self, store: Store) -> None:
        """Without a listener, it gets the job by its next exchange."""
        with listener_on(store, "jobs"):
            claim_idle(store, want=1)
            added = [add_job(store), add_job(store)]
        first = claim_idle(store, want=1)
        assert len(first) == 1
        assert sorted(ids([*first, *claim_idle(store, want=1)])) == sorted(added)

    def test_a_queue_that_is_paused_meanwhile_gives_nothing(self, store: Store, listener: Listener) -> None:
        queues = ("default", "mail")
        claim_idle(store, queues=queues)
        store.pause_queue("mail", paused=True)
        claim_idle(store, queues=queues)
        job_id = add_job(store, queue="mail")
        assert read(store, job_id).state is State.QUEUED
        assert claim_idle(store, queues=queues) == []
        store.pause_queue("mail", paused=False)
        assert listener.wait(PATIENCE)
        assert ids(claim_idle(store, queues=queues)) == [job_id]

    def test_a_worker_of_other_queues_gets_nothing(self, store: Store, listener: Listener) -> None:
        claim_idle(store, queues=("mail",))
        job_id = add_job(store)
        assert listener.wait(PATIENCE)
        assert claim_idle(store, queues=("mail",)) == []
        assert ids(claim(store, holder=RIVAL)) == [job_id]

    def test_a_worker_that_wants_no_more_gets_nothing(self, store: Store, listener: Listener) -> None:
        claim_idle(store)
        claim_idle(store, want=0)
        job_id = add_job(store)
        assert listener.wait(PATIENCE)
        assert claim_idle(store, want=0) == []
        assert ids(claim(store, holder=RIVAL)) == [job_id]

    def test_a_worker_that_listens_no_more_gets_nothing(self, store: Store) -> None:
        before = set(threading.enumerate())
        with listener_on(store, "jobs"):
            claim_idle(store)
        for thread in set(threading.enumerate()) - before:
            if thread.name == "rota-listener":  # it ends when the server has answered that the subscription ended
                thread.join(PATIENCE)
        job_id = add_job(store)
        assert ids(claim(store, holder=RIVAL)) == [job_id]

    def test_a_worker_with_jobs_leaves_it_to_others(self, store: Store, listener: Listener) -> None:
        claim_idle(store)
        claim(store, 5)  # it has jobs now
        job_id = add_job(store)
        assert listener.wait(PATIENCE)
        assert read(store, job_id).state is State.QUEUED
        assert ids(claim(store, 5, holder=RIVAL)) == [job_id]

    def test_jobs_that_came_before_to_another_queue_go_first(self, store: Store, listener: Listener) -> None:
        queues = ("default", "mail")
        claim_idle(store, queues=queues)
        early = add(store, a_job(queue="mail"), a_job(queue="mail"))
        late = add_job(store)
        assert listener.wait(PATIENCE)
        assert ids(claim_idle(store, listener, queues=queues)) == [*early, late]

    def test_what_is_due_first_goes_first(self, store: Store, listener: Listener) -> None:
        due = add_job(store, delay=SECOND)
        claim_idle(store)
        late = add_job(store, now=T0 + SECOND)
        assert listener.wait(PATIENCE)
        assert ids(claim_idle(store, listener, now=T0 + SECOND)) == [due, late]

    def test_a_key_holds(self, store: Store, listener: Listener) -> None:
        claim_idle(store)
        job_id = add_job(store, key="only")
        assert listener.wait(PATIENCE)
        (job,) = claim_idle(store, listener)
        assert job.key == "only"
        assert add_job(store, key="only") == job_id
        succeed(store, job)
        assert add_job(store, key="only") != job_id

    def test_a_lease_that_expires_is_found(self, store: Store, listener: Listener) -> None:
        """The worker may die before it learns of the job."""
        claim_idle(store)
        job_id = add_job(store)
        assert listener.wait(PATIENCE)
        claim_idle(store)
        assert ids(store.expired_jobs(5, now=T0 + LEASE + 1)) == [job_id]

    def test_its_end_leaves_the_other_leases_of_the_worker(self, store: Store, listener: Listener) -> None:
        claim_idle(store)
        add_job(store)
        assert listener.wait(PATIENCE)
        (first,) = claim_idle(store, listener)
        second = add_job(store)
        claim(store)
        succeed(store, first)
        assert ids(store.expired_jobs(5, now=T0 + LEASE + 1)) == [second]
