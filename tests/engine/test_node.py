"""Node: the services of one process, started, drained and stopped together."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time

import pytest

from engine.stage import PATIENCE, FaultyStore
from rota import App, current_job, every
from rota.app import internals
from rota.engine.events import Events
from rota.engine.node import Node
from rota.engine.services import NodeSettings
from rota.engine.worker.worker import WorkerSettings
from rota.store.memory import MemoryStore
from rota.tasks.task import Registry


class Heard:
    """The events of an app, and a way to wait for one."""

    def __init__(self, app: App) -> None:
        self.names: list[str] = []
        self._changed = threading.Condition()
        app.on("*", self._take)

    def _take(self, event) -> None:
        with self._changed:
            self.names.append(event.name)
            self._changed.notify_all()

    def wait(self, name: str, times: int = 1) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.names.count(name) >= times, PATIENCE), f"{name} never came"


@pytest.fixture(params=["memory://", "sqlite"])
def app(request, tmp_path):
    app = App(request.param if request.param != "sqlite" else f"sqlite:///{tmp_path}/rota.db", version="7")
    yield app
    app.close()


@pytest.fixture
def heard(app):
    return Heard(app)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("rota-")]


def test_a_node_is_listed_while_it_runs_and_forgotten_when_it_stops(app):
    before = {*threads()}  # of other tests

    @app.task(name="shop.work")
    def work() -> str:
        return "done"

    with app.running(queues=["default", "mail"], concurrency=3) as node:
        assert work.enqueue().result("10s") == "done"
        deadline = time.monotonic() + PATIENCE
        while not (nodes := app.open().list_nodes()):
            assert time.monotonic() < deadline, "the node was never listed"
            time.sleep(0.005)  # the store sends no signal
        (record,) = nodes
        assert (record.id, record.pid, record.roles) == (node.id, os.getpid(), ("worker", "scheduler"))
        assert (record.queues, record.concurrency, record.tasks) == (("default", "mail"), 3, ("shop.work",))
        assert (record.app, record.version) == ("app", "7")
        assert 0 < record.started_at <= record.beat_at
        assert node.is_healthy
    assert app.open().list_nodes() == []
    for thread in {*threads()} - before:
        thread.join(PATIENCE)
    assert not {*threads()} - before


def test_start_and_stop_are_told(app, heard):
    with app.running():
        heard.wait("node.started")
    heard.wait("node.stopped")
    told = [name for name in heard.names if name.startswith("node.")]
    assert told == ["node.starting", "node.started", "node.stopped"]


def test_a_node_without_jobs_stops_at_once_if_its_store_is_gone(caplog):
    store = FaultyStore(MemoryStore())
    events, drained = Events(), threading.Event()
    node = Node(store, Registry(), events, NodeSettings(drain_for=PATIENCE))
    away = threading.Event()
    events.on("store.unavailable", lambda event: away.set() if event.data["service"] == "worker" else None)
    node.start()
    store.fail("exchange", 1_000_000)
    node.worker.wake()
    assert away.wait(PATIENCE)
    stopping = threading.Thread(target=lambda: (node.stop(), drained.set()))
    with caplog.at_level(logging.WARNING, logger="rota.node"):
        stopping.start()
        assert node.worker.drained.wait(PATIENCE / 2)
        assert drained.wait(PATIENCE)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_start_stop_and_what_could_not_be_drained_are_logged(app, gate, caplog):
    begun = threading.Event()

    @app.task
    def hold() -> None:
        begun.set()
        gate.wait(PATIENCE)

    with caplog.at_level(logging.INFO, "rota.node"):
        node = app.start()
        hold.enqueue()
        assert begun.wait(PATIENCE)
        app.stop(drain=0.01)
    started, undrained, stopped = [record for record in caplog.records if record.name == "rota.node"]
    assert (started.levelname, undrained.levelname, stopped.levelname) == ("INFO", "WARNING", "INFO")
    assert started.getMessage().startswith(f"node {node.id} started: worker, lease keeper")
    assert "after 0.01 s" in undrained.getMessage()
    assert "returning them to their queues" in undrained.getMessage()
    assert stopped.getMessage() == f"node {node.id} stopped"


def test_an_app_runs_once_at_a_time_and_may_run_again(app):
    @app.task
    def work() -> int:
        return 1

    with app.running(), pytest.raises(ValueError, match=r"runs already; stop\(\) it first"):
        app.start()
    with app.running():
        assert work.enqueue().result("10s") == 1
    app.stop()
    app.stop()


@pytest.mark.parametrize(("worker", "scheduler"), [(True, False), (False, True), (False, False)])
def test_a_node_runs_the_services_that_were_asked_for(app, worker, scheduler):
    with app.running(worker=worker, scheduler=scheduler) as node:
        names = {service.name for service in node.services}
    assert ("worker" in names, "lease keeper" in names, "log keeper" in names) == (worker,) * 3
    assert ("scheduler" in names) == scheduler
    assert {"rescuer", "pruner", "heartbeat"} <= names


@pytest.fixture
def running_job(app, gate):
    """A job that runs until the gate opens, on a node that was started for it."""
    begun = threading.Event()

    @app.task
    def hold() -> str:
        begun.set()
        gate.wait(PATIENCE)
        return "finished"

    app.start()
    job = hold.enqueue()
    assert begun.wait(PATIENCE)
    return job


def test_stopping_waits_for_what_runs(app, gate, running_job):
    stopper = threading.Thread(target=app.stop)
    stopper.start()
    gate.set()
    stopper.join(PATIENCE)
    assert not stopper.is_alive()
    assert running_job.refresh().state == "succeeded"


@pytest.mark.usefixtures("running_job")
def test_a_node_that_drains_says_so_in_the_store(app, gate):
    stopper = threading.Thread(target=app.stop)
    stopper.start()
    deadline = time.monotonic() + PATIENCE
    while not [record for record in app.open().list_nodes() if record.is_draining and record.running]:
        assert time.monotonic() < deadline, "the node never said that it drains"
        time.sleep(0.005)  # the store sends no signal
    gate.set()
    stopper.join(PATIENCE)
    assert not stopper.is_alive()
    assert app.open().list_nodes() == []


def test_what_outlasts_the_drain_is_handed_back_and_spends_nothing(app, running_job):
    app.stop(drain=0.01)
    assert running_job.refresh().state == "queued"
    assert (running_job.record.failures, running_job.record.deaths) == (0, 0)


def test_stopping_now_returns_everything_at_once(app, gate):
    begun = threading.Event()
    asked = []

    @app.task
    def hold() -> None:
        begun.set()
        gate.wait(PATIENCE)
        asked.append(current_job.cancelled)

    node = app.start()
    job = hold.enqueue()
    assert begun.wait(PATIENCE)
    stopper = threading.Thread(target=app.stop)
    stopper.start()
    node.stop_now()
    stopper.join(PATIENCE)
    assert not stopper.is_alive()
    assert job.refresh().state == "queued"


def test_a_stopped_node_claims_and_fires_nothing_more(app):
    @app.schedule(every("1s"))
    def tick() -> None: ...

    @app.task
    def work() -> None: ...

    app.start()
    app.stop()
    fired = app.schedules.get("tick").run_count
    job = work.enqueue()
    assert job.state == "queued"
    assert app.schedules.get("tick").run_count == fired


def test_the_streams_are_given_back(app):
    before = (sys.stdout, sys.stderr)
    with app.running():
        assert sys.stdout is not before[0]
    assert (sys.stdout, sys.stderr) == before


def test_a_node_without_a_worker_leaves_the_streams_alone(app):
    before = (sys.stdout, sys.stderr)
    with app.running(worker=False):
        assert (sys.stdout, sys.stderr) == before


def test_two_nodes_share_the_streams_until_the_last_one_ends():
    before = sys.stdout
    one, two = App("memory://"), App("memory://")
    one.start()
    two.start()
    one.stop()
    assert sys.stdout is not before
    two.stop()
    assert sys.stdout is before


def test_a_node_with_a_stuck_loop_is_not_healthy(app):
    with app.running() as node:
        assert node.is_healthy
        node.services[-1].turns_by = time.monotonic() - 1
        assert not node.is_healthy


def test_a_node_survives_a_store_that_is_away_and_goes_on_when_it_is_back():
    store = FaultyStore(MemoryStore())
    app = App("memory://")
    heard = Heard(app)

    @app.task(name="work")
    def work() -> None: ...

    for verb in ("exchange", "due_schedules", "record_heartbeat"):
        store.fail(verb, 2)
    settings = NodeSettings(work=WorkerSettings(poll=0.05))
    node = Node(store, internals(app).registry, internals(app).events, settings)
    internals(app).store.use(store.store)
    work.enqueue()
    node.start()
    heard.wait("store.unavailable", 3)
    heard.wait("store.back", 3)
    heard.wait("job.succeeded")
    node.stop()


def test_a_node_that_cannot_sign_off_still_stops(caplog):
    store = FaultyStore(MemoryStore())
    node = Node(store, Registry(), Events(), NodeSettings())
    node.start()
    store.fail("forget_node")
    node.stop()
    assert "could not remove this node" in caplog.text


def test_two_nodes_share_the_work_and_each_job_runs_once():
    store = MemoryStore()
    apps = [App(store) for _ in range(2)]
    ran: list[int] = []

    def work(number: int) -> None:
        ran.append(number)

    tasks = [app.task(name="work")(work) for app in apps]
    for app in apps:
        app.start(concurrency=2)
    jobs = apps[0].enqueue_many([tasks[0].job(number) for number in range(200)])
    for job in jobs:
        job.result("10s")
    for app in apps:
        app.stop()
    assert sorted(ran) == list(range(200))
