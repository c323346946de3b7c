"""A worker that is stopped past its lease, and goes on: it must notice that it is late, and change nothing."""

from __future__ import annotations

import signal

import pytest
from freezing import is_locked
from kill_checks import check_all
from kill_harness import wait_until
from killable_app import put_schedules

from every_store import DURABLE

on_every_store = pytest.mark.parametrize("kind", DURABLE)


@pytest.fixture
def job_id(ground):
    (made,) = ground.enqueue("gated_in_its_process")
    return made


def stop_until_another_has_done_it(ground, worker, job_id):
    """SIGSTOP, past the lease, until another worker has run the job to its end."""
    wait_until(lambda: ground.runs_of(job_id) == [1], "the first run")
    ground.freeze(worker)
    other = ground.start("worker")
    wait_until(lambda: ground.runs_of(job_id) == [1, 2], "the second run")
    ground.open_gate(f"gate-{other.pid}")
    wait_until(lambda: ground.states([job_id]) == ["succeeded"], "its end")
    other.signal(signal.SIGTERM)
    assert other.end() == 0
    assert other.has_said(f"job.rescued {job_id}")
    return ground.job(job_id)


def still_works(ground, worker):
    """The late worker goes on with other jobs, and stops cleanly."""
    (later,) = ground.enqueue("quick")
    wait_until(lambda: ground.states([later]) == ["succeeded"], "another job")
    worker.signal(signal.SIGTERM)
    assert worker.end() == 0, worker.output


@on_every_store
def test_a_worker_that_was_stopped_past_its_lease_learns_that_its_job_is_lost(ground, job_id):
    worker = ground.start("worker")
    done = stop_until_another_has_done_it(ground, worker, job_id)
    worker.signal(signal.SIGCONT)
    worker.wait_for(f"job.lost {job_id}")
    ground.open_gate(f"gate-{worker.pid}")
    still_works(ground, worker)
    assert ground.job(job_id) == done
    assert (done.lease_no, done.deaths, done.attempts, done.failures) == (2, 1, 1, 0)
    assert not worker.has_said(f"job.succeeded {job_id}")
    check_all(ground)


@on_every_store
def test_the_late_report_of_a_worker_that_cannot_renew_is_refused(ground, job_id):
    worker = ground.start("worker", hang_at="extend.before")
    done = stop_until_another_has_done_it(ground, worker, job_id)
    ground.open_gate(f"gate-{worker.pid}")
    worker.signal(signal.SIGCONT)
    worker.wait_for(f"job.refused {job_id}")
    assert ground.job(job_id) == done
    assert not worker.has_said(f"job.succeeded {job_id}")
    check_all(ground)


@on_every_store
def test_a_worker_that_ends_its_job_as_it_wakes_is_told_so_either_way(ground, job_id):
    worker = ground.start("worker")
    done = stop_until_another_has_done_it(ground, worker, job_id)
    ground.open_gate(f"gate-{worker.pid}")
    worker.signal(signal.SIGCONT)
    worker.wait_for(f"job.lost {job_id}", f"job.refused {job_id}")
    still_works(ground, worker)
    assert ground.job(job_id) == done
    assert not worker.has_said(f"job.succeeded {job_id}")
    check_all(ground)


@on_every_store
def test_a_late_worker_takes_nothing_from_the_one_that_has_its_job_now(ground, job_id):
    worker = ground.start("worker")
    wait_until(lambda: ground.runs_of(job_id) == [1], "the first run")
    ground.freeze(worker)
    other = ground.start("worker")
    wait_until(lambda: ground.runs_of(job_id) == [1, 2], "the second run")
    ground.open_gate(f"gate-{worker.pid}")
    worker.signal(signal.SIGCONT)
    worker.wait_for(f"job.lost {job_id}", f"job.refused {job_id}")
    held = ground.job(job_id)
    assert (held.state, held.lease_no, held.deaths) == ("running", 2, 1)
    worker.signal(signal.SIGTERM)
    assert worker.end() == 0
    ground.open_gate(f"gate-{other.pid}")
    wait_until(lambda: ground.states([job_id]) == ["succeeded"], "its end")
    assert ground.job(job_id).holder == held.holder
    assert ground.runs_of(job_id) == [1, 2]
    other.signal(signal.SIGTERM)
    assert other.end() == 0
    check_all(ground)


@on_every_store
def test_a_scheduler_that_was_stopped_fires_nothing_twice(ground):
    scheduler = ground.start("scheduler")
    scheduler.wait_for("node.started")
    put_schedules(ground.app, seconds=5)
    wait_until(lambda: fired(ground) >= 1, "the first firing")
    ground.freeze(scheduler)
    other = ground.start("scheduler")
    other.wait_for("node.started")
    wait_until(lambda: is_over(ground), "the last firing, by the other")
    put_schedules(ground.app, seconds=5)
    scheduler.signal(signal.SIGCONT)
    wait_until(lambda: is_over(ground), "the last firing of both")
    for child in (scheduler, other):
        child.signal(signal.SIGTERM)
        assert child.end() == 0
    ground.finish()
    check_all(ground)


def fired(ground):
    return ground.app.schedules.get("tick").run_count


def is_over(ground):
    """Whether every expected time has fired, or was skipped because a busy machine missed it."""
    return all(ground.app.schedules.get(name).next_run is None for name in ("tick", "line"))


@on_every_store
def test_a_process_that_dies_inside_a_transaction_gives_its_lock_back(ground):
    jobs = ground.enqueue("quick", count=5)
    hung = ground.start("worker", hang_at="exchange.before_commit")
    hung.wait_for("hangs at exchange.before_commit")
    assert ground.place.kind != "sqlite" or is_locked(ground.store.path)
    other = ground.start("worker")
    hung.signal(signal.SIGKILL)
    assert hung.end() == -signal.SIGKILL
    wait_until(lambda: set(ground.states(jobs)) == {"succeeded"}, "the work of the other")
    other.signal(signal.SIGTERM)
    assert other.end() == 0
    assert ground.runs_of(jobs[0]) == [1]
    check_all(ground)
