"""Jobs whose next death fails them for good: they run alone, unless they run in a child process anyway."""

from __future__ import annotations

import threading

import pytest

from amounts import PATIENCE
from rota.model.micros import SECOND
from rota.store.contract import Exchange


@pytest.fixture
def held(stage, gate):
    """A job that runs in a worker until the gate opens."""
    begun = threading.Event()

    @stage.app.task(name="held")
    def hold() -> None:
        begun.set()
        gate.wait(PATIENCE)

    worker = stage.a_worker()
    worker.executors = worker.executors._replace(processes=worker.executors.threads)
    hold.enqueue()
    stage.work_until(worker, begun.is_set)
    return worker


def in_a_process() -> None: ...


def suspect(stage, task):
    """A job of the task, whose worker has died twice."""
    job = task.enqueue()
    for _ in range(2):
        (claimed,) = stage.store.exchange(Exchange(holder="dead", want=1, lease_for=SECOND)).claimed
        assert claimed.id == job.id
        stage.skip(2)
        stage.a_rescuer().turn()
    assert job.refresh().record.deaths == 2
    return job


def test_a_suspect_waits_until_it_is_alone(stage, held, gate, caplog):
    @stage.app.task
    def crash() -> None: ...

    job = suspect(stage, crash)
    held.turn()
    other = crash.enqueue()
    held.turn()
    assert [run.job.id for run in held.runs.not_started] == [job.id]
    assert other.refresh().state == "queued"
    assert "claims no more jobs until the 1 other job that it runs have ended" in caplog.text
    gate.set()
    stage.work_until(held, lambda: other.refresh().state == "succeeded")
    assert job.refresh().state == "succeeded"


def test_a_suspect_in_a_child_process_keeps_no_other_job_waiting(stage, held, gate, caplog):
    task = stage.app.task(executor="process")(in_a_process)
    job = suspect(stage, task)
    other = task.enqueue()
    stage.work_until(held, lambda: other.refresh().state == "succeeded")
    assert job.refresh().state == "succeeded"
    assert not gate.is_set()
    assert "alone" not in caplog.text
