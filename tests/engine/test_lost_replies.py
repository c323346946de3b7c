"""Lost replies: the store did what it was asked and the answer never came. Asking again changes nothing."""

from __future__ import annotations

import threading
import time

import pytest

from engine.stage import NOON, PATIENCE
from engine.test_scheduler import add_broken
from rota import Retry, Snooze, every
from rota.model.jobs.job import NewJob
from rota.model.micros import SECOND


@pytest.fixture
def work(any_stage):
    ran: list[int] = []

    @any_stage.app.task(name="engine.work")
    def work(number: int) -> int:
        ran.append(number)
        return number

    work.ran = ran
    return work


def wait_for_reports(worker, number: int) -> None:
    """Until so many runs have ended: the next exchange reports them."""
    deadline = time.monotonic() + PATIENCE
    while len(worker.client._ended) < number:
        assert time.monotonic() < deadline, "the runs never ended"
        worker._event.wait(0.01)


def turn_past_faults(stage, worker, is_done) -> None:
    """As the loop does it: faults end in a pause, here in the next turn."""
    worker._guarded_turn()
    while not is_done():
        worker._event.wait(0.05)
        worker._guarded_turn()
    assert "service.failed" not in stage.names()


def test_a_settled_job_whose_reply_was_lost_stays_settled(any_stage, work):
    jobs = [work.enqueue(number) for number in range(3)]
    worker = any_stage.a_worker()
    worker.turn()
    wait_for_reports(worker, 3)
    any_stage.store.fail_after("exchange", 2)
    turn_past_faults(any_stage, worker, lambda: not worker.runs)
    assert [job.refresh().state for job in jobs] == ["succeeded"] * 3
    assert sorted(work.ran) == [0, 1, 2]
    assert [job.attempts for job in jobs] == [1, 1, 1]
    assert all(len(any_stage.app.jobs.history(job.id)) == 3 for job in jobs)
    assert any_stage.still.recount() == {}
    assert any_stage.names("job.succeeded", "job.refused") == ["job.succeeded"] * 3


def test_a_job_that_is_not_kept_and_whose_reply_was_lost_has_succeeded(any_stage):
    job = any_stage.app.task(name="work", keep=False)(lambda: None).enqueue()
    worker = any_stage.a_worker()
    worker.turn()
    wait_for_reports(worker, 1)
    any_stage.store.fail_after("exchange")
    turn_past_faults(any_stage, worker, lambda: not worker.runs)
    assert any_stage.names("job.succeeded", "job.refused") == ["job.succeeded"]
    assert any_stage.app.jobs.list().items == [], job


@pytest.mark.parametrize("signal", [ValueError("no stamp"), Retry(after="1h"), Snooze(after="1h")])
def test_a_retry_whose_reply_was_lost_spends_one_attempt(any_stage, signal):
    @any_stage.app.task
    def fail() -> None:
        raise signal

    job = fail.enqueue()
    worker = any_stage.a_worker()
    worker.turn()
    wait_for_reports(worker, 1)
    any_stage.store.fail_after("exchange")
    turn_past_faults(any_stage, worker, lambda: not worker.runs)
    assert (job.refresh().state, job.attempts) == ("scheduled", 1)
    assert any_stage.names("job.refused") == []


def test_a_claim_whose_reply_was_lost_runs_out_and_is_done_by_others(stage):
    ran = []

    @stage.app.task
    def work() -> None:
        ran.append(1)

    job = work.enqueue()
    worker = stage.a_worker()
    stage.store.fail_after("exchange")
    worker._guarded_turn()
    assert job.refresh().state == "running"
    keeper = stage.a_keeper(worker)
    for _ in range(4):
        stage.skip(10)
        keeper.turn()
        worker._guarded_turn()
    assert ran == []
    stage.a_rescuer().turn()
    assert job.refresh().state == "queued"
    stage.work_off(worker)
    assert (job.refresh().state, ran) == ("succeeded", [1])


