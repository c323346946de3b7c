"""Results: what a task returned comes back as its return type says; what has none to give says why."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec
import pytest

from app.steps import work
from rota import BadDuration, Cancel, JobFailed, JobNotFound, ResultTimeout


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    when: date


class Order(msgspec.Struct):
    id: UUID
    price: Decimal
    colours: list[Colour]


VALUES: list[tuple[Any, Any]] = [
    (date, date(2026, 2, 28)),
    (datetime, datetime(2026, 2, 28, 1, 2, 3, 4, tzinfo=UTC)),
    (timedelta, timedelta(hours=1, seconds=3)),
    (UUID, UUID(int=42)),
    (Decimal, Decimal("1.10")),
    (Colour, Colour.BLUE),
    (Point, Point(3, date(2026, 1, 1))),
    (Order, Order(UUID(int=1), Decimal("9.99"), [Colour.RED])),
    (list[Point], [Point(1, date(2026, 1, 1))]),
    (dict[str, Decimal], {"a": Decimal("0.1")}),
    (tuple[int, str], (1, "a")),
    (set[int], {1, 2}),
    (bytes, b"\x00\xff"),
    (int | None, None),
    (str, "Zürich ☕"),
    (float, 0.1),
    (bool, True),
    (Any, {"a": [1, None]}),
]


@pytest.mark.parametrize(("hint", "value"), VALUES, ids=[str(hint) for hint, _ in VALUES])
def test_a_result_has_the_type_that_the_task_names(app, hint, value):
    def give():
        return value

    give.__annotations__["return"] = hint
    task = app.task(name="shop.give")(give)
    job = task.enqueue()
    with app.running(scheduler=False):
        result = job.result("10s")
    assert (result, type(result)) == (value, type(value))
    assert app.jobs.result(job.id, timeout="1s") == value


def test_without_a_return_type_a_result_is_plain_json(app):
    @app.task
    def give():
        return Point(3, date(2026, 1, 1))

    job = give.enqueue()
    work(app)
    assert job.result() == {"x": 3, "when": "2026-01-01"}


def test_a_result_read_where_the_task_is_unknown_is_plain_json(make_app):
    app, other = make_app(), make_app(name="other")

    @app.task
    def give() -> date:
        return date(2026, 1, 1)

    job = give.enqueue()
    work(app)
    assert other.jobs.result(job.id) == "2026-01-01"


def test_a_result_of_an_older_return_type_is_given_as_it_is(app):
    def give() -> str:
        return "three"

    task = app.task(name="shop.give")(give)
    job = task.enqueue()
    work(app)
    give.__annotations__["return"] = int
    assert job.result() == "three"


def test_coroutines_have_results_too(app):
    @app.task
    async def give() -> Decimal:
        return Decimal("1.5")

    job = give.enqueue()
    work(app)
    assert job.result() == Decimal("1.5")


def test_a_failed_job_has_no_result_and_says_why(app, caplog):
    @app.task(name="shop.fail", retries=0)
    def fail() -> None:
        raise ValueError("no stamp")

    job = fail.enqueue()
    with caplog.at_level(logging.CRITICAL):
        work(app)
    with pytest.raises(JobFailed, match=rf"job {job.id} \(shop.fail\) failed: ValueError: no stamp"):
        job.result("10s")


@pytest.mark.parametrize("how", ["by hand", "by the task"])
def test_a_cancelled_job_has_no_result_and_says_why(app, how):
    @app.task
    def stop() -> None:
        raise Cancel("no longer wanted")

    job = stop.enqueue()
    if how == "by hand":
        app.jobs.cancel(job.id, reason="no longer wanted")
    work(app)
    with pytest.raises(JobFailed, match="cancelled: no longer wanted"):
        job.result("10s")


def test_a_result_that_does_not_come_in_time_says_so_and_the_job_goes_on(app, monkeypatch):
    @app.task(name="shop.late")
    def late() -> int:
        return 1

    job = late.enqueue()
    ticks = iter(range(100))
    monkeypatch.setattr("rota.client.jobs.time.monotonic", lambda: float(next(ticks)))
    with pytest.raises(ResultTimeout, match=r"\(shop.late\) is still queued after 5s; it goes on"):
        job.result("5s")
    monkeypatch.undo()
    work(app)
    assert job.result("1s") == 1


def test_a_result_may_come_while_it_is_waited_for(app, gate):
    @app.task
    def hold() -> str:
        gate.wait(10)
        return "done"

    job = hold.enqueue()
    with app.running(scheduler=False):
        gate.set()
        assert job.result() == "done"


def test_no_result_of_a_job_that_does_not_exist(app):
    with pytest.raises(JobNotFound, match="may have been pruned"):
        app.jobs.result("0" * 28, timeout="1s")


@pytest.mark.parametrize("timeout", ["soon", "5", True, -1, float("nan")])
def test_a_timeout_is_a_duration_or_a_number_of_seconds(app, timeout):
    @app.task
    def work_() -> None: ...

    with pytest.raises(BadDuration):
        work_.enqueue().result(timeout)
