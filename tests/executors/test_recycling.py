"""Child processes are replaced by jobs, age or memory, as the app says."""

from __future__ import annotations

import pytest

from executors import deeds
from rota import BadDuration, BadOption
from rota.app import internals
from rota.engine.executors.processes import Recycling
from rota.engine.worker.worker import WorkerSettings
from rota.model.micros import SECOND
from rota.store.memory import MemoryStore


@pytest.fixture
def app():
    deeds.app.close()
    internals(deeds.app).store.use(MemoryStore())
    yield deeds.app
    deeds.app.close()


def pids(count: int) -> list[int]:
    """The children that run so many jobs, one after another."""
    return [deeds.who.enqueue().result(timeout="15s") for _ in range(count)]


def test_a_child_is_replaced_after_as_many_jobs_as_the_app_says(app):
    with app.running(concurrency=1, recycle_jobs=2):
        ran = pids(4)
    assert ran[0] == ran[1] != ran[2] == ran[3]


def test_a_child_that_is_larger_than_the_app_allows_runs_one_job(app):
    with app.running(concurrency=1, recycle_memory="1M"):
        assert len(set(pids(2))) == 2


def test_children_are_kept_by_default(app):
    with app.running(concurrency=1):
        assert len(set(pids(3))) == 1


def test_what_is_not_said_stays_as_it_is():
    assert WorkerSettings().recycling == Recycling()
    said = WorkerSettings(recycle_jobs=5, recycle_age=90 * SECOND, recycle_memory=1024)
    assert said.recycling == Recycling(jobs=5, age=90.0, memory=1024)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"recycle_jobs": 0}, BadOption),
        ({"recycle_jobs": True}, BadOption),
        ({"recycle_jobs": "5"}, BadOption),
        ({"recycle_age": "soon"}, BadDuration),
        ({"recycle_memory": "much"}, BadOption),
    ],
)
def test_what_makes_no_sense_is_refused(app, options, error):
    with pytest.raises(error):
        app.start(**options)
