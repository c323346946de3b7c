"""The worker, turned by hand: what becomes of jobs by what their tasks do."""

from __future__ import annotations

import asyncio
import enum
import math
from dataclasses import dataclass

import pytest

from rota import Cancel, Retry, Snooze, current_job
from rota.model.jobs.job import NewJob
from rota.model.micros import SECOND


class Wordless(Exception):
    """An exception that cannot say what it is."""

    def __str__(self):
        raise RuntimeError("no words")


@dataclass
class Strict:
    """A type whose making may fail in a way of its own."""

    size: int

    def __post_init__(self):
        raise RuntimeError("the stock is closed")


class Colour(enum.Enum):
    RED = "red"


def test_a_return_value_is_kept(any_stage):
    @any_stage.app.task
    def add(a: int, b: int) -> int:
        return a + b

    job = add.enqueue(1, 2)
    any_stage.work_off(any_stage.a_worker())
    assert (job.state, job.record.result) == ("succeeded", b"3")


def test_coroutines_run_on_the_loop(any_stage):
    @any_stage.app.task
    async def add(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b

    job = add.enqueue(1, 2)
    any_stage.work_off(any_stage.a_worker())
    assert (job.state, job.record.result) == ("succeeded", b"3")


def test_an_exception_waits_for_its_retry_and_its_traceback_is_the_tasks_own(any_stage):
    @any_stage.app.task
    def fail() -> None:
        raise ValueError("no stamp")

    job = fail.enqueue()
    any_stage.work_off(any_stage.a_worker())
    assert job.state == "scheduled"
    first, *rest = job.error.splitlines()
    assert first == "ValueError: no stamp"
    assert not [line for line in rest if "executors/run.py" in line]
    assert [line for line in rest if "in fail" in line]


def test_a_job_is_tried_until_its_retries_are_spent(stage):
    attempts = []

    @stage.app.task(retries=2)
    def fail() -> None:
        attempts.append(current_job.attempt)
        raise ValueError("no stamp")

    job = fail.enqueue()
    worker = stage.a_worker()
    for _ in range(3):
        stage.work_off(worker)
        stage.skip(3600)
    assert attempts == [1, 2, 3]
    assert (job.refresh().state, job.attempts) == ("failed", 3)
    assert stage.names("job.s", "job.r", "job.f") == [
        "job.started",
        "job.retried",
        "job.started",
        "job.retried",
        "job.started",
        "job.failed",
    ]


def test_an_exception_that_the_task_gives_up_on_is_not_tried_again(stage):
    @stage.app.task(give_up_on=(LookupError,))
    def fail() -> None:
        raise KeyError("gone")

    job = fail.enqueue()
    stage.work_off(stage.a_worker())
    assert job.state == "failed"


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit()])
def test_a_task_that_tries_to_end_the_process_ends_only_its_job(any_stage, error):
    @any_stage.app.task
    def leave() -> None:
        raise error

    @any_stage.app.task
    async def leave_the_loop() -> None:
        raise error

    @any_stage.app.task
    def fine() -> None: ...

    jobs = [leave.enqueue(), leave_the_loop.enqueue()]
    worker = any_stage.a_worker(concurrency=1)
    any_stage.work_off(worker)
    jobs.append(fine.enqueue())
    any_stage.work_off(worker)
    assert [job.state for job in jobs] == ["failed", "failed", "succeeded"]


@pytest.mark.parametrize("kind", ["thread", "coroutine"])
def test_an_exception_without_words_is_a_failure_like_any_other(any_stage, kind):
    @any_stage.app.task(name="in.thread")
    def fail() -> None:
        raise Wordless

    @any_stage.app.task(name="in.coroutine")
    async def fail_on_the_loop() -> None:
        raise Wordless

    job = (fail if kind == "thread" else fail_on_the_loop).enqueue()
    any_stage.work_off(any_stage.a_worker())
    assert job.state == "scheduled"
    assert "Wordless" in job.error


