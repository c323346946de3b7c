"""A coroutine that blocks its event loop: it is noticed, told from one that awaits, and not handed on for ever."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from engine.stage import PATIENCE
from rota import App
from rota.engine.executors import loop as loop_module
from rota.model.jobs.job import State, history_of


@pytest.fixture
def app(monkeypatch):
    monkeypatch.setattr(loop_module, "HEARTBEAT", 0.01)
    app = App("memory://")
    yield app
    app.close()


@pytest.fixture
def gate():
    gate = threading.Event()
    yield gate
    gate.set()


class Hand:
    """A clock that a test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def until(is_true) -> None:
    since = time.monotonic()
    while not is_true():
        assert time.monotonic() < since + PATIENCE, "it never came true"
        threading.Event().wait(0.005)


def started(app, clock):
    """A node, whose loop goes by a test's clock."""
    node = app.start(drain="1s")
    node.worker.executors.loop._monotonic = clock
    return node


def test_a_loop_that_a_coroutine_blocks_is_stuck_until_it_turns_again(app, gate):
    begun = threading.Event()

    @app.task
    async def blocks() -> int:
        begun.set()
        gate.wait()
        return 7

    clock = Hand()
    node = started(app, clock)
    job = blocks.enqueue()
    assert begun.wait(PATIENCE)
    assert node.stuck == 0
    clock.now += loop_module.BLOCKED_AFTER
    assert node.stuck == 1
    assert node.worker.executors.loop.blocker.job.id == job.id
    gate.set()
    assert job.result(timeout="10s") == 7
    until(lambda: node.stuck == 0)


def test_a_loop_whose_coroutines_await_turns_and_is_not_stuck(app):
    begun, go_on = threading.Event(), asyncio.Event()

    @app.task
    async def awaits() -> int:
        begun.set()
        await go_on.wait()
        return 7

    clock = Hand()
    node = started(app, clock)
    job = awaits.enqueue()
    assert begun.wait(PATIENCE)
    for _ in range(3):
        clock.now += 10 * loop_module.BLOCKED_AFTER
        until(lambda: node.stuck == 0)
    node.worker.executors.loop._loop.call_soon_threadsafe(go_on.set)
    assert job.result(timeout="10s") == 7


def test_a_loop_without_runs_is_never_stuck_and_does_not_wake(app):
    @app.task
    async def quick() -> int:
        return 7

    clock = Hand()
    node = started(app, clock)
    assert quick.enqueue().result(timeout="10s") == 7
    until(lambda: not node.worker.executors.loop._is_beating)
    clock.now += 10 * loop_module.BLOCKED_AFTER
    assert node.stuck == 0
    assert quick.enqueue().result(timeout="10s") == 7


def test_a_job_that_blocks_its_loop_as_its_worker_ends_has_died_and_others_are_given_back(app, gate):
    begun = threading.Event()

    @app.task
    async def blocks() -> None:
        begun.set()
        gate.wait()

    @app.task
    async def awaits() -> None:
        await asyncio.Event().wait()

    clock = Hand()
    node = started(app, clock)
    other = awaits.enqueue()
    until(lambda: len(node.worker.executors.loop._tasks) == 1)
    job = blocks.enqueue()
    assert begun.wait(PATIENCE)
    clock.now += loop_module.BLOCKED_AFTER
    app.stop()
    blocked, given_back = app.open().get_jobs([job.id, other.id])
    assert (blocked.state, blocked.deaths) == (State.QUEUED, 1)
    assert "blocked the event loop" in history_of(blocked)[-1].reason
    assert (given_back.state, given_back.deaths) == (State.QUEUED, 0)
