"""Coroutines that will not be cancelled: they end as they end, and hold up nobody else."""

from __future__ import annotations

import asyncio
import threading

from engine.stage import PATIENCE


def test_a_coroutine_that_swallows_its_cancellation_ends_as_it_ends(any_stage):
    begun = threading.Event()

    @any_stage.app.task(retries=0)
    async def stubborn() -> str:
        begun.set()
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            return "I stayed"
        return "nobody asked me to go"

    job = stubborn.enqueue()
    worker = any_stage.a_worker()
    worker.turn()
    assert begun.wait(PATIENCE)
    any_stage.app.jobs.cancel(job.id)
    any_stage.a_keeper(worker).turn()
    any_stage.work_off(worker)
    assert job.result("1s") == "I stayed"


def test_a_coroutine_that_goes_on_after_its_cancellation_holds_up_nobody(any_stage, gate):
    begun = threading.Event()

    @any_stage.app.task(retries=0)
    async def stubborn() -> None:
        begun.set()
        while not gate.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                begun.set()

    @any_stage.app.task
    async def other() -> str:
        return "done"

    first = stubborn.enqueue()
    worker = any_stage.a_worker()
    worker.turn()
    assert begun.wait(PATIENCE)
    begun.clear()
    any_stage.app.jobs.cancel(first.id)
    any_stage.a_keeper(worker).turn()
    assert begun.wait(PATIENCE)  # it heard, and goes on
    second = other.enqueue()
    any_stage.work_until(worker, lambda: second.refresh().state == "succeeded")
    assert first.refresh().state == "running"
    gate.set()
    any_stage.work_off(worker)