def test_an_error_text_that_is_no_text_is_a_failure_like_any_other(any_stage):
    """Names of files may hold bytes that are no UTF-8; Python shows them as lone surrogates."""

    @any_stage.app.task
    def fail() -> None:
        raise FileNotFoundError("no file named \udcff.txt")

    @any_stage.app.task
    def fine() -> None: ...

    worker = any_stage.a_worker(concurrency=1)
    job = fail.enqueue()
    any_stage.work_off(worker)
    other = fine.enqueue()
    any_stage.work_off(worker)
    assert (job.state, other.state) == ("scheduled", "succeeded")
    assert "no file named" in job.error


def test_a_very_long_error_is_cut(any_stage):
    @any_stage.app.task
    def fail() -> None:
        raise ValueError("x" * 1_000_000)

    job = fail.enqueue()
    any_stage.work_off(any_stage.a_worker())
    assert len(job.error) < 20_000
    assert job.error.endswith("(cut)")


@pytest.mark.parametrize("value", [object(), 1j, "x" * 300_000, "\ud800", math.nan, [math.inf], {"a": {"b": math.nan}}])
def test_a_return_value_that_json_cannot_keep_is_told_and_not_tried_again(any_stage, value):
    @any_stage.app.task
    def give() -> object:
        return value

    job = give.enqueue()
    any_stage.work_off(any_stage.a_worker())
    assert job.state == "failed"
    assert job.error.startswith("BadResult: ")


def test_a_task_that_this_worker_does_not_know_is_given_back_for_half_a_minute(any_stage):
    store = any_stage.store
    store.add_jobs([NewJob(id="job-1", task="nobody.knows", payload=b"[]")])
    any_stage.work_off(any_stage.a_worker())
    (job,) = store.get_jobs(["job-1"])
    assert (job.state, job.attempts, job.failures, job.deaths) == ("scheduled", 0, 0, 0)
    assert 25 * SECOND < job.run_at - any_stage.store.now() < 31 * SECOND
    assert any_stage.app.jobs.history("job-1")[-1].reason == "task 'nobody.knows' is unknown to this worker"
    assert any_stage.names("job.") == ["job.returned"]


def test_a_task_that_is_unknown_here_runs_where_it_is_known(stage):
    stage.store.add_jobs([NewJob(id="job-1", task="late.comer", payload=b"[]")])
    for _ in range(5):
        stage.work_off(stage.a_worker())
        stage.skip(31)
    stage.app.task(name="late.comer")(lambda: "here")
    stage.work_off(stage.a_worker())
    assert stage.states() == ["succeeded"]


@pytest.mark.parametrize("payload", [b"\xff\xfe", b"{", b"[1]", b"", b"[[1,2,3]]", b'[["many"]]', b'[[],{"b":1}]'])
def test_a_payload_that_cannot_be_read_parks_the_job_with_the_reason(any_stage, payload):
    @any_stage.app.task(name="mail.send")
    def send(a: int | None = None) -> None: ...

    @any_stage.app.task
    def fine() -> None: ...

    any_stage.store.add_jobs([NewJob(id="job-1", task="mail.send", payload=payload)])
    other = fine.enqueue()
    any_stage.work_off(any_stage.a_worker())
    job = any_stage.app.jobs.get("job-1")
    assert (job.state, job.attempts) == ("failed", 1)
    assert job.error.startswith("BadPayload: ")
    assert other.state == "succeeded"


def test_an_argument_whose_type_refuses_to_be_made_harms_no_other_job(any_stage):
    """The type's own code runs while the arguments are read; whatever it raises belongs to its job alone."""

    @any_stage.app.task
    def stock(goods: Strict) -> None: ...

    @any_stage.app.task
    def fine() -> None: ...

    before, odd, after = fine.enqueue(), stock.enqueue({"size": 1}), fine.enqueue()
    worker = any_stage.a_worker()
    try:
        any_stage.work_off(worker)
    except RuntimeError:
        pytest.fail("the worker's loop fell over one job's arguments")
    assert [job.state for job in (before, odd, after)] == ["succeeded", "failed", "succeeded"]


def test_an_argument_of_the_wrong_type_parks_the_job_and_names_it(any_stage):
    @any_stage.app.task
    def paint(colour: Colour) -> None: ...

    job = paint.enqueue("blue")
    any_stage.work_off(any_stage.a_worker())
    assert job.state == "failed"
    assert "argument 'colour'" in job.error


