"""A kit runs jobs in the test's own thread, and a test can ask what was enqueued and what failed."""

from __future__ import annotations

import asyncio
import os
import threading
from datetime import UTC, date, datetime

import pytest

from rota import JobFailed, Middleware, Refused, UnknownTask, current_job, every
from rota.app import internals
from rota.testing import Kit, RunawayJobs
from rota.testing import kit as kit_module


def a_greeter(app):
    @app.task(name="shop.greet")
    def greet(name: str, lang: str = "en") -> str:
        return f"{lang}: {name}"

    return greet


def in_a_process() -> int:
    return os.getpid()


# Where and how jobs run.


def test_plain_tasks_run_in_the_calling_thread(app, clock):
    @app.task
    def where() -> int:
        return threading.get_ident()

    with Kit(app, clock) as kit:
        where.enqueue()
        (job,) = kit.run_due()
        assert job.result() == threading.get_ident()


def test_a_task_with_a_process_of_its_own_runs_here(app, clock):
    task = app.task(executor="process")(in_a_process)
    with Kit(app, clock) as kit:
        task.enqueue()
        (job,) = kit.run_due()
        assert job.result() == os.getpid()


def a_coroutine_task(app):
    @app.task
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        assert current_job
        return number * 2

    return double


def test_coroutine_tasks_run_to_their_end(app, clock):
    double = a_coroutine_task(app)
    with Kit(app, clock) as kit:
        double.enqueue(21)
        (job,) = kit.run_due()
        assert job.result() == 42


def test_a_kit_works_inside_a_running_loop(app, clock):
    double = a_coroutine_task(app)

    async def drive(kit):
        await double.aenqueue(4)
        return kit.run_due()

    with Kit(app, clock) as kit:
        (job,) = asyncio.run(drive(kit))
        assert job.result() == 8


def test_a_task_knows_its_job(app, clock):
    seen = []

    @app.schedule(every("1h"), id="hourly")
    def hourly() -> None:
        seen.append((current_job.id, current_job.schedule_id, current_job.meta["trigger_type"], current_job.attempt))

    with Kit(app, clock) as kit:
        (job,) = kit.travel("1h")
        assert seen == [(job.id, "hourly", "every", 1)]
    assert not current_job


def test_events_are_heard_at_the_clocks_time(app, clock):
    heard = []
    app.on("job.succeeded", lambda event: heard.append(event.at))
    greet = a_greeter(app)
    with Kit(app, clock) as kit:
        greet.enqueue("a")
        kit.travel("1m")
        assert heard == [clock.micros() - 60_000_000]


def test_jobs_that_are_removed_at_their_end_stay_known_to_the_kit(app, clock):
    @app.task(keep=False)
    def brief() -> None: ...

    with Kit(app, clock) as kit:
        brief.enqueue()
        assert [job.state for job in kit.run_due()] == ["succeeded"]
        assert [job.state for job in kit.jobs] == ["succeeded"]
        assert app.jobs.list().items == []
        kit.assert_enqueued(brief)


def test_prints_become_logs_where_the_test_asks_for_it(app, clock, capsys):
    @app.task
    def speak() -> None:
        print("hello")  # noqa: T201

    for keep_logs, lines, printed in ((True, ["hello"], ""), (False, [], "hello\n")):
        with Kit(app, clock, keep_logs=keep_logs) as kit:
            job = speak.enqueue()
            kit.run_due()
            assert [line.text for line in app.jobs.logs(job.id)] == lines
            assert capsys.readouterr().out == printed


def test_jobs_without_end_are_told_not_waited_for(app, clock, monkeypatch):
    monkeypatch.setattr(kit_module, "MOST_AT_ONCE", 50)

    @app.task(name="again")
    def again() -> None:
        again.enqueue()

    with Kit(app, clock) as kit:
        again.enqueue()
        with pytest.raises(RunawayJobs, match=r"50 jobs ran at .*last to end was of again"):
            kit.run_due()


# Failures.


def test_a_failure_is_the_jobs_own_unless_the_test_wants_it_raised(app, clock):
    @app.task(retries=0)
    def boom() -> None:
        raise ZeroDivisionError("oh")

    with Kit(app, clock) as kit:
        boom.enqueue()
        assert [job.state for job in kit.run_due()] == ["failed"]
        boom.enqueue()
        with pytest.raises(ZeroDivisionError, match="oh"):
            kit.run_due(raise_errors=True)
        assert [job.state for job in kit.jobs] == ["failed", "failed"]
    with Kit(app, clock, raise_errors=True) as kit:
        boom.using(delay="1h").enqueue()
        with pytest.raises(ZeroDivisionError):
            kit.travel("2h")


def test_a_failure_without_an_exception_is_raised_in_words(app, clock):
    @app.task
    def unkeepable() -> object:
        return object()

    with Kit(app, clock) as kit:
        unkeepable.enqueue()
        with pytest.raises(JobFailed, match="returned a value that JSON cannot keep"):
            kit.run_due(raise_errors=True)


