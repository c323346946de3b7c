"""Events: every kind is emitted, handlers harm nobody, and names that do not exist are refused."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

import rota
from engine.stage import NOON
from engine.test_scheduler import add_broken
from rota import BadOption, Snooze, every
from rota.app import internals
from rota.engine.events import NAMES, Event, Events
from rota.engine.node import Node
from rota.engine.services import NodeSettings
from rota.engine.upkeep.clock_watch import ClockWatch
from rota.engine.upkeep.tenant_sync import TenantSync
from rota.model.jobs.job import NewJob
from rota.model.jobs.outcome import Stopped
from rota.model.micros import SECOND
from rota.observe.logs import sentence
from rota.operations.tenant_changes import pending_change
from rota.store.contract import Exchange, Seal


@pytest.fixture
def hold(stage, gate):
    """A task that runs until the gate opens."""

    @stage.app.task(name="engine.hold")
    def hold() -> None:
        gate.wait(10)

    return hold


@pytest.fixture
def work(stage):
    @stage.app.task(name="engine.work")
    def work() -> None: ...

    return work


def end_jobs_in_every_way(stage, worker, work) -> None:
    @stage.app.task(retries=1)
    def fail() -> None:
        raise ValueError("no stamp")

    @stage.app.task
    def snooze() -> None:
        raise Snooze(after="1h")

    for task in (fail, snooze, work):
        task.enqueue()
    stage.still.add_jobs([NewJob(id="unknown", task="nobody.knows", payload=b"[]")])
    stage.work_off(worker)
    stage.skip(3600)
    stage.work_until(worker, lambda: "job.failed" in stage.names())


def steal(stage) -> None:
    """The lease runs out, and another worker takes the job."""
    stage.skip(31)
    stage.a_rescuer().turn()
    stage.still.exchange(Exchange(holder="thief", want=100))


def lose_jobs(stage, worker, hold, gate) -> None:
    held = hold.enqueue()
    stage.work_until(worker, lambda: held.id in worker.runs)
    steal(stage)
    stage.a_keeper(worker).turn()
    late = hold.enqueue()
    stage.work_until(worker, lambda: late.id in worker.runs)
    steal(stage)
    gate.set()
    stage.work_until(worker, lambda: "job.refused" in stage.names())


def fire_in_every_way(stage, scheduler, work) -> None:
    stage.app.schedules.put("soon", work.job(), every("10s"))
    add_broken(stage)
    for _ in range(2):
        stage.skip(10)
        scheduler.turn()  # one is broken, the other fired, then skipped
    stage.skip(10)
    due = stage.still.due_schedules(10)
    for _ in range(2):
        scheduler.fire(due.schedules, due.now)


def move_the_store(stage, worker) -> None:
    stage.still.seal(Seal(target="elsewhere"))
    worker.turn()
    stage.still.seal(None)


def break_down(stage, scheduler) -> None:
    stage.store.fail("due_schedules")
    for _ in range(2):
        scheduler._guarded_turn()
    scheduler._store = None
    scheduler._guarded_turn()


def set_the_clock(stage, work):
    """An hour ahead, and right again; a schedule is made in between."""
    clock = stage.a_clock()
    watch = ClockWatch(stage.still, stage.events, clock, lambda: "note", node_id="here")
    watch.turn()
    for by in (3600 * SECOND, -3600 * SECOND):
        stage.still.time += by
        clock.sync(stage.still.time, clock.monotonic())
        watch.turn()
        if by > 0:
            stage.app.schedules.put("ahead", work.job(), every("1m"))


def leave_a_tenant_half_changed(stage):
    """As a process that dies before the schedules of the tenant have followed."""
    stage.app.tenants.put("acme", tz="UTC")
    stage.still.edit_entries([pending_change(stage.still, "acme", "ann")])
    sync = TenantSync(stage.still, stage.events, stage.a_clock(), lambda: "record")
    sync.turn()
    sync.turn()


def test_every_kind_of_event_is_emitted_by_something(stage, gate, hold, work):
    worker, scheduler = stage.a_worker(), stage.a_scheduler()
    end_jobs_in_every_way(stage, worker, work)
    lose_jobs(stage, worker, hold, gate)
    gate.clear()
    stopped = hold.enqueue()
    stage.work_until(worker, lambda: stopped.id in worker.runs)
    worker.runs[stopped.id].finish(Stopped("cancelled by hand"))
    stage.work_until(worker, lambda: "job.cancelled" in stage.names())
    move_the_store(stage, worker)
    fire_in_every_way(stage, scheduler, work)
    set_the_clock(stage, work)
    break_down(stage, scheduler)
    leave_a_tenant_half_changed(stage)
    stage.skip(400 * 24 * 3600)
    stage.a_pruner().turn()
    node = Node(stage.still, internals(stage.app).registry, stage.events, NodeSettings(worker=False, scheduler=False))
    node.start()
    node.stop()
    elsewhere = {name for name in NAMES if name.startswith(("document.", "alert."))}  # tests/documents, tests/alerts
    assert set(stage.names()) == NAMES - elsewhere


def test_an_event_says_what_when_and_about_which_job(stage):
    @stage.app.task(name="shop.work")
    def work() -> None: ...

    job = work.enqueue()
    stage.work_off(stage.a_worker())
    enqueued, started, succeeded = stage.heard
    assert enqueued.data == {"job_id": job.id, "task": "shop.work", "existed": False}
    assert started.data == {"job_id": job.id, "task": "shop.work", "attempt": 1}
    assert (succeeded.data["job_id"], succeeded.data["queue"], succeeded.data["attempt"]) == (job.id, "default", 1)
    assert all(NOON <= event.at < NOON + 10 * SECOND for event in stage.heard)


def test_a_handler_that_fails_harms_neither_the_engine_nor_other_handlers(stage, caplog):
    def broken(event: Event) -> None:
        raise RuntimeError(f"cannot take {event.name}")

    @stage.app.task
    def work() -> str:
        return "done"

    late: list[str] = []
    stage.app.on("*", broken)
    stage.app.on("*", lambda event: late.append(event.name))
    job = work.enqueue()
    stage.work_off(stage.a_worker())
    assert job.state == "succeeded"
    assert late == stage.names() == ["job.enqueued", "job.started", "job.succeeded"]
    assert "a handler of job.started failed" in caplog.text


@pytest.mark.parametrize("pattern", ["job.exploded", "jobs.*", "", "JOB.FAILED", "job"])
def test_a_name_that_no_event_has_is_refused_with_those_that_exist(pattern):
    with pytest.raises(BadOption, match=r"no event matches .*job\.failed"):
        Events().on(pattern, print)


def test_patterns_take_what_they_match_in_the_order_of_subscription():
    events, heard = Events(), []
    events.on("job.*", lambda event: heard.append(("all", event.name)))
    events.on("job.failed", lambda event: heard.append(("one", event.name)))
    events.emit("job.failed", 1, job_id="a")
    events.emit("job.started", 2)
    events.emit("schedule.fired", 3)
    assert heard == [("all", "job.failed"), ("one", "job.failed"), ("all", "job.started")]
    assert (events.wants("job.started"), events.wants("pruned")) == (True, False)


def test_a_handler_that_comes_later_is_heard_too():
    events, heard = Events(), []
    events.emit("pruned", 1)
    events.on("pruned", lambda event: heard.append(event.at))
    events.emit("pruned", 2)
    assert heard == [2]


def test_what_an_operator_wants_to_read_is_logged_with_the_reason(stage, caplog):
    @stage.app.task(name="shop.fail", retries=1)
    def fail(secret: str) -> None:  # noqa: ARG001
        raise ValueError("no stamp")

    job = fail.enqueue("hunter2")
    worker = stage.a_worker()
    with caplog.at_level(logging.INFO, "rota"):
        for _ in range(2):
            stage.work_off(worker)
            stage.skip(3600)
    retried, failed = [record for record in caplog.records if record.name == "rota.job"]
    assert (retried.levelname, failed.levelname) == ("WARNING", "ERROR")
    assert f"job {job.id} (shop.fail) failed and will be tried again: ValueError: no stamp" in retried.getMessage()
    assert "failed for good after 2 attempts" in failed.getMessage()
    assert "Traceback" in failed.getMessage()
    assert failed.rota["event"] == "job.failed"
    assert "hunter2" not in caplog.text.replace("Traceback", "")


def test_a_job_that_just_worked_writes_no_line(stage, caplog):
    @stage.app.task
    def work() -> None: ...

    work.enqueue()
    with caplog.at_level(logging.DEBUG, "rota"):
        stage.work_off(stage.a_worker())
    assert caplog.records == []


def test_a_job_whose_task_is_unknown_is_returned_and_the_line_says_so(stage, caplog):
    stage.app.open().add_jobs([NewJob(id="one", task="shop.gone", payload=b"[]")])
    with caplog.at_level(logging.INFO, "rota"):
        stage.work_off(stage.a_worker())
    (record,) = [record for record in caplog.records if record.name == "rota.job"]
    words = "task 'shop.gone' is unknown to this worker; it is offered again in 30 s"
    assert record.getMessage() == f"job one (shop.gone) was returned to its queue: {words}"
    assert record.rota["reason"] == words


def test_a_firing_lost_to_another_scheduler_is_logged_quietly(stage, caplog):
    @stage.app.task
    def work() -> None: ...

    stage.app.schedules.put("soon", work.job(), every("10s"))
    stage.skip(10)
    due = stage.still.due_schedules(10)
    scheduler = stage.a_scheduler()
    with caplog.at_level(logging.DEBUG, "rota"):
        scheduler.fire(due.schedules, due.now)
        scheduler.fire(due.schedules, due.now)
    (record,) = caplog.records
    assert (record.levelname, "fired or edited by somebody else first" in record.getMessage()) == ("DEBUG", True)


def test_the_line_about_a_skip_says_how_many_were_skipped_why():
    data = {"schedule_id": "s", "count": 3, "reasons": {"coalesced": 2, "overlap": 1}}
    assert sentence(Event("schedule.skipped", 0, data)) == (
        "schedule s skipped 3 occurrences: 2 because its time had passed, and one later run stands for it (coalesced), "
        "1 because an earlier run had not ended (overlap)"
    )


@pytest.mark.parametrize(("attempts", "words"), [(1, "after 1 attempt:"), (4, "after 4 attempts:")])
def test_the_line_about_a_failure_counts_attempts(attempts, words):
    data = {"job_id": "j", "task": "t", "attempt": attempts, "error": "x"}
    assert words in sentence(Event("job.failed", 0, data))


def test_an_event_that_nobody_can_subscribe_to_is_refused():
    events = Events()
    with pytest.raises(LookupError, match=r"tenant\.moved"):
        events.emit("tenant.moved", 0, tenant="acme")


def test_every_event_in_the_code_can_be_subscribed_to():
    root = Path(rota.__file__).parent
    emitted = {
        name for file in root.rglob("*.py") for name in re.findall(r'\.emit\(\s*"([^"]+)"', file.read_text("utf-8"))
    }
    assert len(emitted) > 10
    assert emitted <= NAMES


def test_a_job_that_died_too_often_is_kept_as_failed_in_the_log():
    error = "kept as failed: 3 processes died while they ran this job; the last: child process 7 exited"
    event = Event("job.failed", 0, {"job_id": "one", "task": "t", "attempt": 0, "error": error})
    assert sentence(event) == f"job one (t) is {error}"
