"""Rescuer and pruner, turned by hand: jobs of dead workers go on, what was kept long enough goes."""

from __future__ import annotations

import pytest

from engine.stage import NOON
from rota import cron, every
from rota.model.jobs.retry import MAX_DEATHS
from rota.model.micros import SECOND
from rota.model.schedules.edit import trigger_now
from rota.store.contract import Exchange, Node

DAY = 24 * 3600


@pytest.fixture
def work(stage):
    @stage.app.task(name="engine.work")
    def work() -> None: ...

    return work


def take(stage, holder: str = "dead", want: int = 100) -> None:
    """A worker takes jobs and is never heard of again."""
    stage.still.exchange(Exchange(holder=holder, want=want, lease_for=30 * SECOND))


def test_a_job_whose_lease_ran_out_goes_back_into_its_queue(stage, work):
    job = work.enqueue()
    take(stage)
    rescuer = stage.a_rescuer()
    rescuer.turn()
    assert job.refresh().state == "running"
    stage.skip(31)
    rescuer.turn()
    assert job.refresh().state == "queued"
    assert (job.record.deaths, job.record.failures) == (1, 0)
    (event,) = [event for event in stage.heard if event.name == "job.rescued"]
    how = "stopped renewing its lease"
    said = {"job_id": job.id, "worker": "dead", "how": how, "state": "queued", "task": "engine.work"}
    assert event.data == {**said, "queue": "default", "priority": 0, "schedule_id": None}
    assert "dead stopped renewing its lease" in stage.app.jobs.history(job.id)[-1].reason


def test_a_rescued_job_runs_on_another_worker(stage, work):
    job = work.enqueue()
    take(stage)
    stage.skip(31)
    stage.a_rescuer().turn()
    stage.work_off(stage.a_worker())
    assert job.refresh().state == "succeeded"


def test_a_job_that_kills_its_workers_is_parked_with_the_story(stage, work):
    job = work.enqueue()
    rescuer = stage.a_rescuer()
    for number in range(MAX_DEATHS):
        take(stage, f"victim-{number}")
        stage.skip(31)
        rescuer.turn()
    assert job.refresh().state == "failed"
    assert "kept as failed: 3 workers died" in job.error
    assert "victim-2" in job.error
    assert stage.names("job.rescued") == ["job.rescued"] * MAX_DEATHS


def test_two_rescuers_count_one_death(stage, work):
    job = work.enqueue()
    take(stage)
    stage.skip(31)
    first, second = stage.a_rescuer(), stage.a_rescuer()
    expired = stage.still.expired_jobs(100)
    first.turn()
    stage.still.expired_jobs = lambda _limit: expired
    second.turn()
    assert job.refresh().record.deaths == 1
    assert stage.names("job.rescued") == ["job.rescued"]


def test_a_rescue_whose_reply_was_lost_counts_one_death(stage, work):
    job = work.enqueue()
    take(stage)
    stage.skip(31)
    rescuer = stage.a_rescuer()
    stage.store.fail_after("rescue_jobs")
    assert rescuer._guarded_turn() > 0
    rescuer._guarded_turn()
    assert (job.refresh().state, job.record.deaths) == ("queued", 1)


def test_a_cancelled_job_of_a_dead_worker_ends_as_cancelled(stage, work):
    job = work.enqueue()
    take(stage)
    stage.app.jobs.cancel(job.id, reason="no longer wanted")
    stage.skip(31)
    stage.a_rescuer().turn()
    assert job.refresh().state == "cancelled"


def test_the_rescuer_looks_about_twice_per_lease_and_at_once_while_there_is_more(stage, work):
    rescuer = stage.a_rescuer()
    assert 12.0 <= rescuer.turn() <= 15.0
    stage.app.enqueue_many([work.job() for _ in range(150)])
    take(stage)
    take(stage)
    stage.skip(31)
    assert rescuer.turn() == 0.0
    assert 12.0 <= rescuer.turn() <= 15.0
    assert stage.states() == ["queued"] * 150


def test_ended_jobs_go_when_they_were_kept_long_enough(stage, work):
    ended = work.enqueue()
    stage.work_off(stage.a_worker())
    waiting = work.using(delay="100d").enqueue()
    pruner = stage.a_pruner(succeeded_for=DAY * SECOND)
    stage.skip(DAY - 1)
    assert pruner.turn() == 60.0
    assert stage.names("pruned") == []
    stage.skip(2)
    pruner.turn()
    assert [job.id for job in stage.app.jobs.list().items] == [waiting.id]
    (event,) = [event for event in stage.heard if event.name == "pruned"]
    assert event.data == {"jobs": 1, "occurrences": 0}
    assert ended.id not in {job.id for job in stage.app.jobs.list().items}


def test_failures_are_kept_longer_than_successes(stage):
    @stage.app.task(retries=0)
    def fail() -> None:
        raise ValueError("no stamp")

    fail.enqueue()
    stage.work_off(stage.a_worker())
    stage.skip(2 * DAY)
    pruner = stage.a_pruner()
    pruner.turn()
    assert stage.states() == ["failed"]
    stage.skip(30 * DAY)
    pruner.turn()
    assert stage.states() == []


def test_what_is_too_much_goes_though_it_is_young(stage, work):
    for _ in range(5):
        work.enqueue()
        stage.skip(1)
    stage.work_off(stage.a_worker())
    stage.a_pruner(most_finished=2).turn()
    assert stage.states() == ["succeeded"] * 2


def test_a_long_list_is_pruned_in_batches_with_a_breath_between(stage, work):
    stage.app.enqueue_many([work.job() for _ in range(600)])
    for job in stage.app.jobs.list(limit=200).items:
        stage.app.jobs.cancel(job.id)
    while waiting := stage.app.jobs.list(state="queued", limit=200).items:
        for job in waiting:
            stage.app.jobs.cancel(job.id)
    stage.skip(2 * DAY)
    pruner = stage.a_pruner()
    assert pruner.turn() < 1.0
    assert pruner.turn() == 60.0
    assert stage.states() == []


def test_nodes_that_were_silent_for_long_are_forgotten(stage):
    stage.still.record_heartbeat(Node(id="old", host="h", pid=1, roles=("worker",)))
    stage.skip(3601)
    stage.still.record_heartbeat(Node(id="new", host="h", pid=2, roles=("worker",)))
    stage.a_pruner().turn()
    assert [node.id for node in stage.still.list_nodes()] == ["new"]


def test_an_occurrence_outlives_its_job(stage, work):

    stage.app.schedules.put("soon", work.job(), every("10s"))
    stage.skip(10)
    scheduler = stage.a_scheduler()
    scheduler.turn()
    stage.work_off(stage.a_worker())
    stage.app.schedules.disable("soon")
    stage.skip(2 * DAY)
    stage.a_pruner().turn()
    assert stage.states() == []
    (line,) = stage.still.list_occurrences("soon", NOON, NOON + DAY * SECOND).items
    assert (line.outcome, line.through_at, line.job_id) == ("succeeded", NOON + 10 * SECOND, None)


def test_a_prune_whose_reply_was_lost_is_simply_done_again(stage, work):
    schedule = stage.app.schedules.put("by-hand", work.job(), cron("0 0 1 1 *")).record
    assert stage.still.edit_schedules([trigger_now(schedule, NOON, "job-1")]) == []
    stage.work_off(stage.a_worker())
    stage.skip(2 * DAY)
    pruner = stage.a_pruner()
    stage.store.fail_after("prune")
    assert 0 < pruner._guarded_turn() < 5
    assert pruner._guarded_turn() == 60.0
    assert stage.states() == []
