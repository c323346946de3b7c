"""What the store keeps is told by any node, on every store, and never counted."""

from __future__ import annotations

import pytest

from every_store import CHOSEN, SERVED, fresh_place
from observe.scraping import scrape
from rota import App, every
from rota.errors import StoreUnavailable
from rota.store.contract import Exchange, Node

KINDS = [kind for kind in ("memory", "sqlite") if CHOSEN == [""] or kind in CHOSEN] + list(SERVED)


@pytest.fixture(params=KINDS)
def app(request, tmp_path):
    place = fresh_place(request.param, tmp_path)
    app = App(place.make())
    yield app
    app.close()


def test_queues_in_numbers(app):
    @app.task(name="t.a", queue="mail", retries=0)
    def a() -> None: ...

    later = a.using(delay="1h")
    for task in (a, a, later):
        task.enqueue()
    store = app.open()
    store.exchange(Exchange(holder="w", queues=("mail",), want=1))
    store.pause_queue("mail", paused=True)
    seen = scrape(app)
    counts = {state: seen.value("rota_queue_jobs", queue="mail", state=state) for state in ("queued", "running")}
    assert counts == {"queued": 1, "running": 1}
    assert seen.value("rota_queue_jobs", queue="mail", state="scheduled") == 1
    assert seen.value("rota_queue_oldest_age_seconds", queue="mail") > 0
    assert seen.value("rota_queue_paused", queue="mail") == 1
    assert seen.value("rota_jobs_ended_total", queue="mail", state="succeeded") == 0
    assert seen.value("rota_store_up") == 1


def test_totals_rise_when_jobs_end(app):
    @app.task(name="t.a")
    def a() -> None: ...

    jobs = [a.enqueue() for _ in range(3)]
    with app.running(scheduler=False) as node:
        for job in jobs:
            job.result(timeout="10s")
        assert node.worker is not None
    app.jobs.cancel(a.using(delay="1h").enqueue().id)
    seen = scrape(app)
    assert seen.value("rota_jobs_ended_total", queue="default", state="succeeded") == 3
    assert seen.value("rota_jobs_ended_total", queue="default", state="cancelled") == 1
    assert seen.value("rota_queue_oldest_age_seconds", queue="default") == 0


def test_nodes_by_role_their_last_beat_and_their_slots(app):
    store = app.open()
    now = store.now()
    store.record_heartbeat(Node(id="a", host="h", pid=1, roles=("worker",), concurrency=8, running=3))
    store.record_heartbeat(Node(id="b", host="h", pid=2, roles=("worker", "scheduler"), concurrency=4, running=9))
    store.record_heartbeat(Node(id="c", host="h", pid=3, roles=("worker",), concurrency=16), now=now - 60_000_000)
    seen = scrape(app)
    assert seen.value("rota_nodes", role="worker", state="alive") == 2
    assert seen.value("rota_nodes", role="worker", state="silent") == 1
    assert seen.value("rota_nodes", role="scheduler", state="alive") == 1
    assert 0 <= seen.value("rota_last_beat_age_seconds", role="worker") < 30
    assert (seen.value("rota_slots"), seen.value("rota_slots_in_use")) == (12, 7)


def test_no_node_is_told_as_none(app):
    seen = scrape(app)
    assert seen.has("rota_nodes", role="scheduler", state="alive")
    assert seen.value("rota_nodes", role="scheduler", state="alive") == 0
    assert not seen.has("rota_last_beat_age_seconds", role="worker")


def test_schedules_by_state_with_last_and_next_runs(app):
    @app.task(name="t.a", retries=0)
    def a() -> None:
        raise ValueError

    app.schedules.put("on", a.job(), every("1h"))
    for name, stop in (("off", app.schedules.disable), ("still", app.schedules.pause)):
        app.schedules.put(name, a.job(), every("1h"))
        stop(name)
    job = app.schedules.run_now("on")
    seen = scrape(app)
    assert seen.value("rota_schedules", state="on") == 1
    assert seen.value("rota_schedules", state="disabled") == 1
    assert seen.value("rota_schedules", state="paused") == 1
    assert seen.labels("scheduler_next_run_timestamp", "schedule_id") == {"on"}
    shown = app.schedules.get("on")
    assert seen.value("scheduler_next_run_timestamp", schedule_id="on") == shown.next_run.timestamp()
    if shown.last_run is not None:
        assert seen.value("scheduler_last_run_timestamp", schedule_id="on") == shown.last_run.timestamp()
    assert seen.value("rota_schedules_failing") == 0
    with app.running(scheduler=False) as node:
        assert node.worker.is_idle.wait(10)
    assert job.refresh().state == "failed"
    assert scrape(app).value("rota_schedules_failing") == 1


def test_a_store_that_does_not_answer_is_told_and_the_rest_too(app, monkeypatch):
    def fails(*_args, **_options):
        raise StoreUnavailable("postgresql://me:hunter2@host is down")

    assert app.metrics.text()
    monkeypatch.setattr(app.open(), "list_queues", fails)
    seen = scrape(app)
    assert seen.has("rota_store_up")
    assert seen.value("rota_store_up") == 0
    assert seen.has("rota_lease_losses_total")
    assert not seen.has("rota_slots")
