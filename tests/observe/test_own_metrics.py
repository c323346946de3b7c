"""What a process counts about its own work: each number moves when the thing happens, and only then."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from observe.scraping import scrape
from rota import Cancel, Snooze, every
from rota.app import internals
from rota.model.jobs.job import NewJob
from rota.model.micros import SECOND
from rota.store.contract import Exchange


@pytest.fixture
def app(stage):
    assert stage.app.metrics.text()  # from here on it counts
    return stage.app


@pytest.fixture
def tick(app):
    @app.task(name="engine.tick")
    def tick() -> None: ...

    return tick


def fire(stage, scheduler, seconds: float) -> None:
    stage.skip(seconds)
    scheduler.turn()


def test_attempts_are_counted_by_task_and_outcome(stage, app):
    @app.task(name="t.ok")
    def ok() -> None: ...

    @app.task(name="t.fail", retries=1)
    def fail() -> None:
        raise ValueError

    @app.task(name="t.snooze")
    def snooze() -> None:
        raise Snooze(after="10h")

    @app.task(name="t.stop")
    def stop() -> None:
        raise Cancel("enough")

    for task in (ok, ok, fail, snooze, stop):
        task.enqueue()
    stage.still.add_jobs([NewJob(id="unknown", task="t.unknown", payload=b"[]")])
    worker = stage.a_worker()
    stage.work_off(worker)
    stage.skip(3600)
    stage.work_until(worker, lambda: "job.failed" in stage.names())
    seen = scrape(app)
    counted = {
        (sample.labels["task"], sample.labels["outcome"]): sample.value
        for sample in seen.samples
        if sample.name == "rota_job_attempts_total" and sample.labels["task"] != "t.unknown"
    }
    assert counted == {
        ("t.ok", "succeeded"): 2,
        ("t.fail", "retried"): 1,
        ("t.fail", "failed"): 1,
        ("t.snooze", "snoozed"): 1,
        ("t.stop", "cancelled"): 1,
    }
    assert seen.value("rota_job_attempts_total", task="t.unknown", outcome="returned") >= 1
    assert seen.value("rota_job_run_seconds_count", task="t.fail") == 2
    assert not seen.has("rota_job_run_seconds_count", task="t.unknown"), "it never ran"


def test_waits_and_run_times_are_those_of_the_store(stage, app, gate):
    @app.task(name="t.hold")
    def hold() -> None:
        gate.wait(10)

    hold.enqueue()
    stage.skip(4)
    worker = stage.a_worker(lease_for=3600 * SECOND)
    worker.turn()
    stage.skip(7)
    gate.set()
    stage.work_off(worker)
    seen = scrape(app)
    assert seen.value("rota_job_wait_seconds_sum", queue="default") == pytest.approx(4, abs=0.5)
    assert seen.value("rota_job_wait_seconds_bucket", queue="default", le="2.5") == 0
    assert seen.value("rota_job_wait_seconds_bucket", queue="default", le="5.0") == 1
    assert seen.value("rota_job_run_seconds_sum", task="t.hold") == pytest.approx(7, abs=0.5)
    assert seen.value("rota_job_run_seconds_bucket", task="t.hold", le="+Inf") == 1


def test_a_schedules_runs_have_status_duration_and_lateness(stage, app, tick):
    app.schedules.put("soon", tick.job(), every("10s"))
    fire(stage, stage.a_scheduler(), 12)
    stage.skip(1)
    stage.work_off(stage.a_worker())
    seen = scrape(app)
    assert seen.value("scheduler_runs_total", schedule_id="soon", status="succeeded") == 1
    assert seen.value("scheduler_run_duration_seconds_count", schedule_id="soon") == 1
    assert seen.value("rota_schedule_lateness_seconds_sum", queue="default") == pytest.approx(3, abs=0.5)


def test_runs_of_a_schedule_that_fail_or_are_cancelled_are_told_apart(stage, app):
    @app.task(name="t.fail", retries=0)
    def fail() -> None:
        raise ValueError

    @app.task(name="t.stop")
    def stop() -> None:
        raise Cancel("enough")

    app.schedules.put("bad", fail.job(), every("10s"))
    app.schedules.put("shy", stop.job(), every("10s"))
    fire(stage, stage.a_scheduler(), 10)
    stage.work_off(stage.a_worker())
    seen = scrape(app)
    assert seen.value("scheduler_runs_total", schedule_id="bad", status="failed") == 1
    assert seen.value("scheduler_runs_total", schedule_id="shy", status="cancelled") == 1


def skipped(app, schedule_id: str) -> Counter[str]:
    """How many occurrences the ledger says were skipped, by why."""
    far = datetime(2200, 1, 1, tzinfo=UTC)
    lines = app.schedules.occurrences(schedule_id, datetime(2000, 1, 1, tzinfo=UTC), far).items
    found: Counter[str] = Counter()
    for line in lines:
        if line.outcome in {"skipped", "coalesced"}:
            found[line.reason.partition(" ")[0]] += line.count
    return found


def test_what_is_skipped_is_counted_by_schedule_and_by_reason(stage, app, tick):
    app.schedules.put("busy", tick.job(), every("10s"))
    app.schedules.put("lazy", tick.job(), every("10s"), catchup="skip", grace="1s", overlap="allow")
    scheduler = stage.a_scheduler()
    fire(stage, scheduler, 10)
    fire(stage, scheduler, 10)  # busy: its job still waits
    fire(stage, scheduler, 100)  # lazy: nine or so are too late
    seen = scrape(app)
    kept = skipped(app, "busy")
    assert seen.value("scheduler_runs_total", schedule_id="busy", status="skipped") == kept.total() == 11
    assert seen.value("rota_schedule_skipped_total", reason="overlap") == kept["overlap"]
    assert seen.value("rota_schedule_skipped_total", reason="catch-up") == 9
    assert seen.value("scheduler_runs_total", schedule_id="lazy", status="skipped") == 9


def test_what_falls_into_a_pause_is_skipped_for_that_reason(stage, app, tick):
    shown = app.schedules.put("still", tick.job(), every("10s"))
    app.schedules.pause("still", until=shown.created_at + timedelta(seconds=25), reason="month end: wait", by="ann")
    fire(stage, stage.a_scheduler(), 26)
    seen = scrape(app)
    skips = {one.labels["reason"] for one in seen.samples if one.name == "rota_schedule_skipped_total" and one.value}
    assert skips == {"paused"}
    assert seen.value("rota_schedule_skipped_total", reason="paused") == 2
    assert seen.value("scheduler_runs_total", schedule_id="still", status="skipped") == 2


def test_a_firing_that_another_beat_or_the_store_refused_is_a_lock_failure(stage, app, tick):
    app.schedules.put("soon", tick.job(), every("10s"))
    first, second = stage.a_scheduler(), stage.a_scheduler()
    stage.skip(10)
    due = stage.still.due_schedules(10).schedules
    first.fire(due, stage.still.now())
    second.fire(due, stage.still.now())
    assert scrape(app).value("scheduler_lock_failures_total", schedule_id="soon") == 1
    stage.skip(10)
    stage.store.fail("fire")
    first._guarded_turn()
    seen = scrape(app)
    assert seen.value("scheduler_lock_failures_total", schedule_id="soon") == 2
    assert seen.value("rota_store_outages_total", service="scheduler") == 1


def test_lost_leases_refused_writes_and_rescues_are_counted(stage, app, gate):
    @app.task(name="t.hold")
    def hold() -> None:
        gate.wait(10)

    hold.enqueue()
    worker = stage.a_worker()
    keeper = stage.a_keeper(worker)
    worker.turn()
    stage.skip(31)
    stage.a_rescuer().turn()
    stage.still.exchange(Exchange(holder="thief", want=1))
    keeper.turn()
    seen = scrape(app)
    assert seen.value("rota_jobs_rescued_total") == 1
    assert seen.value("rota_lease_losses_total") == 1
    assert seen.value("rota_refused_writes_total") == 0


def test_a_report_that_comes_too_late_is_a_refused_write(stage, app, gate):
    @app.task(name="t.hold")
    def hold() -> None:
        gate.wait(10)

    hold.enqueue()
    worker = stage.a_worker()
    worker.turn()
    stage.skip(31)
    stage.a_rescuer().turn()
    stage.still.exchange(Exchange(holder="thief", want=1))
    gate.set()
    stage.work_off(worker)
    seen = scrape(app)
    assert seen.value("rota_refused_writes_total") == 1
    assert not seen.has("rota_job_attempts_total", task="t.hold", outcome="succeeded"), "it does not count as one"


def test_a_schedules_job_that_is_parked_by_the_rescuer_counts_as_failed(stage, app, tick):
    app.schedules.put("deadly", tick.job(), every("10h"), run_on_start=True)
    rescuer = stage.a_rescuer()
    for _ in range(3):
        stage.still.exchange(Exchange(holder="dead", want=1))
        stage.skip(31)
        rescuer.turn()
    seen = scrape(app)
    assert seen.value("scheduler_runs_total", schedule_id="deadly", status="failed") == 1
    assert seen.value("rota_jobs_rescued_total") == 3


def test_a_handler_of_metrics_does_not_make_every_success_an_event(stage, app):
    del app
    internals(stage.app).events._handlers = tuple(
        (pattern, handler) for pattern, handler in internals(stage.app).events._handlers if pattern != "*"
    )
    assert not internals(stage.app).events.wants("job.succeeded")


def test_a_node_shows_its_loops_and_slots(app, tick):
    del tick
    with app.running(concurrency=3):
        seen = scrape(app)
        assert seen.value("rota_loop_healthy", service="worker") == 1
        assert seen.value("rota_loop_healthy", service="scheduler") == 1
        assert (seen.value("rota_worker_slots"), seen.value("rota_worker_slots_in_use")) == (3, 0)
    assert not scrape(app).has("rota_worker_slots")


def test_the_own_text_asks_the_store_nothing(stage, app, monkeypatch):
    def never(*_args, **_options):
        raise AssertionError("the store was asked")

    for verb in ("now", "list_queues", "list_nodes", "list_schedules"):
        monkeypatch.setattr(stage.still, verb, never)
    text = app.metrics.own_exposition().text
    assert b"rota_lease_losses_total 0.0" in text
    assert b"rota_queue_jobs" not in text