@pytest.mark.parametrize("error", [KeyboardInterrupt, pytest.fail.Exception])
def test_what_means_the_test_reaches_the_test(app, clock, error):
    @app.task
    def stop() -> None:
        raise error("enough")

    with Kit(app, clock) as kit:
        stop.enqueue()
        with pytest.raises(error):
            kit.run_due()


# What was enqueued.


def test_arguments_match_however_they_are_spelled(app, clock):
    greet = a_greeter(app)
    with Kit(app, clock) as kit:
        greet.enqueue("ann")
        greet.enqueue(name="bob", lang="de")
        kit.run_due()
        kit.assert_enqueued(greet, count=2)
        kit.assert_enqueued(greet, "ann")
        kit.assert_enqueued("greet", lang="en", name="ann")
        kit.assert_enqueued(greet, "bob", "de")
        kit.assert_not_enqueued(greet, "bob")
        assert [job.args for job in kit.enqueued(greet)] == [["ann"], []]


def test_arguments_that_json_keeps_as_text_match(app, clock):
    @app.task
    def on(day: date, at: datetime) -> None: ...

    at = datetime(2026, 1, 2, tzinfo=UTC)
    with Kit(app, clock) as kit:
        on.enqueue(date(2026, 1, 2), at)
        kit.assert_enqueued(on, date(2026, 1, 2), at=at)
        kit.assert_not_enqueued(on, date(2026, 1, 3), at=at)


class Reversed(Middleware):
    """Stores arguments that nobody recognises."""

    def create(self, jobs, call_next):
        call_next([job.replace(args=[text[::-1] for text in job.args], kwargs={}) for job in jobs])

    def run(self, job, call_next):
        return call_next(job.replace(args=[text[::-1] for text in job.args]))


def test_arguments_match_as_the_caller_gave_them_whatever_a_middleware_stores(app, clock):
    greet = a_greeter(app)
    app.use(Reversed())
    for _ in range(2):
        with Kit(app, clock) as kit:
            job = greet.enqueue("ann")
            app.enqueue_many([greet.job("bob"), greet.job("cid")])
            assert job.args == ["nna"]
            kit.assert_enqueued(greet, "ann")
            kit.assert_enqueued(greet, "cid")
            kit.assert_not_enqueued(greet, "nna")
            with pytest.raises(AssertionError, match=r"shop\.greet\('bob'\) is queued"):
                kit.assert_enqueued(greet, "eve")
            kit.run_due()
            assert job.result() == "en: ann"
    assert [type(one) for one in internals(app).middleware] == [Reversed]


def test_a_miss_says_what_was_enqueued_instead(app, clock):
    greet = a_greeter(app)
    with Kit(app, clock) as kit:
        with pytest.raises(AssertionError, match=r"^wanted 1 job of shop\.greet, found none; nothing was enqueued$"):
            kit.assert_enqueued(greet)
        greet.enqueue("ann")
        kit.run_due()
        greet.enqueue("bob", lang="de")
        with pytest.raises(AssertionError) as told:
            kit.assert_enqueued(greet, "eve", count=2)
        assert str(told.value).splitlines() == [
            "wanted 2 jobs of shop.greet('eve'), found none; enqueued were:",
            "  shop.greet('ann') is succeeded",
            "  shop.greet('bob', lang='de') is queued",
        ]
        with pytest.raises(AssertionError, match=r"wanted 0 jobs of shop.greet, found 2; enqueued were:"):
            kit.assert_not_enqueued(greet)


def test_a_long_list_is_cut(app, clock):
    greet = a_greeter(app)
    with Kit(app, clock) as kit:
        app.enqueue_many([greet.job(str(number)) for number in range(30)])
        with pytest.raises(AssertionError, match="… and 10 more"):
            kit.assert_not_enqueued(greet)


def test_what_schedules_make_is_fired_not_enqueued(app, clock):
    greet = a_greeter(app)

    @app.schedule(every("1h"), id="hourly")
    def hourly() -> None:
        greet.enqueue("world")

    with Kit(app, clock) as kit:
        kit.travel("2h")
        kit.assert_not_enqueued(hourly)
        kit.assert_enqueued(greet, "world", count=2)
        assert len(kit.fired("hourly")) == 2
        assert len(kit.jobs) == 4


def test_a_task_that_the_app_does_not_have_is_told(app, clock):
    with Kit(app, clock) as kit, pytest.raises(UnknownTask):
        kit.assert_not_enqueued("nobody")


def test_a_kit_outside_of_its_block_says_how_it_is_used(app, clock):
    with pytest.raises(Refused, match=r"with Kit\(app, clock\) as kit"):
        Kit(app, clock).run_due()


def test_waiting_for_a_result_says_that_nothing_runs_by_itself(app, clock):
    @app.task
    def double(n: int) -> int:
        return 2 * n

    with Kit(app, clock) as kit:
        job = double.enqueue(2)
        with pytest.raises(Refused, match=r"is queued, and in a kit nothing runs by itself: call kit.run_due\(\)"):
            job.result()
        with pytest.raises(Refused, match="nothing runs by itself"):
            asyncio.run(app.aio.jobs.result(job.id))
        kit.run_due()
        assert job.result() == 4
    assert internals(app).job_reader.before_wait is None
