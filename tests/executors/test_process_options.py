"""What may run in a process of its own is checked where it is declared; a death is settled as a rescue is."""

from __future__ import annotations

from functools import partial

import pytest

from rota import App, BadOption
from rota.model.jobs.job import State, unpack_moves
from rota.model.jobs.outcome import Died
from rota.model.jobs.retry import MAX_DEATHS, RetryPolicy
from rota.model.jobs.settle import apply, settle
from unit.model.values import NOON, a_job


def plain() -> None: ...


async def on_the_loop() -> None: ...


def declare(function, **options):
    return App("memory://").task(executor="process", **options)(function)


def test_a_task_says_where_it_runs_and_how_much_it_may_use():
    options = declare(plain, memory="512MB").options
    assert (options.executor, options.memory) == ("process", 512 * 1024**2)
    assert App("memory://").task(plain).options.executor == "thread"


@pytest.mark.parametrize(
    ("size", "expected"),
    [("1GB", 1024**3), ("1.5 g", 3 * 1024**3 // 2), ("64MiB", 64 * 1024**2), ("100k", 102_400), (4096, 4096), ("7", 7)],
)
def test_sizes_are_read(size, expected):
    assert declare(plain, memory=size).options.memory == expected


@pytest.mark.parametrize("size", ["", "MB", "-1MB", "1XB", "0MB", True, -5, "1e9", "9" * 20, 2.0**70, [], "٣MB"])
def test_what_is_no_size_is_refused(size):
    with pytest.raises(BadOption, match="is no size"):
        declare(plain, memory=size)


def test_a_cap_needs_a_process():
    with pytest.raises(BadOption, match="add executor='process'"):
        App("memory://").task(memory="1GB")(plain)


def test_an_unknown_executor_is_refused():
    with pytest.raises(BadOption, match="must be 'thread' or 'process'"):
        App("memory://").task(executor="fibre")(plain)


def test_a_coroutine_function_is_refused():
    with pytest.raises(BadOption, match="coroutine"):
        declare(on_the_loop)


def test_what_a_process_could_not_find_is_refused():
    def inner() -> None: ...

    for function in (lambda: None, inner, partial(plain)):
        with pytest.raises(BadOption, match="made at run time"):
            declare(function, name="shop.x")


# Deaths.


def test_a_death_spends_no_attempt_and_requeues_the_job_with_its_reason():
    job = apply(settle(a_job(), Died("child process 7 was ended by SIGSEGV"), RetryPolicy(), NOON, 0.0))
    assert (job.state, job.deaths, job.attempts, job.failures) == (State.QUEUED, 1, 0, 0)
    assert unpack_moves(job.past)[-1].reason == (
        f"process died: child process 7 was ended by SIGSEGV (death 1 of {MAX_DEATHS})"
    )


def test_the_third_death_parks_the_job():
    job = a_job(deaths=MAX_DEATHS - 1)
    job = apply(settle(job, Died("child process 7 exited"), RetryPolicy(retries=9), NOON, 0.0))
    assert (job.state, job.deaths) == (State.FAILED, MAX_DEATHS)
    assert job.error == "kept as failed: 3 processes died while they ran this job; the last: child process 7 exited"


def test_a_death_after_a_request_to_stop_ends_the_job_as_cancelled():
    job = apply(settle(a_job(cancel_reason="not wanted"), Died("gone"), RetryPolicy(), NOON, 0.0))
    assert (job.state, job.cancel_reason, job.deaths) == (State.CANCELLED, "not wanted", 1)
