"""Enqueuing: one job or many, with options, keys, uniqueness, order and delay."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from uuid import UUID

import msgspec
import pytest

from app.steps import work
from rota import JobNotFound, ResultTimeout, current_job
from rota.errors import StoreUnavailable
from rota.model.micros import datetime_of
from rota.store.contract import LARGEST_BATCH


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int = 0


class Order(msgspec.Struct):
    id: UUID
    price: Decimal


@pytest.fixture
def greet(app):
    @app.task(name="shop.greet")
    def greet(name: str, times: int = 1) -> str:
        return name * times

    return greet


def test_an_enqueued_job_is_there_with_all_that_was_said(app, greet):
    job = greet.enqueue("world", times=2)
    assert not job.existed
    found = app.jobs.get(job.id)
    assert found == job
    assert (found.task, found.state, found.queue, found.priority) == ("shop.greet", "queued", "default", 0)
    assert (found.args, found.kwargs, found.key, found.attempts) == (["world"], {"times": 2}, None, 0)
    assert (found.started_at, found.finished_at, found.error, found.schedule_id) == (None, None, None, None)
    assert found.created_at.tzinfo is UTC


def test_calling_a_task_runs_it_here(app, greet):
    assert greet("a", times=3) == "aaa"
    assert app.jobs.list().items == []


def test_calling_a_coroutine_task_gives_its_coroutine(app):
    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    assert asyncio.run(add(1, 2)) == 3


def test_options_of_one_request_leave_the_task_alone(greet):
    special = greet.using(priority="high", queue="mail", key="user-42", retries=7, timeout="5m", meta={"by": "ann"})
    job = special.enqueue("a")
    assert (job.priority, job.queue, job.key) == (10, "mail", "user-42")
    plain = greet.enqueue("a")
    assert (plain.priority, plain.queue, plain.key) == (0, "default", None)


def test_meta_reaches_the_job(app):
    seen = []

    @app.task
    def look() -> None:
        seen.append((current_job.meta, current_job.schedule_id, current_job.occurrence, current_job.attempt))

    look.using(meta={"by": "ann"}).enqueue()
    look.enqueue()
    work(app, concurrency=1)
    assert seen == [({"by": "ann"}, None, None, 1), ({}, None, None, 1)]


def test_options_of_the_task_count_where_the_request_says_nothing(app):
    @app.task(queue="mail", priority=-5, description="Sends a letter")
    def send() -> None:
        """Not this."""

    job = send.enqueue()
    assert (job.queue, job.priority, send.options.description) == ("mail", -5, "Sends a letter")
    assert send.using(priority=0).enqueue().priority == 0


def test_many_requests_are_accepted_in_order(app, greet):
    number = LARGEST_BATCH * 2 + 500
    jobs = app.enqueue_many([greet.job(str(index)) for index in range(number)])
    assert len({job.id for job in jobs}) == number
    assert [jobs[index].args for index in (0, LARGEST_BATCH, number - 1)] == [["0"], [str(LARGEST_BATCH)], ["2499"]]
    first = app.jobs.list(limit=1).items[0]
    assert first == jobs[-1]
    (queue,) = app.open().list_queues()
    assert queue.counts["queued"] == number


def test_many_requests_may_differ(app, greet):
    @app.task(name="shop.other")
    def other() -> None: ...

    one, two, three, four = app.enqueue_many(
        [greet.job("a"), greet.using(priority=5, delay="1h").job("b"), other.job(), greet.using(queue="mail").job("c")]
    )
    assert [job.task for job in (one, two, three, four)] == ["shop.greet", "shop.greet", "shop.other", "shop.greet"]
    assert [job.state for job in (one, two, three)] == ["queued", "scheduled", "queued"]
    assert (two.priority, four.queue) == (5, "mail")


def test_no_request_at_all_is_no_job(app):
    assert app.enqueue_many([]) == []


def test_a_batch_with_one_bad_request_sends_nothing(app, greet):
    with pytest.raises(TypeError, match="cannot be kept as JSON"):
        app.enqueue_many([greet.job("a"), greet.job(object())])
    assert app.jobs.list().items == []


def test_coroutines_enqueue_without_holding_up_their_loop(app, greet):
    async def send() -> list[str]:
        jobs = await asyncio.gather(
            *(greet.aenqueue(str(number)) for number in range(20)),
            greet.using(key="one", priority=3).aenqueue("keyed"),
        )
        again = await greet.using(key="one").aenqueue("keyed")
        assert (again.existed, again) == (True, jobs[-1])
        return [job.id for job in jobs]

    ids = asyncio.run(send())
    assert len(set(ids)) == 21
    assert {job.id for job in app.jobs.list(limit=200).items} == set(ids)


# Keys.


def test_a_key_that_is_taken_gives_the_job_that_has_it(app, greet):
    first = greet.using(key="user-42").enqueue("a")
    second = greet.using(key="user-42").enqueue("b")
    assert (first.existed, second.existed) == (False, True)
    assert second == first
    assert second.args == ["a"]
    assert len(app.jobs.list().items) == 1


def test_a_key_is_free_again_when_its_job_has_ended(app, greet):
    first = greet.using(key="user-42").enqueue("a")
    work(app)
    second = greet.using(key="user-42").enqueue("a")
    assert (second.existed, second == first) == (False, False)


def test_a_cancelled_job_frees_its_key(app, greet):
    first = greet.using(key="user-42").enqueue("a")
    app.jobs.cancel(first.id)
    assert not greet.using(key="user-42").enqueue("a").existed


def test_a_key_may_hold_for_a_period(app, greet, clock):
    first = greet.using(key="user-42", key_for="1h").enqueue("a")
    work(app)
    clock.skip(3599)
    assert greet.using(key="user-42").enqueue("a") == first
    clock.skip(2)
    assert not greet.using(key="user-42").enqueue("a").existed


def test_a_key_within_one_batch_counts_too(app, greet):
    one, two = app.enqueue_many([greet.using(key="k").job("a"), greet.using(key="k").job("b")])
    assert (two.existed, two) == (True, one)


def test_the_event_says_whether_the_job_was_there(app, greet):
    heard = []
    app.on("job.enqueued", lambda event: heard.append(event.data["existed"]))
    for _ in range(2):
        greet.using(key="k").enqueue("a")
    assert heard == [False, True]


# Unique tasks.


def test_a_unique_task_has_one_live_job_per_arguments_however_the_call_is_spelled(app):
    @app.task(unique=True)
    def sync(shop: str, since: int = 0, *, deep: bool = False) -> None: ...

    first = sync.enqueue("a", 0)
    for again in (
        sync.enqueue("a"),
        sync.enqueue(shop="a"),
        sync.enqueue(since=0, shop="a"),
        sync.enqueue("a", since=0, deep=False),
        sync.using(priority=5).enqueue("a"),
    ):
        assert (again.existed, again) == (True, first)
    for other in (sync.enqueue("b"), sync.enqueue("a", 1), sync.enqueue("a", deep=True)):
        assert not other.existed


def test_the_order_of_keys_does_not_make_arguments_different(app):
    @app.task(unique=True)
    def sync(where: dict[str, int], **more: int) -> None: ...

    first = sync.enqueue({"a": 1, "b": 2}, x=1, y=2)
    assert sync.enqueue({"b": 2, "a": 1}, y=2, x=1) == first
    assert sync.enqueue({"a": 2, "b": 1}, x=1, y=2) != first


def test_two_unique_tasks_do_not_disturb_each_other(app):
    @app.task(unique=True)
    def one(n: int) -> None: ...

    @app.task(unique=True)
    def two(n: int) -> None: ...

    assert not one.enqueue(1).existed
    assert not two.enqueue(1).existed


def test_a_unique_task_may_run_again_when_it_has_ended(app):
    @app.task(unique=True)
    def sync() -> None: ...

    first = sync.enqueue()
    work(app)
    again = sync.enqueue()
    assert (again.existed, again == first) == (False, False)


def test_a_task_may_be_unique_for_a_period(app, clock):
    @app.task(unique="1h")
    def sync(shop: str) -> None: ...

    first = sync.enqueue("a")
    work(app)
    clock.skip(3599)
    assert sync.enqueue("a") == first
    assert not sync.enqueue("b").existed
    clock.skip(2)
    assert not sync.enqueue("a").existed


def test_a_key_of_its_own_goes_before_uniqueness(app):
    @app.task(unique=timedelta(hours=1))
    def sync() -> None: ...

    first = sync.enqueue()
    other = sync.using(key="another").enqueue()
    assert (other.existed, other == first) == (False, False)


# Order and time.


def test_the_higher_priority_goes_first_and_the_older_within_one(app):
    order = []

    @app.task
    def note(name: str) -> None:
        order.append(name)

    for name, priority in (("c", 0), ("a", 10), ("e", -100), ("b", 10), ("d", 0), ("top", 100)):
        note.using(priority=priority).enqueue(name)
    work(app, concurrency=1)
    assert order == ["top", "a", "b", "c", "d", "e"]


def test_a_delayed_job_waits_and_then_runs(app, clock, greet):
    job = greet.using(delay="5m").enqueue("a")
    assert (job.state, job.run_at) == ("scheduled", clock.now + timedelta(minutes=5))
    work(app)
    assert job.refresh().state == "scheduled"
    clock.skip(300)
    work(app)
    assert job.refresh().state == "succeeded"


def test_a_job_may_be_given_its_instant_in_any_zone(app, clock, greet):
    at = (clock.now + timedelta(hours=1)).astimezone(timezone(timedelta(hours=5, minutes=30)))
    job = greet.using(at=at).enqueue("a")
    assert (job.state, job.run_at) == ("scheduled", at)
    clock.skip(3600)
    work(app)
    assert job.refresh().state == "succeeded"


def test_an_instant_that_is_past_means_now(app, greet):
    job = greet.using(at=datetime(2001, 1, 1, tzinfo=UTC)).enqueue("a")
    work(app)
    assert job.refresh().state == "succeeded"


def test_a_delayed_job_may_be_cancelled(app, greet):
    job = greet.using(delay="5m").enqueue("a")
    assert app.jobs.cancel(job.id).state == "cancelled"


def test_the_clock_of_the_store_says_when_a_job_was_made(greet, clock):
    job = greet.enqueue("a")
    assert job.created_at == datetime_of(clock.time)


def test_arguments_arrive_as_the_hints_say(app):
    seen = []

    @app.task
    def take(when: datetime, order: Order, point: Point, colour: Colour, sizes: set[int], plain) -> None:
        seen.append((when, order, point, colour, sizes, plain))

    when = datetime(2026, 2, 3, 4, 5, tzinfo=UTC)
    order = Order(UUID(int=7), Decimal("1.10"))
    take.enqueue(when, order, Point(1, 2), Colour.RED, {1, 2}, plain=(1, "a"))
    work(app)
    assert seen == [(when, order, Point(1, 2), Colour.RED, {1, 2}, [1, "a"])]


def test_a_job_that_is_not_kept_is_gone_when_it_has_succeeded(app):
    @app.task(keep=False)
    def quick() -> None: ...

    job = quick.enqueue()
    work(app)
    with pytest.raises(JobNotFound):
        job.refresh()


def test_handles_are_told_apart_by_their_id(app, greet):
    job = greet.enqueue("a")
    same = app.jobs.get(job.id)
    assert len({job, same, greet.enqueue("a")}) == 2
    assert job != "a job"
    assert repr(same) == f"<job {job.id} shop.greet queued>"


def test_a_batch_that_is_not_taken_ends_the_sending_in_order(app, greet, monkeypatch):
    store = app.open()
    taken = []
    add_jobs = store.add_jobs

    def add(jobs, **options):
        if len(taken) == 1:
            raise StoreUnavailable("gone")
        taken.append(len(jobs))
        return add_jobs(jobs, **options)

    monkeypatch.setattr(store, "add_jobs", add)
    with pytest.raises(StoreUnavailable):
        app.enqueue_many([greet.job(str(index)) for index in range(LARGEST_BATCH * 3)])
    assert taken == [LARGEST_BATCH]
    assert app.jobs.list(limit=1).items[0].args == [str(LARGEST_BATCH - 1)]


@pytest.mark.parametrize(("delay", "micros"), [("0s", 0), ("250ms", 250_000), ("0.5s", 500_000), (timedelta(0), 0)])
def test_a_delay_may_be_shorter_than_a_second_or_nothing(app, delay, micros):
    @app.task
    def job() -> None: ...

    record = job.using(delay=delay).enqueue().record
    assert record.run_at - record.created_at == micros
    assert record.state == ("scheduled" if micros else "queued")


def test_a_result_may_be_awaited_for_a_number_of_seconds(app):
    @app.task
    def job() -> None: ...

    made = job.enqueue()
    for timeout, told in ((0, "0 s"), (0.01, "0.01 s"), ("10ms", "10ms"), (timedelta(0), "0:00:00")):
        with pytest.raises(ResultTimeout, match=f"is still queued after {told}; it goes on"):
            made.result(timeout)
