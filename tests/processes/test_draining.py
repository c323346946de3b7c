"""SIGTERM: what runs may finish, jobs that have not begun are returned, and nothing is spent."""

from __future__ import annotations

import signal

import pytest
from kill_checks import check_all
from kill_harness import wait_until

SLOTS = 4


@pytest.fixture(params=["app.start", "rota run"])
def start(request, ground):
    """A node, started from code or from the command line."""

    def start_node(drain):
        if request.param == "app.start":
            return ground.start("node", concurrency=SLOTS, drain=drain)
        return ground.start_rota("run", "{app}", "-c", str(SLOTS), "--drain", drain)

    return start_node


@pytest.fixture
def held(ground):
    """Jobs that run until a gate is opened, behind a crowd of quick ones: a fast worker claims ahead of its slots."""
    ground.enqueue("quick", count=150)
    return ground.enqueue("gated", "gate", count=60)


def begun(ground, held):
    return [job_id for job_id, _ in ground.runs() if job_id in held]


def spent(ground, ids):
    return {(job.attempts, job.failures, job.deaths) for job in ground.store.get_jobs(ids)}


def test_what_runs_finishes_and_what_was_not_begun_is_given_back(ground, start, held):
    child = start("50s")
    wait_until(lambda: len(begun(ground, held)) == SLOTS, "running jobs")
    running = begun(ground, held)
    claimed = [job_id for job_id in held if ground.job(job_id).state == "running"]
    assert len(claimed) > SLOTS
    child.signal(signal.SIGTERM)
    wait_until(lambda: ground.count("running") == SLOTS, "the others to be returned")
    assert set(ground.states(running)) == {"running"}
    ground.open_gate()
    assert child.end() == 0, child.output
    assert begun(ground, held) == running
    assert set(ground.states(running)) == {"succeeded"}
    rest = [job_id for job_id in held if job_id not in running]
    assert set(ground.states(rest)) == {"queued"}
    assert spent(ground, rest) == {(0, 0, 0)}
    ground.finish()
    check_all(ground)


def test_what_still_runs_when_the_grace_is_over_is_handed_back(ground, start):
    held = ground.enqueue("gated", "gate", count=SLOTS)
    child = start("1s")
    wait_until(lambda: len(begun(ground, held)) == SLOTS, "running jobs")
    child.signal(signal.SIGTERM)
    assert child.end() == 0, child.output
    assert set(ground.states(held)) == {"queued"}
    assert spent(ground, held) == {(0, 0, 0)}
    ground.open_gate()
    ground.finish()
    check_all(ground)
    assert sorted(ground.runs()) == sorted((job_id, lease_no) for job_id in held for lease_no in (1, 2))


def test_a_second_signal_hands_back_at_once(ground, start, held):
    child = start("50s")
    wait_until(lambda: len(begun(ground, held)) == SLOTS, "running jobs")
    child.signal(signal.SIGTERM)
    wait_until(lambda: ground.count("running") == SLOTS, "the others to be returned")
    child.signal(signal.SIGTERM)
    assert child.end() == 0, child.output
    assert set(ground.states(held)) == {"queued"}
    assert spent(ground, held) == {(0, 0, 0)}
    ground.open_gate()
    ground.finish()
    check_all(ground)


def test_a_deploy_hands_over_without_a_pause(ground):
    """Generations of workers follow each other while jobs come and run: nothing is lost, doubled or spent."""
    workers = [ground.start("worker", concurrency=SLOTS)]
    for _ in range(4):
        goal = len(ground.runs()) + 10
        ground.enqueue("quick", count=40)
        ground.enqueue("slow", 0.3, count=SLOTS)
        wait_until(lambda goal=goal: len(ground.runs()) >= goal, "work")
        workers.append(ground.start("worker", concurrency=SLOTS))
        workers[-2].signal(signal.SIGTERM)
        assert workers[-2].end() == 0, workers[-2].output
    ground.finish()
    jobs = check_all(ground)
    assert {(job.attempts, job.failures, job.deaths) for job in jobs} == {(1, 0, 0)}
    assert len(ground.runs()) == len(jobs)
