from __future__ import annotations

import threading

import pytest

from engine.stage import Stage
from rota.engine.executors.capture import capture
from rota.store.sqlite import SqliteStore


@pytest.fixture
def stage():
    """The engine on a memory store whose clock the test moves."""
    stage = Stage()
    yield stage
    stage.close()


@pytest.fixture(params=["memory", "sqlite"])
def any_stage(request, tmp_path):
    """The engine on each store that needs no server."""
    stage = Stage() if request.param == "memory" else Stage(SqliteStore(tmp_path / "rota.db"))
    stage.app.open()
    yield stage
    stage.close()


@pytest.fixture
def gate():
    """A gate that tasks wait at; it opens at the end, so that no thread outlives its test."""
    gate = threading.Event()
    yield gate
    gate.set()


@pytest.fixture
def captured():
    """The process's streams are given to jobs, as a running node does it."""
    return capture


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Around the test alone: between a fixture and its test, pytest puts streams of its own in place."""
    if "captured" not in pyfuncitem.fixturenames:
        return (yield)
    capture.begin()
    try:
        return (yield)
    finally:
        capture.end()
