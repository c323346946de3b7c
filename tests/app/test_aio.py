"""Coroutines have the same verbs; they block no event loop, and waits keep no enqueue waiting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rota import App, JobFailed, JobNotFound, ResultTimeout, every

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def app() -> Iterator[App]:
    app = App("memory://")
    yield app
    app.close()


def test_a_coroutine_enqueues_and_hears_the_result(app: App):
    @app.task(name="double")
    def double(n: int) -> int:
        return 2 * n

    async def ask() -> int:
        job = await double.aenqueue(21)
        return await app.aio.jobs.result(job.id, timeout="10s")

    with app.running(scheduler=False):
        assert asyncio.run(ask()) == 42


def test_many_waits_keep_no_enqueue_waiting(app: App):
    @app.task(name="double")
    def double(n: int) -> int:
        return 2 * n

    async def wait_for_many() -> list[int]:
        jobs = [await double.aenqueue(n) for n in range(50)]
        waits = [asyncio.create_task(app.aio.jobs.result(job.id, timeout="10s")) for job in jobs]
        await asyncio.sleep(0)  # all of them wait, and nobody works yet
        last = await double.aenqueue(50)
        await app.aio.call(lambda: app.start(scheduler=False))
        return [*await asyncio.gather(*waits), await app.aio.jobs.result(last.id, timeout="10s")]

    assert asyncio.run(wait_for_many()) == [2 * n for n in range(51)]


def test_a_result_that_does_not_come_times_out(app: App):
    task = app.task(len, name="count")

    async def ask() -> None:
        job = await task.aenqueue("abc")
        await app.aio.jobs.result(job.id, timeout="1s")

    with pytest.raises(ResultTimeout, match="still queued"):
        asyncio.run(ask())


def test_a_failed_job_says_with_what(app: App):
    @app.task(name="fail", retries=0)
    def fail() -> None:
        raise ValueError("no")

    async def ask() -> None:
        await app.aio.jobs.result((await fail.aenqueue()).id, timeout="10s")

    with app.running(scheduler=False), pytest.raises(JobFailed, match="ValueError: no"):
        asyncio.run(ask())


def test_the_verbs_about_jobs_and_schedules_are_the_same(app: App):
    task = app.task(len, name="count")

    async def use() -> list[object]:
        (job,) = await app.aio.enqueue_many([task.job("abc")])
        await app.aio.jobs.cancel(job.id, reason="no need")
        view = await app.aio.schedules.put("tick", task.job("abc"), every("1h"), description="every hour")
        runs = await app.aio.schedules.next_runs("tick", 3)
        await app.aio.schedules.remove("tick")
        return [(await app.aio.jobs.get(job.id)).state, view.description, len(runs)]

    assert asyncio.run(use()) == ["cancelled", "every hour", 3]


def test_errors_reach_the_coroutine(app: App):
    async def ask() -> None:
        await app.aio.jobs.get("nobody")

    with pytest.raises(JobNotFound):
        asyncio.run(ask())


def test_a_lifespan_runs_the_services(app: App):
    @app.task(name="double")
    def double(n: int) -> int:
        return 2 * n

    async def serve() -> int:
        async with app.running(object()):
            return await app.aio.jobs.result((await double.aenqueue(4)).id, timeout="10s")

    assert asyncio.run(serve()) == 8
    assert app.open().list_nodes() == []
