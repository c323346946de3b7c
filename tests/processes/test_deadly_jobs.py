"""Jobs that kill their workers, and enqueuers that die in the middle."""

from __future__ import annotations

import signal
from collections import Counter

import pytest
from kill_checks import check_all, check_file
from kill_harness import wait_until

from rota.model.jobs.payload import unpack_call
from rota.store.sqlite.transaction import AT_ONCE
from rota.testing.simulation.history import all_jobs
from rota.testing.store_suite.checks import check_store

BATCH = 200


def run_until_it_is_parked(ground, job_id, **options):
    """A supervisor starts the worker again whenever it has died."""
    for _ in range(3):
        worker = ground.start("worker", **options)
        assert worker.end() == -signal.SIGKILL
    ground.finish()
    assert ground.states([job_id]) == ["failed"]


def test_a_job_that_kills_its_worker_three_times_is_parked(ground):
    (deadly,) = ground.enqueue("deadly")
    others = ground.enqueue("quick", count=5)
    run_until_it_is_parked(ground, deadly, concurrency=1)
    parked = ground.job(deadly)
    assert (parked.deaths, parked.attempts, parked.failures, parked.lease_no) == (3, 0, 0, 3)
    assert parked.error.startswith("kept as failed: 3 workers died while they ran this job")
    assert ground.runs_of(deadly) == [1, 2, 3]
    assert set(ground.states(others)) == {"succeeded"}
    check_all(ground, may_park=True)


def test_the_jobs_that_its_workers_held_beside_it_are_unharmed(ground):
    (deadly,) = ground.enqueue("deadly")
    others = ground.enqueue("slow", 0.3, count=5)
    run_until_it_is_parked(ground, deadly, concurrency=16)
    assert ground.job(deadly).deaths == 3
    assert set(ground.states(others)) == {"succeeded"}


@pytest.mark.parametrize(("point", "is_there"), [("add.before_commit", False), ("add.after_commit", True)])
def test_a_batch_is_there_whole_once_it_is_committed_and_not_at_all_before(ground, point, is_there):
    enqueuer = ground.start("batcher", count=BATCH, die_at=point, nth=2)
    assert enqueuer.end() == -signal.SIGKILL
    assert sizes(ground) == {0: BATCH, 1: BATCH} if is_there else {0: BATCH}
    check_store(ground.store)


def test_an_enqueuer_killed_inside_a_batch_leaves_nothing_of_it(ground):
    statements, jobs = 4, 4 * AT_ONCE
    enqueuer = ground.start("batcher", count=jobs, die_at="insert", nth=2 * statements + statements // 2)
    assert enqueuer.end() == -signal.SIGKILL
    assert ground.noted("batches") == ["0", "1", "2"]
    assert sizes(ground) == {0: jobs, 1: jobs}
    check_file(ground)
    check_store(ground.store)


def test_an_enqueuer_killed_from_outside_leaves_whole_batches(ground):
    enqueuer = ground.start("batcher", count=BATCH)
    wait_until(lambda: len(ground.noted("batches")) > 5, "batches")
    enqueuer.signal(signal.SIGKILL)
    assert enqueuer.end() == -signal.SIGKILL
    assert set(sizes(ground).values()) == {BATCH}
    assert len(sizes(ground)) >= len(ground.noted("batches")) - 1
    check_file(ground)
    check_store(ground.store)


def sizes(ground):
    """How many jobs of each batch are there."""
    return Counter(unpack_call(job.payload).args[0] for job in all_jobs(ground.store))
