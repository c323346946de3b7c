"""Tests seals: a sealed store accepts no new work, and the jobs that run there can end."""

from __future__ import annotations

from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from rota.errors import StoreSealed
from rota.model.jobs.job import State
from rota.model.jobs.outcome import Failed, Succeeded
from rota.model.jobs.settle import cancel, settle
from rota.model.schedules.edit import disable
from rota.store.contract import Exchange, Retention, Seal
from rota.testing.store_suite.builders import DAY, LEASE, MINUTE, T0, WORKER, a_job, a_line, a_node, a_policy
from rota.testing.store_suite.furnished import LATER, QUEUES, everything, furnish_by_load
from rota.testing.store_suite.steps import (
    FAR,
    add_job,
    add_schedule,
    all_jobs,
    change_schedule,
    claim,
    fire,
    ids,
    new_schedule,
    planned,
    read,
    read_schedule,
    rescue_expired,
    running_job,
    settle_job,
    succeed,
    succeeded_job,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.jobs.job import Job
    from rota.store.contract import Store

SEAL = Seal(target="postgresql database jobs", id="move-1", at=T0)


def _cancel_one(store: Store) -> None:
    queued = next(job for job in all_jobs(store) if job.state is State.QUEUED)
    store.change_jobs([cancel(queued, LATER, "not needed")], now=LATER)


def _delete_ended(store: Store) -> None:
    store.delete_jobs([job.id for job in all_jobs(store) if job.state.is_final], now=LATER)


def _fire_one(store: Store) -> None:
    store.fire([planned(store, "recorded", now=LATER)], now=LATER)


def _disable_one(store: Store) -> None:
    store.edit_schedules([disable(read_schedule(store, "recorded"), LATER) or new_schedule("never")], now=LATER)


REFUSED: dict[str, Callable[[Store], object]] = {
    "adding a job": lambda store: store.add_jobs([a_job()], now=LATER),
    "adding a job whose key is taken": lambda store: store.add_jobs([a_job(key="taken")], now=LATER),
    "adding a schedule": lambda store: store.edit_schedules([new_schedule("new")], now=LATER),
    "editing a schedule": _disable_one,
    "firing": _fire_one,
    "claiming": lambda store: claim(store, 5, queues=QUEUES, now=LATER),
    "claiming where nothing waits": lambda store: claim(store, queues=("nothing",), now=LATER),
    "cancelling by hand": _cancel_one,
    "deleting by hand": _delete_ended,
    "pausing a queue": lambda store: store.pause_queue("default", paused=True),
    "resuming a queue": lambda store: store.pause_queue("paused", paused=False),
    "pruning": lambda store: store.prune(Retention(), 100, now=FAR),
    "taking a free lock": lambda store: store.change_lock("free", "acquire", "mine", MINUTE, now=LATER),
}


class TestSealing:
    def test_a_new_store_is_not_sealed(self, store: Store) -> None:
        assert store.sealed() is None

    @pytest.mark.parametrize("seal", [SEAL, Seal(target="x", source="y", id="z", is_done=True, at=FAR)])
    def test_a_seal_is_kept_as_it_was_given(self, store: Store, seal: Seal) -> None:
        store.seal(seal)
        assert store.sealed() == seal

    def test_a_later_seal_takes_the_place_of_an_earlier_one(self, store: Store) -> None:
        store.seal(SEAL)
        store.seal(Seal(target=SEAL.target, is_done=True))
        assert store.sealed() == Seal(target=SEAL.target, is_done=True)

    @pytest.mark.parametrize("act", REFUSED.values(), ids=REFUSED)
    def test_a_sealed_store_refuses_and_changes_nothing_until_it_is_unsealed(
        self, store: Store, act: Callable[[Store], object]
    ) -> None:
        furnish_by_load(store)
        store.seal(SEAL)
        before = everything(store)
        with pytest.raises(StoreSealed) as error:
            act(store)
        assert everything(store) == before
        assert str(error.value) == str(SEAL.refusal(store.describe()))
        store.seal(None)
        act(store)
        assert store.sealed() is None

    @pytest.mark.parametrize(
        ("seal", "words"),
        [
            (SEAL, "is being copied to postgresql database jobs and takes no more work; restart with the URL"),
            (Seal(target="there", is_done=True), "was copied to there; restart with the URL of that store"),
            (Seal(target="here", source="there"), "is being filled from there and takes no work before all is there"),
        ],
    )
    def test_the_refusal_names_the_other_store_and_what_to_do(self, store: Store, seal: Seal, words: str) -> None:
        store.seal(seal)
        with pytest.raises(StoreSealed) as error:
            store.add_jobs([a_job()], now=T0)
        assert words in str(error.value)
        assert store.describe() in str(error.value)

    def test_nothing_is_added_once_a_seal_is_there(self, store: Store) -> None:
        """Callers add jobs while the store is sealed: each job is accepted before the seal, or refused."""
        accepted: list[str] = []
        begun = Event()

        def add_until_refused() -> None:
            try:
                while True:
                    accepted.append(store.add_jobs([a_job()])[0].id)
                    begun.set()
            except StoreSealed:
                return

        rivals = [Thread(target=add_until_refused) for _ in range(3)]
        for rival in rivals:
            rival.start()
        assert begun.wait(30)
        store.seal(SEAL)
        there = ids(all_jobs(store))
        for rival in rivals:
            rival.join(30)
        assert sorted(there) == sorted(accepted) == sorted(ids(all_jobs(store)))


class TestEndingOnASealedStore:
    @pytest.fixture
    def job(self, store: Store) -> Job:
        job = running_job(store)
        add_job(store)
        store.seal(SEAL)
        return job

    def test_what_runs_is_settled(self, store: Store, job: Job) -> None:
        assert succeed(store, job) == []
        assert read(store, job.id).state is State.SUCCEEDED

    def test_what_fails_waits_for_its_next_attempt(self, store: Store, job: Job) -> None:
        assert settle_job(store, job, Failed("boom"), retries=1) == []
        assert read(store, job.id).state is State.SCHEDULED

    def test_an_exchange_that_also_wants_jobs_settles_nothing(self, store: Store, job: Job) -> None:
        done = settle(job, Succeeded(b"1"), a_policy(), T0, 0.0)
        with pytest.raises(StoreSealed):
            store.exchange(Exchange(holder=WORKER, settled=[done], want=1), now=T0)
        assert read(store, job.id).state is State.RUNNING
        assert store.exchange(Exchange(holder=WORKER, settled=[done]), now=T0).refused == []

    def test_an_exchange_that_wants_nothing_is_answered(self, store: Store, job: Job) -> None:
        assert store.exchange(Exchange(holder=job.holder or ""), now=T0 + 1).claimed == []

    def test_its_lease_is_extended(self, store: Store, job: Job) -> None:
        assert store.extend_leases(WORKER, [(job.id, job.lease_no)], LEASE, now=T0 + 1).lost == []
        assert store.expired_jobs(10, now=T0 + LEASE) == []

    def test_it_is_asked_to_stop(self, store: Store, job: Job) -> None:
        assert store.request_cancels([job.id], "enough", now=T0) == [job.id]
        assert store.extend_leases(WORKER, [], LEASE, now=T0).cancels == {job.id: "enough"}

    def test_it_is_rescued(self, store: Store, job: Job) -> None:
        assert rescue_expired(store, now=T0 + LEASE) == []
        assert read(store, job.id).state is State.QUEUED

    def test_its_lines_and_progress_are_kept(self, store: Store, job: Job) -> None:
        store.append_logs([a_line(job.id, "still here")])
        store.record_progress(WORKER, [(job.id, job.lease_no, "1/2")])
        assert [line.text for line in store.list_logs(job.id)] == ["still here"]
        assert read(store, job.id).progress == "1/2"

    def test_what_waited_for_it_is_released(self, store: Store) -> None:
        job = running_job(store)
        held = add_job(store, waits_for=job.id)
        store.seal(SEAL)
        succeed(store, job)
        assert read(store, held).state is State.QUEUED

    def test_its_schedule_shows_how_it_ended(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        (job,) = claim(store, now=T0 + MINUTE)
        store.seal(SEAL)
        succeed(store, job, now=T0 + MINUTE)
        assert read_schedule(store).last.status == "succeeded"

    def test_its_lock_is_extended_and_released(self, store: Store) -> None:
        store.change_lock("a", "acquire", "mine", MINUTE, now=T0)
        store.seal(SEAL)
        assert store.change_lock("a", "extend", "mine", MINUTE, now=T0 + 1)
        assert store.change_lock("a", "release", "mine", now=T0 + 2)

    def test_nodes_beat_and_leave(self, store: Store) -> None:
        store.seal(SEAL)
        store.record_heartbeat(a_node(), now=T0)
        assert [node.id for node in store.list_nodes()] == ["node-1"]
        store.forget_node("node-1")
        assert store.list_nodes() == []

    def test_everything_can_be_read(self, store: Store) -> None:
        ended = succeeded_job(store)
        change_schedule(store, new_schedule("tick"))
        store.seal(SEAL)
        assert [info.name for info in store.list_queues(now=T0)] == ["default"]
        assert read(store, ended).state is State.SUCCEEDED
        assert [schedule.id for schedule in store.due_schedules(5, now=T0 + DAY).schedules] == ["tick"]
