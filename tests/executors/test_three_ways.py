"""What holds wherever a task runs, in a thread, as a coroutine or in a process: its log, its arguments, its result."""

from __future__ import annotations

import resource
import sys
from datetime import UTC, datetime, timedelta

import pytest

from executors import three_ways
from executors.bench import until
from executors.three_ways import BYTES, COUNT, ECHO, FLOOD, LEAK, MIXED, ORDER, PAY, WAIT, Bill, Money, Point
from rota import BadPayload, JobFailed
from rota.app import internals
from rota.engine.executors.job_log import MOST_BYTES, MOST_LINES
from rota.store.memory import MemoryStore

WAYS = ["thread", "loop", "process"]


@pytest.fixture
def app():
    """The three ways' app, on a store that no other test has used."""
    three_ways.app.close()
    internals(three_ways.app).store.use(MemoryStore())
    yield three_ways.app
    three_ways.app.close()


def running(app):
    """A worker; started inside the test, because pytest puts streams of its own in place before it."""
    return app.running(scheduler=False, concurrency=2, drain="1s")


def result(app, job):
    with running(app):
        return job.result("60s")


def log_of(app, job) -> list[tuple[str, str]]:
    lines, after = [], 0
    while page := app.jobs.logs(job.id, after=after):
        lines += [(line.level, line.text) for line in page]
        after = page[-1].number
    return lines


@pytest.mark.parametrize("way", WAYS)
def test_a_thousand_lines_are_all_kept_in_order(app, way):
    job = COUNT[way].enqueue(1_000)
    result(app, job)
    assert log_of(app, job) == [("info", str(number)) for number in range(1_000)]


@pytest.mark.parametrize("way", WAYS)
def test_bytes_that_are_written_under_stdout_are_in_the_log(app, way):
    job = BYTES[way].enqueue()
    result(app, job)
    lines = log_of(app, job)
    assert [text for level, text in lines if level == "info"] == [
        "first ☕", "split ☕", "\\xff is no text", "a", "b", "c",
        *(f"text {number} and bytes" for number in range(MIXED)),
    ]  # fmt: skip
    assert [text for level, text in lines if level == "error"] == ["trouble"]


@pytest.mark.parametrize("way", WAYS)
def test_a_hundred_megabytes_are_capped_and_take_no_memory(app, way):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    job = FLOOD[way].enqueue(100)
    assert result(app, job) < 20_000  # KiB that the process grew where it was printed
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000  # … and the worker's own
    lines = log_of(app, job)
    assert lines[0] == ("info", "the first line")
    assert lines[-1][0] == "system"
    assert "the log is full" in lines[-1][1]
    assert len(lines) <= MOST_LINES + 1
    assert sum(len(text) for _, text in lines[:-1]) <= MOST_BYTES


@pytest.mark.parametrize("way", ["thread", "process"])  # a coroutine that never awaits holds up its own loop alone
def test_a_log_can_be_followed_while_its_job_runs(app, way, tmp_path):
    job = WAIT[way].enqueue(str(tmp_path / "gate"))
    with running(app):
        until(lambda: log_of(app, job) == [("info", "it has begun")])
        assert job.refresh().state == "running"
        (tmp_path / "gate").touch()
        job.result("60s")
    assert log_of(app, job) == [("info", "it has begun"), ("info", "it goes on")]


@pytest.mark.parametrize("way", WAYS)
def test_typed_arguments_and_results_come_back_as_they_went(app, way):
    there = Point(9, datetime(2026, 3, 1, tzinfo=UTC))
    given = result(app, ECHO[way].enqueue(ORDER, points=[ORDER.where, there]))
    assert type(given) is three_ways.Order
    assert (given.id, given.price, given.colour, given.where) == (ORDER.id, ORDER.price, ORDER.colour, there)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", [object(), lambda: None, sys.stdout, 1j], ids=["object", "lambda", "file", "complex"])
def test_what_json_cannot_hold_is_refused_before_it_is_sent(app, way, value):
    with pytest.raises(BadPayload, match=r"cannot be kept as JSON"):
        COUNT[way].enqueue(value)
    assert app.jobs.list().items == []


@pytest.mark.parametrize("way", WAYS)
def test_an_argument_of_another_type_parks_the_job_with_its_reason(app, way):
    job = COUNT[way].enqueue("many")
    with pytest.raises(JobFailed, match=r"number"):
        result(app, job)
    assert app.jobs.get(job.id).state == "failed"


def test_a_thread_that_forks_has_one_result(app):
    job = three_ways.forks_and_leaves.enqueue()
    assert result(app, job) == 7
    assert [line.state for line in app.jobs.history(job.id)] == ["queued", "running", "succeeded"]


def test_a_forked_child_that_returns_from_a_task_in_a_thread_ends_there(app):
    job = three_ways.forks_and_returns.enqueue()
    assert result(app, job) == 0
    assert [line.state for line in app.jobs.history(job.id)] == ["queued", "running", "succeeded"]


def test_a_log_is_queried_by_time(app):
    job = COUNT["thread"].enqueue(300)
    result(app, job)
    lines = [*app.jobs.logs(job.id), *app.jobs.logs(job.id, after=app.jobs.logs(job.id)[-1].number)]
    middle = lines[100].at
    assert app.jobs.logs(job.id, end=middle) == [line for line in lines if line.at < middle][:200]
    assert app.jobs.logs(job.id, start=middle) == [line for line in lines if line.at >= middle][:200]
    assert app.jobs.logs(job.id, start=middle, end=middle) == []
    hour = timedelta(hours=1)
    assert app.jobs.logs(job.id, start=middle - 2 * hour, end=middle - hour) == []
    assert app.jobs.logs(job.id, start=middle - hour, end=middle + hour) == lines[:200]


@pytest.mark.parametrize("way", WAYS)
def test_types_of_an_apps_own_come_and_go_by_their_codec(app, way):
    bill = Bill(Money(250, "EUR"), [Money(100, "EUR")], {"rest": Money(150, "EUR"), "none": None})
    given = result(app, PAY[way].enqueue(bill, Money(1, "EUR"), tip=Money(2, "EUR")))
    assert given == Bill(bill.total, [*bill.parts, Money(1, "EUR"), Money(2, "EUR")], bill.by_name)


@pytest.mark.parametrize("way", WAYS)
def test_a_task_that_tells_its_secrets_leaves_none_in_its_log_or_error(app, way):
    job = LEAK[way].enqueue('c4nary\'s "code"')
    with running(app), pytest.raises(JobFailed) as caught:
        job.result("60s")
    lines = [text for _, text in log_of(app, job)]
    assert sorted(line.split()[0] for line in lines) == ["logged", "printed", "written"]
    assert "no luck with" in job.error
    assert "c4nary" not in f"{lines} {job.error} {job.progress} {caught.value} {app.jobs.history(job.id)}"
