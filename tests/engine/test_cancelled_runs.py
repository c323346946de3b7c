"""How a job ends that was asked to stop: one that knew of it and returned is cancelled, another one succeeded."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest

from engine.stage import PATIENCE
from rota import current_job


def cancel_while_it_runs(stage, job, begun, go_on, *, is_heard=True) -> None:
    worker = stage.a_worker()
    worker.turn()
    assert begun.wait(PATIENCE)
    stage.app.jobs.cancel(job.id, reason="by ann")
    if is_heard:
        stage.a_keeper(worker).turn()
    go_on.set()
    stage.work_off(worker)


@pytest.fixture
def signals():
    return threading.Event(), threading.Event()


@pytest.mark.parametrize("reads", ["cancelled", "nothing"])
@pytest.mark.parametrize("way", ["thread", "loop"])
def test_a_task_that_read_that_it_is_cancelled_ends_as_cancelled(any_stage, signals, way, reads):
    begun, go_on = signals

    def plain() -> str:
        begun.set()
        assert go_on.wait(PATIENCE)
        return "half done" if reads == "nothing" or current_job.cancelled else "whole"

    async def on_the_loop() -> str:
        begun.set()
        while not go_on.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        return "half done" if reads == "nothing" or current_job.cancelled else "whole"

    task = any_stage.app.task(name="work", retries=0)(plain if way == "thread" else on_the_loop)
    job = task.enqueue()
    cancel_while_it_runs(any_stage, job, begun, go_on)
    last = any_stage.app.jobs.history(job.id)[-1]
    if reads == "cancelled":
        assert (last.state, last.reason) == ("cancelled", "by ann")
    else:
        assert (last.state, last.reason) == ("succeeded", "returned; the cancel came too late (by ann)")
        assert job.result("1s") == "half done"


def test_a_task_that_reads_before_it_is_asked_and_then_returns_has_succeeded(any_stage, signals):
    begun, go_on = signals

    @any_stage.app.task(retries=0)
    def work() -> str:
        assert not current_job.cancelled
        begun.set()
        assert go_on.wait(PATIENCE)
        return "whole"

    job = work.enqueue()
    cancel_while_it_runs(any_stage, job, begun, go_on)
    assert job.refresh().state == "succeeded"


def test_a_task_that_returns_before_its_worker_hears_of_the_cancel_has_it_in_its_history(any_stage, signals):
    begun, go_on = signals

    @any_stage.app.task(retries=0)
    def work() -> str:
        begun.set()
        assert go_on.wait(PATIENCE)
        return "whole"

    job = work.enqueue()
    cancel_while_it_runs(any_stage, job, begun, go_on, is_heard=False)
    last = any_stage.app.jobs.history(job.id)[-1]
    assert (last.state, last.reason) == ("succeeded", "returned; the cancel came too late (by ann)")
    assert job.result("1s") == "whole"
