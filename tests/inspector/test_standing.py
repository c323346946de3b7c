"""How everything stands: which role is missing and since when, the room there is, and why a run is overdue."""

from __future__ import annotations

import pytest

from observe.scraping import scrape
from rota import App, every
from rota.inspector.coming import next_runs
from rota.inspector.schedule_index import health_of
from rota.inspector.standing import read_schedules, read_standing
from rota.model.jobs.outcome import Failed
from rota.model.micros import SECOND, datetime_of
from rota.store.contract import Exchange, Node, Seal
from rota.testing import Kit, ManualClock
from rota.testing.store_suite.builders import MINUTE, T0
from rota.testing.store_suite.steps import add_schedule, claim_one, fail, fire, read_schedule, settle_job


@pytest.fixture
def app():
    app = App("memory://", name="shop")
    app.task(name="noop")(lambda: None)
    yield app
    app.close()


def stand(store):
    return read_standing(store, read_schedules(store))


def beat(store, name, role, *, ago=0, running=0):
    at = store.now() - ago * SECOND
    node = Node(id=name, host=name, pid=1, roles=(role,), queues=("default",), tasks=("noop",), concurrency=8,
                running=running, beat_at=at, started_at=at)  # fmt: skip
    store.record_heartbeat(node, now=at)
    return datetime_of(at)


def test_the_last_heartbeat_is_that_of_the_role_that_is_missing(app):
    app.schedules.put("tick", app.__rota_tasks__.get("noop").job(), every("1h"))
    store = app.open()
    last = beat(store, "gone", "scheduler", ago=600)
    now = beat(store, "here", "worker")
    facts = stand(store)
    assert (facts.standing, facts.last_scheduler_at, facts.last_worker_at) == ("no_scheduler", last, now)


def test_the_room_is_what_the_running_jobs_leave_of_the_slots(app):
    """A heartbeat is some seconds old; the count of running jobs is not."""
    store = app.open()
    beat(store, "here", "worker", running=0)
    app.enqueue_many([app.__rota_tasks__.get("noop").job() for _ in range(3)])
    store.exchange(Exchange(holder="here", want=3, queues=("default",)))
    facts = stand(store)
    assert (facts.running, facts.slots, facts.free) == (3, 8, 5)


def test_a_schedule_that_fails_does_so_while_its_next_run_waits_for_the_retry(app):
    """The first page, the list of schedules and the metrics have the same rule as alerts."""
    store = app.open()
    add_schedule(store, now=T0)
    fire(store, now=T0 + MINUTE)
    fail(store, claim_one(store, now=T0 + MINUTE), now=T0 + MINUTE)
    fire(store, now=T0 + 2 * MINUTE)
    settle_job(store, claim_one(store, now=T0 + 2 * MINUTE), Failed("boom"), now=T0 + 2 * MINUTE, retries=1)
    assert [one.schedule_id for one in read_schedules(store).failing] == ["tick"]
    assert health_of(read_schedule(store), store.now()) == "failing"
    assert scrape(app).value("rota_schedules_failing") == 1


def test_an_overdue_run_on_a_sealed_store_says_that_it_is_sealed():
    clock = ManualClock("2026-11-16T12:00:00Z")
    with Kit(App("memory://", name="shop"), clock) as kit:
        task = kit.app.task(name="noop")(lambda: None)
        kit.app.schedules.put("tick", task.job(), every("1m"))
        clock.travel("5m")
        store = kit.app.open()
        beat(store, "here", "scheduler")
        assert next_runs(store)[0].cause == "behind"
        store.seal(Seal(target="memory://other"))
        assert next_runs(store)[0].cause == "sealed"
