"""Inline runs, reports that are lost, and transactions that a kit cannot see into."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rota import BadOption, current_job
from rota.testing import Kit

LEASE = timedelta(seconds=30)


def an_account(app):
    """A task that must not run twice, one that may, and what they have done."""
    paid: list[int] = []

    @app.task(name="pay")
    def pay(amount: int) -> None:
        paid.append(amount)

    @app.task(name="pay_once")
    def pay_once(amount: int) -> None:
        if amount not in paid:
            paid.append(amount)

    return pay, pay_once, paid


# Inline.


def test_inline_jobs_have_ended_when_enqueue_returns(app, clock):
    @app.task
    def inner(number: int) -> int:
        return number + 1

    @app.task
    def outer(number: int) -> int:
        return inner.enqueue(number).result() * 2

    with Kit(app, clock, inline=True) as kit:
        assert outer.enqueue(20).result() == 42
        assert [job.state for job in app.enqueue_many([inner.job(1), inner.job(2)])] == ["succeeded"] * 2
        assert kit.run_due() == []


def test_inline_jobs_with_a_delay_wait_for_it(app, clock):
    _, pay_once, paid = an_account(app)
    with Kit(app, clock, inline=True) as kit:
        pay_once.using(delay="1h").enqueue(1)
        assert paid == []
        kit.travel("1h")
        assert paid == [1]


def test_inline_coroutines_may_enqueue_coroutines(app, clock):
    @app.task
    async def inner() -> str:
        return "in"

    @app.task
    async def outer() -> str:
        return inner.enqueue().result() + (await inner.aenqueue()).result()

    with Kit(app, clock, inline=True):
        assert outer.enqueue().result() == "inin"


@pytest.mark.parametrize("raises", [True, False])
def test_inline_failures_are_the_jobs_own_or_the_callers(app, clock, raises):
    @app.task(retries=0)
    def boom() -> None:
        raise ZeroDivisionError

    with Kit(app, clock, inline=True, raise_errors=raises):
        if raises:
            with pytest.raises(ZeroDivisionError):
                boom.enqueue()
        else:
            assert boom.enqueue().state == "failed"


# Lost reports.


def test_delivering_twice_finds_a_task_that_must_not_run_twice(app, clock):
    pay, pay_once, paid = an_account(app)
    with Kit(app, clock) as kit:
        kit.deliver_twice(pay)
        kit.deliver_twice(pay_once)
        began = clock.now
        pay.enqueue(10)
        pay_once.enqueue(20)
        assert [job.state for job in kit.run_due()] == ["succeeded", "succeeded"]
        assert sorted(paid) == [10, 10, 20]
        assert clock.now == began + LEASE
        moves = [line.reason for line in app.jobs.history(kit.jobs[0].id)]
        assert "worker lost: kit stopped renewing its lease (death 1 of 3)" in moves


def test_delivering_twice_ends_with_its_block(app, clock):
    pay, _, paid = an_account(app)
    with Kit(app, clock) as kit:
        with kit.deliver_twice(pay):
            pay.enqueue(1)
            kit.run_due()
        pay.enqueue(2)
        kit.run_due()
        assert paid == [1, 1, 2]


def test_a_lost_report_waits_for_its_lease_while_the_test_travels(app, clock):
    pay, _, paid = an_account(app)
    with Kit(app, clock) as kit:
        kit.crash_after(pay)
        pay.enqueue(1)
        kit.travel("29s")
        assert paid == [1]
        assert kit.jobs[0].state == "running"
        kit.travel("1s")
        assert paid == [1, 1]
        assert kit.jobs[0].state == "succeeded"


def test_the_first_n_runs_crash_whosever_they_are(app, clock):
    pay, _, paid = an_account(app)
    with Kit(app, clock) as kit:
        kit.crash_after(pay, n=2)
        for amount in (1, 2, 3):
            pay.enqueue(amount)
        kit.run_due()
        assert sorted(paid) == [1, 1, 2, 2, 3]
        assert {job.state for job in kit.jobs} == {"succeeded"}
        with pytest.raises(BadOption):
            kit.crash_after(pay, n=0)


def test_a_job_that_kills_three_workers_is_parked(app, clock):
    pay, _, paid = an_account(app)
    with Kit(app, clock) as kit:
        kit.crash_after(pay, n=9)
        pay.enqueue(1)
        (job,) = kit.run_due()
        assert job.state == "failed"
        assert "kept as failed: 3 workers died" in job.error
        assert paid == [1, 1, 1]


def test_run_next_outlasts_a_lost_lease(app, clock):
    pay, _, paid = an_account(app)
    with Kit(app, clock) as kit:
        kit.crash_after(pay)
        pay.enqueue(1)
        assert kit.run_next().state == "running"
        assert kit.run_next().state == "succeeded"
        assert paid == [1, 1]


def test_inline_jobs_are_delivered_twice_as_well(app, clock):
    pay, _, paid = an_account(app)
    with Kit(app, clock, inline=True) as kit:
        kit.deliver_twice(pay)
        assert pay.enqueue(1).state == "succeeded"
        assert paid == [1, 1]


def test_crashes_of_the_last_attempt_do_not_keep_others_waiting(app, clock):
    """A job that runs alone because of its deaths lets go of its worker."""
    pay, pay_once, paid = an_account(app)
    with Kit(app, clock) as kit:
        kit.crash_after(pay, n=3)
        pay.enqueue(1)
        kit.run_due()
        pay_once.enqueue(5)
        assert [job.state for job in kit.run_due()] == ["succeeded"]
        assert paid == [1, 1, 1, 5]


# Transactions.


def test_jobs_of_a_transaction_are_accepted_at_once(app, clock):
    _, pay_once, paid = an_account(app)
    with Kit(app, clock) as kit:
        pay_once.using(tx=object()).enqueue(1)
        kit.run_due()
        assert paid == [1]


def test_a_task_that_ends_in_its_own_transaction_runs_once_even_if_it_crashes(app, clock):
    ran = []

    @app.task
    def exact() -> None:
        ran.append(1)
        current_job.finish_in(object())

    with Kit(app, clock) as kit:
        kit.deliver_twice(exact)
        exact.enqueue()
        assert [job.state for job in kit.run_due()] == ["succeeded"]
        assert ran == [1]
