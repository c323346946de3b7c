"""A store that is sealed under a running node: it says so once, what runs comes to its end, and nothing spins."""

from __future__ import annotations

import pytest

from rota import App, every
from rota.app import internals
from rota.engine.executors.messages import ended, outcome_in
from rota.engine.node import Node
from rota.engine.scheduling.scheduler import LONGEST_WAIT
from rota.engine.service import LONGEST_PAUSE
from rota.engine.services import NodeSettings
from rota.engine.worker.worker import POLL
from rota.model.jobs.job import State, history_of
from rota.model.jobs.outcome import Failed
from rota.observe.logs import sentence
from rota.store.contract import Seal
from rota.store.memory import MemoryStore

SEAL = Seal(target="postgresql database jobs")


@pytest.fixture
def hold(stage, gate):
    @stage.app.task(name="engine.hold")
    def hold() -> str:
        gate.wait(10)
        return "done"

    return hold


@pytest.fixture
def ran(stage):
    """A task that notes its runs."""
    notes: list[int] = []

    @stage.app.task(name="engine.note")
    def note(number: int) -> None:
        notes.append(number)

    return note, notes


def test_what_runs_is_settled_and_nothing_more_is_claimed(stage, gate, hold):
    worker = stage.a_worker(concurrency=1)
    running, waiting = hold.enqueue(), hold.enqueue()
    stage.work_until(worker, lambda: running.id in worker.runs)
    stage.still.seal(SEAL)
    gate.set()
    stage.work_off(worker)
    assert (running.state, waiting.state) == ("succeeded", "queued")
    assert running.result() == "done"


def test_a_report_that_is_refused_with_a_claim_is_sent_again_without_one(stage, ran):
    """The worker wants more when it reports, and hears of the seal only then."""
    note, notes = ran
    worker = stage.a_worker()
    jobs = [note.enqueue(number) for number in range(3)]
    worker.turn()
    stage.still.seal(SEAL)
    stage.work_off(worker)
    assert sorted(notes) == [0, 1, 2]
    assert {job.state for job in jobs} == {"succeeded"}
    assert stage.names("job.refused", "service.failed") == []


def test_it_is_told_once_where_the_store_went_and_what_to_do(stage):
    worker, scheduler = stage.a_worker(), stage.a_scheduler()
    stage.still.seal(SEAL)
    for _ in range(5):
        worker.turn()
        scheduler.turn()
        stage.skip(60)
    (told,) = [event for event in stage.heard if event.name == "store.moved"]
    assert told.data["service"] == "worker"
    assert sentence(told).startswith("worker gets no more work: memory (this process only) is being copied to")
    assert "restart with the URL of that store" in sentence(told)


def test_a_worker_on_a_sealed_store_polls_slowly(stage):
    worker = stage.a_worker()
    stage.still.seal(SEAL)
    assert [worker.turn() for _ in range(4)] == [POLL] * 4
    assert stage.store.calls["exchange"] == 5  # the first wanted jobs, and was sent again without
    assert worker.is_idle.is_set()  # there is nothing to wait for


def test_a_scheduler_on_a_sealed_store_fires_nothing_and_loses_nothing(stage, ran):
    note, _ = ran
    stage.app.schedules.put("soon", note.job(1), every("10s"), catchup="all", overlap="allow")
    scheduler = stage.a_scheduler()
    stage.still.seal(SEAL)
    stage.skip(10)
    assert [scheduler._guarded_turn() for _ in range(4)] == [LONGEST_PAUSE] * 4
    assert stage.store.calls["fire"] == 1
    assert stage.names("schedule", "store", "service") == ["store.moved"]
    stage.still.seal(None)
    scheduler._guarded_turn()
    assert stage.names("schedule", "store") == ["store.moved", "store.back", "schedule.fired"]
    assert stage.app.schedules.get("soon").problem is None


def test_a_scheduler_that_has_nothing_to_fire_is_not_bothered(stage):
    scheduler = stage.a_scheduler()
    stage.still.seal(SEAL)
    assert scheduler._guarded_turn() == LONGEST_WAIT
    assert stage.heard == []


def test_work_goes_on_where_the_move_is_called_off(stage, ran):
    note, notes = ran
    worker = stage.a_worker()
    note.enqueue(1)
    stage.still.seal(SEAL)
    worker.turn()
    stage.still.seal(None)
    stage.work_until(worker, lambda: notes == [1])
    assert stage.names("store") == ["store.moved", "store.back"]


def test_a_draining_worker_ends_on_a_sealed_store(stage, gate, hold):
    worker = stage.a_worker()
    job = hold.enqueue()
    stage.work_until(worker, lambda: job.id in worker.runs and worker.runs[job.id].started is not None)
    stage.still.seal(SEAL)
    worker.drain()
    gate.set()
    stage.work_until(worker, worker.drained.is_set)
    assert job.state == "succeeded"


def test_the_pruner_leaves_a_sealed_store_as_it_is(stage, ran):
    note, _ = ran
    job = note.enqueue(1)
    stage.work_off(stage.a_worker())
    stage.still.seal(SEAL)
    stage.skip(400 * 24 * 3600)
    assert stage.a_pruner()._guarded_turn() > LONGEST_PAUSE
    assert stage.still.get_jobs([job.id])[0].state is State.SUCCEEDED
    assert stage.names("store", "service") == []


def test_a_task_that_needs_its_store_while_it_is_moved_spends_nothing(stage, ran):
    """It enqueues another job, or takes a lock, after the seal: it starts again in the other store."""
    note, _ = ran

    @stage.app.task(name="engine.parent", retries=0)
    def parent() -> None:
        stage.still.seal(SEAL)
        note.enqueue(1)

    job = parent.enqueue()
    stage.work_off(stage.a_worker())
    (kept,) = stage.still.get_jobs([job.id])
    assert (kept.state, kept.failures, kept.attempts, kept.deaths) == (State.QUEUED, 0, 0, 0)
    assert "it needed the store, which is being copied" in [move.reason for move in history_of(kept)]
    assert stage.names("job") == ["job.enqueued", "job.started", "job.returned"]


def test_a_child_process_tells_its_worker_that_a_task_met_a_seal():
    outcome = Failed("StoreSealed: …", met_seal=True)
    assert outcome_in(ended(outcome)) == outcome


def test_a_task_that_needs_another_apps_store_which_was_moved_has_failed(stage):
    """Nobody moves its own store, so giving it back would run it for ever."""
    elsewhere = App(MemoryStore(), name="elsewhere")
    other = elsewhere.task(lambda: None, name="other")
    elsewhere.open().seal(SEAL)

    @stage.app.task(name="engine.parent", retries=0)
    def parent() -> None:
        other.enqueue()

    job = parent.enqueue()
    stage.work_off(stage.a_worker())
    assert job.state == "failed"
    assert job.error.startswith("StoreSealed: ")


def test_a_node_on_a_sealed_store_is_healthy_and_says_that_it_is_moved(stage):
    store = MemoryStore()
    store.seal(SEAL)
    heard = []
    stage.app.on("store.moved", heard.append)
    node = Node(store, internals(stage.app).registry, stage.events, NodeSettings())
    node.start()
    try:
        assert node.worker.is_idle.wait(10)
        assert (node.is_sealed, node.is_healthy) == (True, True)
    finally:
        node.stop()
    assert [event.data["service"] for event in heard] == ["worker"]