# Signals.


@pytest.mark.parametrize("kind", ["thread", "coroutine"])
def test_signals_end_an_attempt_as_they_say(stage, kind):
    signals = [Retry("busy", after="30s"), Snooze("closed", after="1h"), Cancel("the order is gone")]

    @stage.app.task(name="in.thread")
    def obey(number: int) -> None:
        raise signals[number]

    @stage.app.task(name="in.coroutine")
    async def obey_on_the_loop(number: int) -> None:
        raise signals[number]

    task = obey if kind == "thread" else obey_on_the_loop
    retried, snoozed, cancelled = (task.enqueue(number) for number in range(3))
    stage.work_off(stage.a_worker())
    now = stage.still.time
    assert (retried.state, (retried.record.run_at - now) // SECOND, retried.record.failures) == ("scheduled", 30, 1)
    assert (snoozed.state, (snoozed.record.run_at - now) // SECOND, snoozed.record.failures) == ("scheduled", 3600, 0)
    assert (cancelled.state, cancelled.record.cancel_reason) == ("cancelled", "the order is gone")
    assert sorted(stage.names("job.c", "job.r", "job.sn")) == ["job.cancelled", "job.retried", "job.snoozed"]


def test_a_signal_passes_an_except_clause_for_errors(stage):
    @stage.app.task
    def careful() -> None:
        try:
            raise Snooze(after="1h")  # noqa: TRY301 - the point of it
        except Exception:  # noqa: BLE001 - what careless tasks do
            return

    job = careful.enqueue()
    stage.work_off(stage.a_worker())
    assert job.state == "scheduled"


def test_asking_for_a_retry_spends_the_budget(stage):
    @stage.app.task(retries=1)
    def again() -> None:
        raise Retry(after="1s")

    job = again.enqueue()
    worker = stage.a_worker()
    for _ in range(2):
        stage.work_off(worker)
        stage.skip(60)
    assert job.state == "failed"


def test_snoozing_for_ever_is_allowed(stage):
    @stage.app.task(retries=0)
    def wait() -> None:
        raise Snooze(after="1s")

    job = wait.enqueue()
    worker = stage.a_worker()
    for _ in range(20):
        stage.work_off(worker)
        stage.skip(2)
    assert job.state == "scheduled"


# What a job knows of itself.


def test_a_job_knows_itself_and_nothing_is_known_outside(stage):
    seen = {}

    @stage.app.task
    def look() -> None:
        seen.update(id=current_job.id, attempt=current_job.attempt, meta=current_job.meta, here=bool(current_job))

    job = look.using(meta={"request": "r-1"}).enqueue()
    stage.work_off(stage.a_worker())
    assert seen == {"id": job.id, "attempt": 1, "meta": {"request": "r-1"}, "here": True}
    assert not current_job
    with pytest.raises(LookupError, match="only known inside a running job"):
        _ = current_job.id


def test_coroutines_that_run_side_by_side_know_each_themselves(stage):
    seen = []

    @stage.app.task
    async def look(number: int) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
            seen.append((number, current_job.meta["number"]))

    stage.app.enqueue_many([look.using(meta={"number": number}).job(number) for number in range(4)])
    stage.work_off(stage.a_worker())
    assert len(seen) == 12
    assert all(number == known for number, known in seen)


def test_an_override_of_the_retries_counts_for_one_job(stage):
    @stage.app.task(retries=5)
    def fail() -> None:
        raise ValueError("no stamp")

    one, other = fail.using(retries=0).enqueue(), fail.enqueue()
    stage.work_off(stage.a_worker())
    assert (one.state, other.state) == ("failed", "scheduled")


def test_a_job_that_is_not_kept_is_gone_once_it_has_succeeded(any_stage):
    @any_stage.app.task(keep=False)
    def work(*, well: bool) -> None:
        if not well:
            raise ValueError("no stamp")

    good, bad = work.enqueue(well=True), work.using(retries=0).enqueue(well=False)
    any_stage.work_off(any_stage.a_worker())
    assert any_stage.store.get_jobs([good.id]) == []
    assert bad.state == "failed"
