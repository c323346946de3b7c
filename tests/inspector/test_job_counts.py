"""The numbers of the tabs: exact in every state, and counted only where nothing says them already."""

from __future__ import annotations

import pytest

from rota import App
from rota.inspector import job_counts
from rota.inspector.job_counts import count_by_state
from rota.model.jobs.job import State
from rota.store.contract import JobFilter
from rota.testing.store_suite.steps import claim, succeed

NUMBERS = {"queued": 2, "scheduled": 1, "running": 0, "held": 0, "succeeded": 4, "failed": 0, "cancelled": 1}


@pytest.fixture
def store():
    app = App("memory://")

    @app.task(name="mail")
    def mail() -> None: ...

    @app.task(name="pay")
    def pay() -> None: ...

    store = app.open()
    app.enqueue_many([*(mail.job() for _ in range(4)), pay.job()])
    for job in claim(store, 5, now=store.now()):
        succeed(store, job, now=store.now())
    for _ in range(2):
        mail.enqueue()
    mail.using(delay="1h").enqueue()
    app.jobs.cancel(mail.enqueue().id)
    pay.using(queue="other").enqueue()
    yield store
    app.close()


@pytest.mark.parametrize("states", [(), (State.FAILED,), (State.QUEUED, State.CANCELLED)])
def test_every_state_is_counted_whatever_states_are_shown(store, states):
    assert count_by_state(store, JobFilter(task="mail", states=states), store.list_queues()) == NUMBERS


def test_a_state_without_jobs_and_those_that_succeeded_are_not_counted_by_themselves(store, monkeypatch):
    asked = []
    count = store.count_jobs
    monkeypatch.setattr(store, "count_jobs", lambda where, **rest: asked.append(where.states) or count(where, **rest))
    count_by_state(store, JobFilter(task="mail"), store.list_queues())
    assert sorted(asked) == [(), (State.CANCELLED,), (State.QUEUED,), (State.SCHEDULED,)]


def test_the_queues_have_the_numbers_of_a_queue(store, monkeypatch):
    monkeypatch.setattr(store, "count_jobs", None)
    of_queue = {**NUMBERS, "succeeded": 5}
    assert count_by_state(store, JobFilter(queue="default"), store.list_queues()) == of_queue
    assert count_by_state(store, JobFilter(queue="none"), store.list_queues()) == dict.fromkeys(NUMBERS, 0)


def test_those_that_succeeded_are_counted_by_themselves_if_another_state_has_more_than_is_counted(store, monkeypatch):
    monkeypatch.setattr(job_counts, "MOST_COUNTED", 2)
    assert count_by_state(store, JobFilter(task="mail"), store.list_queues()) == NUMBERS
    monkeypatch.setattr(job_counts, "MOST_COUNTED", 3)
    assert count_by_state(store, JobFilter(task="mail"), store.list_queues()) == {**NUMBERS, "succeeded": 3}