def test_a_renewal_whose_reply_was_lost_is_repeated_and_the_job_goes_on(stage, gate):
    begun = threading.Event()

    @stage.app.task
    def hold() -> str:
        begun.set()
        gate.wait(PATIENCE)
        return "done"

    job = hold.enqueue()
    worker = stage.a_worker()
    keeper = stage.a_keeper(worker)
    worker.turn()
    assert begun.wait(PATIENCE)
    stage.skip(11)
    stage.store.fail_after("extend_leases")
    keeper._guarded_turn()
    stage.skip(1)
    keeper._guarded_turn()
    assert job.id in worker.runs
    gate.set()
    stage.work_off(worker)
    assert job.refresh().state == "succeeded"
    assert "job.lost" not in stage.names()


def test_a_firing_whose_reply_was_lost_makes_no_second_job(stage):
    @stage.app.task
    def tick() -> None: ...

    stage.app.schedules.put("soon", tick.job(), every("10s"), overlap="allow")
    scheduler = stage.a_scheduler()
    stage.skip(10)
    stage.store.fail_after("fire")
    assert scheduler._guarded_turn() > 0
    scheduler._guarded_turn()
    assert [job.record.fire_at for job in stage.app.jobs.list().items] == [NOON + 10 * SECOND]
    stage.skip(10)
    scheduler._guarded_turn()
    assert len(stage.app.jobs.list().items) == 2


def test_an_addition_that_is_repeated_with_the_same_id_makes_one_job(any_stage):
    store = any_stage.store
    store.fail_after("add_jobs")
    new = NewJob(id="job-1", task="engine.work", payload=b"[]")
    with pytest.raises(Exception, match="the reply was lost"):
        store.add_jobs([new])
    (added,) = store.add_jobs([new])
    assert (added.id, added.existed) == ("job-1", True)
    assert len(any_stage.app.jobs.list().items) == 1


def test_setting_a_broken_schedule_aside_may_be_repeated(stage):
    add_broken(stage)
    scheduler = stage.a_scheduler()
    stage.store.fail_after("edit_schedules")
    scheduler._guarded_turn()
    scheduler._guarded_turn()
    assert stage.app.schedules.get("broken").problem
    assert scheduler._guarded_turn() > 0


def test_log_lines_whose_reply_was_lost_are_never_missing(any_stage, captured):
    @any_stage.app.task
    def talk() -> None:
        print("one")  # noqa: T201
        print("two")  # noqa: T201

    job = talk.enqueue()
    worker = any_stage.a_worker()
    worker.turn()
    any_stage.store.fail_after("append_logs")
    turn_past_faults(any_stage, worker, lambda: not worker.runs)
    texts = [line.text for line in any_stage.app.jobs.logs(job.id)]
    assert texts[-2:] == ["one", "two"]
    assert captured


def test_a_lost_reply_of_the_last_call_before_a_stop_hands_nothing_out_twice(any_stage, gate):
    begun = threading.Event()

    @any_stage.app.task
    def hold() -> None:
        begun.set()
        gate.wait(PATIENCE)

    job = hold.enqueue()
    worker = any_stage.a_worker()
    worker.turn()
    assert begun.wait(PATIENCE)
    worker.drain()
    worker.return_running()
    any_stage.store.fail_after("exchange")
    turn_past_faults(any_stage, worker, worker.drained.is_set)
    assert (job.refresh().state, job.record.deaths, job.record.failures) == ("queued", 0, 0)


def test_a_lease_keeper_says_once_that_the_store_is_away_and_once_that_it_is_back(stage, gate):
    """Between two renewals it asks the store nothing, which does not show that the store is back."""

    @stage.app.task
    def hold() -> None:
        gate.wait(PATIENCE)

    hold.enqueue()
    worker = stage.a_worker()
    keeper = stage.a_keeper(worker)
    worker.turn()
    stage.store.fail("extend_leases", 3)
    stage.skip(2)
    for _ in range(6):
        keeper._guarded_turn()
    assert stage.names("store.") == ["store.unavailable", "store.back"]
    assert stage.store.calls["extend_leases"] == 4
    gate.set()
    stage.work_off(worker)
