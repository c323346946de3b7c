"""Middleware around attempts, in a thread, on the loop and in a process: whatever it does, the job is not lost."""

from __future__ import annotations

import os
from contextlib import suppress

import pytest

from middleware import three
from rota import JobFailed
from rota.app import internals
from rota.store.memory import MemoryStore

MODES = ["plain", "decrypt", "raise", "hang", "forget", "drop", "unfit"]


@pytest.fixture(scope="module", params=["thread", "loop", "process"])
def ran(request):
    """A job of each mode, after one worker has run them all in the same way."""
    app = three.app
    app.close()
    internals(app).store.use(MemoryStore())
    task = three.WAYS[request.param]
    jobs = {
        mode: task.using(meta={"mode": mode}, timeout="300ms" if mode == "hang" else None).enqueue("stored")
        for mode in MODES
    }
    with app.running(scheduler=False, concurrency=2, drain="1s"):
        for job in jobs.values():
            with suppress(JobFailed):
                job.result("60s")
    yield {mode: job.refresh() for mode, job in jobs.items()}
    app.close()


def test_it_wraps_the_function_and_may_change_meta_and_result(ran):
    job = ran["plain"]
    (word, was_added, pid), attempt, task = job.result()
    assert (word, was_added, attempt, task) == ("stored", True, 1, job.task)
    assert (pid == os.getpid()) is ("apart" not in job.task)


def test_it_may_give_the_task_other_arguments_whose_secrets_are_hidden_in_the_log(ran):
    job = ran["decrypt"]
    assert job.result()[0][0] == "open sesame"
    assert [line.text for line in three.app.jobs.logs(job.id)] == ["the word is [redacted]"]


def test_if_it_raises_the_attempt_fails_and_is_tried_again(ran):
    job = ran["raise"]
    assert job.result()[1] == 2
    assert any("the middleware broke" in str(line.data) for line in three.app.jobs.history(job.id))


def test_if_it_hangs_the_timeout_of_the_job_ends_the_attempt(ran):
    job = ran["hang"]
    assert job.state == "failed"
    assert job.error.startswith(f"TimeoutError: {job.task} ran longer than its timeout of 0.3 s")


def test_if_it_never_calls_the_next_step_the_attempt_fails_and_says_so(ran):
    job = ran["forget"]
    assert (job.state, job.attempts) == ("failed", 2)
    assert "returned without calling call_next, so that the task did not run" in job.error


def test_if_it_loses_the_result_the_attempt_fails_and_says_so(ran):
    job = ran["drop"]
    assert job.state == "failed"
    assert "return what call_next returned" in job.error


def test_arguments_that_do_not_fit_the_task_fail_the_job_without_a_retry(ran):
    job = ran["unfit"]
    assert (job.state, job.attempts) == ("failed", 1)
    assert "too many positional arguments" in job.error
