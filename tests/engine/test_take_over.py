"""The jobs of a worker that is known to be dead are freed at once, in its name, with the story of its death."""

from __future__ import annotations

import pytest

from rota.engine.upkeep.rescuer import free_jobs_of
from rota.errors import StoreUnavailable
from rota.model.jobs.retry import MAX_DEATHS
from rota.model.micros import SECOND
from rota.store.contract import Exchange

HOW = "was killed by signal 9 (SIGKILL), with at most 512 MB"


@pytest.fixture
def work(stage):
    @stage.app.task(name="engine.work")
    def work() -> None: ...

    return work


def take(stage, holder: str = "dead", want: int = 100) -> None:
    stage.still.exchange(Exchange(holder=holder, want=want, lease_for=30 * SECOND))


def take_over(stage, holder: str = "dead") -> int:
    return free_jobs_of(holder, HOW, stage.store, stage.events, stage.a_clock())


def test_a_dead_workers_jobs_are_queued_before_their_leases_run_out(stage, work):
    job = work.enqueue()
    take(stage)
    assert take_over(stage) == 1
    assert (job.refresh().state, job.record.deaths, job.record.failures) == ("queued", 1, 0)
    assert stage.app.jobs.history(job.id)[-1].reason == f"worker lost: dead {HOW} (death 1 of {MAX_DEATHS})"
    (event,) = [event for event in stage.heard if event.name == "job.rescued"]
    assert (event.data["worker"], event.data["how"], event.data["state"]) == ("dead", HOW, "queued")


def test_the_jobs_of_others_are_left_alone(stage, work):
    jobs = [work.enqueue() for _ in range(3)]
    take(stage, "dead", want=1)
    take(stage, "alive", want=1)
    assert take_over(stage) == 1
    assert [job.refresh().state for job in jobs] == ["queued", "running", "queued"]


def test_more_jobs_than_fit_into_a_batch_or_a_page_are_all_freed(stage, work):
    stage.app.enqueue_many([work.job() for _ in range(450)])
    for _ in range(5):
        take(stage, want=90)
    assert take_over(stage) == 450
    (queue,) = stage.store.list_queues()
    assert (queue.counts["queued"], queue.counts.get("running", 0)) == (450, 0)


def test_a_job_that_was_asked_to_stop_is_cancelled(stage, work):
    job = work.enqueue()
    take(stage)
    stage.still.request_cancels([job.id], "not wanted")
    assert take_over(stage) == 1
    assert (job.refresh().state, job.record.cancel_reason) == ("cancelled", "not wanted")


def test_a_cancellation_that_comes_in_between_is_heeded(stage, work):
    job = work.enqueue()
    take(stage)
    listed = stage.still.list_jobs

    def list_then_cancel(*args, **kwargs):
        page = listed(*args, **kwargs)
        stage.still.request_cancels([job.id], "just now")
        return page

    stage.still.list_jobs = list_then_cancel
    assert take_over(stage) == 1
    assert (job.refresh().state, job.record.cancel_reason) == ("cancelled", "just now")


def test_the_last_death_parks_the_job_with_the_story(stage, work):
    job = work.enqueue()
    for number in range(MAX_DEATHS):
        take(stage, f"victim-{number}")
        take_over(stage, f"victim-{number}")
    assert job.refresh().state == "failed"
    assert job.record.error == f"kept as failed: 3 workers died while they ran this job; the last: victim-2 {HOW}"


def test_what_a_rescue_has_freed_first_is_not_freed_again(stage, work):
    job = work.enqueue()
    take(stage)
    stage.skip(31)
    stage.a_rescuer().turn()
    assert take_over(stage) == 0
    assert job.refresh().record.deaths == 1


def test_a_reply_that_is_lost_costs_no_second_death(stage, work):
    job = work.enqueue()
    take(stage)
    stage.store.fail_after("exchange")
    with pytest.raises(StoreUnavailable):
        take_over(stage)
    assert take_over(stage) == 0
    assert job.refresh().record.deaths == 1


def test_a_node_forgets_the_dead_one(stage, work):
    work.enqueue()
    take(stage)
    with stage.app.running(worker=False, scheduler=False) as node:
        assert node.take_over("dead", HOW) == 1
        assert "dead" not in [known.id for known in stage.still.list_nodes()]
