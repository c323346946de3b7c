"""B27-B30: schedules and hands start the same tasks, and never two of one collection, however many start it at once."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from forked_python import ForkedPython

from every_store import DURABLE
from rota import Refused, UnknownTask
from rota.app import internals
from rota.model.schedules.schedule import Origin
from rota.operations.collections import read_sources
from sources.stage import PATIENCE, live_jobs, tick

CROWD = 8
ROUNDS = 10
FILE = {
    "store": {
        "task": "sync",
        "collections": [
            {"name": "orders", "schedule": "0 0/1 * ? * *", "dialect": "quartz", "priority": 5},
            {"name": "customers", "schedule": "@hourly"},
            "countries",
        ],
    }
}


def deploy(stage, said) -> None:
    specs = read_sources(said, internals(stage.app).registry, stage.app.settings.tz)
    stage.app.schedules.register([*specs.items()], Origin("file", "shop"))


def test_b27_a_file_says_which_collections_are_synced_when(stage):
    deploy(stage, FILE)
    found = {one.name: one for one in stage.app.sources.get("store").collections}
    assert {name: one.priority for name, one in found.items()} == {"orders": 5, "customers": 1, "countries": 1}
    assert {name: one.is_on_demand for name, one in found.items()} == {
        "orders": False,
        "customers": False,
        "countries": True,
    }
    assert found["orders"].schedule.origin == "a file of app 'shop'"
    stage.tick()
    made = {task.collection: task for task in stage.app.sources.tasks("store").items}
    assert set(made) == {"orders", "customers"}
    assert made["orders"].record.fire_at % 60_000_000 == 0
    assert not stage.run("countries", "store").existed


def test_b27_a_file_that_names_no_task_of_the_app_is_refused(stage):
    with pytest.raises(UnknownTask, match="nobody"):
        read_sources({"store": {"task": "nobody", "collections": ["all"]}}, internals(stage.app).registry)


def test_b27_seven_fields_are_read_as_quartz_means_them(stage):
    stage.declare([{"name": "all", "schedule": "0/1 * 0 ? * * *"}], "other")
    trigger = stage.app.sources.get("other").collections[0].schedule.trigger
    runs = trigger.next_runs(3, after=datetime(2026, 1, 1, 5, tzinfo=UTC))
    assert [f"{run:%d %H:%M:%S}" for run in runs] == ["02 00:00:00", "02 00:00:01", "02 00:00:02"]


def test_b27_a_source_says_what_its_collections_leave_open(stage):
    stage.declare(["a", {"name": "b", "schedule": "@daily"}], "other", schedule="30 * * * *", tz="Asia/Kolkata")
    found = {one.name: one.schedule for one in stage.app.sources.get("other").collections}
    assert {schedule.tz for schedule in found.values()} == {"Asia/Kolkata"}
    assert "30" in str(found["a"].trigger)
    assert found["b"].next_run.hour == 0


def test_b28_what_a_schedule_makes_and_what_a_hand_starts_are_alike(stage):
    by_hand = stage.run("orders").record
    stage.app.sources.cancel(by_hand.id)
    stage.tick()
    (made, _) = stage.app.sources.tasks("shop", "orders").items
    by_schedule = made.record
    for name in ("task", "payload", "queue", "schedule_id", "generation"):
        assert getattr(by_hand, name) == getattr(by_schedule, name)
    assert by_hand.slot == by_schedule.slot == "sync__shop__orders"
    assert by_hand.key is by_schedule.key is None
    assert made.priority == 5


def test_b29_a_schedule_skips_while_a_task_waits_or_runs_and_the_ledger_says_so(stage):
    task = stage.run("orders")
    at = stage.tick()
    assert [one.id for one in stage.app.sources.tasks("shop", "orders").items] == [task.id]
    (skipped,) = stage.app.open().list_occurrences("sync__shop__orders", 0, at + 1).items
    assert (skipped.outcome, skipped.reason) == ("skipped", f"overlap (job {task.id})")


def test_b30_running_a_collections_schedule_by_hand_starts_no_second_task(stage):
    task = stage.run("orders")
    again = stage.app.schedules.run_now("sync__shop__orders")
    assert (again.id, again.existed) == (task.id, True)
    stage.app.sources.cancel(task.id)
    fresh = stage.app.schedules.run_now("sync__shop__orders", by="ann")
    assert not fresh.existed
    assert stage.run("orders").id == fresh.id


def test_b30_a_task_that_has_failed_is_not_retried_beside_the_next(stage):
    stage.act = lambda *_: 1 / 0
    task = stage.run("orders")
    stage.work()
    with pytest.raises(Refused, match="start a new one instead"):
        stage.app.jobs.retry(task.id)
    assert live_jobs(stage.app) == []


def test_b30_however_many_start_one_at_the_same_instant_there_is_one(stage, make_app):
    """Nodes with stores of their own, a tick of the schedule and POSTs, all behind one barrier."""
    nodes = [stage.app, *(make_app() for _ in range(2))]
    barrier = threading.Barrier(CROWD)

    def at_once(number: int) -> str | None:
        barrier.wait(PATIENCE)
        if number == 0:
            tick(nodes[1], skip=3600.0 * (1 + len(ended)))
            return None
        if number < 3:
            return stage.post("/tasks/?source=shop&collection=orders").json()["task_id"]
        return nodes[number % len(nodes)].sources.run("shop", "orders").id

    ended: list[str] = []
    with ThreadPoolExecutor(CROWD) as threads:
        for _ in range(ROUNDS):
            answers = {answer for answer in threads.map(at_once, range(CROWD)) if answer}
            live = [job.id for job in live_jobs(stage.app) if job.schedule_id == "sync__shop__orders"]
            assert len(live) == 1
            assert answers == set(live)
            ended += live
            stage.app.sources.cancel(live[0])
    assert len(set(ended)) == ROUNDS
    assert {task.id for task in stage.app.sources.tasks("shop", "orders").items} == set(ended)


CHILD = """
import sys
from rota import App
app = App(sys.argv[1], namespace=sys.argv[2], name="shop")
app.open()
print("ready", flush=True)
open(sys.argv[3]).read()  # until the test has opened and closed it
print(*{app.sources.run("shop", "orders").id for _ in range(20)}, flush=True)
app.close()
"""


@pytest.mark.parametrize("kind", DURABLE)  # a memory store is one process's
def test_b30_processes_that_start_one_at_the_same_instant_start_one(stage, place, tmp_path):
    script = tmp_path / "child.py"
    script.write_text(CHILD, encoding="utf-8")
    gates = [tmp_path / f"gate-{number}" for number in range(3)]
    children = []
    try:
        for gate in gates:
            os.mkfifo(gate)
            words = [str(script), place.url, place.namespace, str(gate)]
            children.append(ForkedPython(words, cwd=tmp_path, env=dict(os.environ)))
        assert [child.stdout.readline() for child in children] == ["ready\n"] * 3
        for gate in gates:
            gate.open("w").close()
        stage.tick()
        told = {one for child in children for one in child.stdout.read().split()}
    finally:
        for child in children:
            child.kill()
            child.wait(PATIENCE)
            child.stdout.close()
    assert told == {job.id for job in live_jobs(stage.app) if job.schedule_id == "sync__shop__orders"}
    assert len(told) == 1


@pytest.mark.parametrize("key", ["schedule:sync__shop__customers", "sync__shop__customers"])
def test_a_key_that_looks_like_a_collections_schedule_stops_no_task(stage, key):
    holder = internals(stage.app).registry.get("sync").using(key=key).enqueue("shop", "elsewhere")
    answer = stage.post("/tasks/?source=shop&collection=customers")
    assert answer.status_code == 201
    task_id = answer.json()["task_id"]
    assert stage.get(f"/tasks/{task_id}").status_code == 200
    assert task_id != holder.id
    again = stage.post("/tasks/?source=shop&collection=customers")
    assert (again.status_code, again.json()["task_id"]) == (200, task_id)


def test_a_task_whose_key_another_job_holds_is_refused_with_its_name(make_app):
    app = make_app()

    @app.task(name="sync", unique=True)
    def sync(source: str, collection: str) -> None: ...

    app.sources.declare("shop", ["orders"])(sync)
    app.schedules.sync()
    holder = sync.enqueue("shop", "orders")
    with pytest.raises(Refused, match=f"job {holder.id} holds the key"):
        app.sources.run("shop", "orders")
    app.jobs.cancel(holder.id)
    assert app.sources.run("shop", "orders").record.key == sync.job("shop", "orders").key
