"""Tasks whose workers die or that never end let go of their collections, with an explanation; old ones are let go."""

from __future__ import annotations

import os
import signal
from datetime import timedelta

import pytest
from forked_python import ForkedPython

from every_store import DURABLE
from rota.app import internals
from rota.engine.upkeep.trimmer import Trimmer, trim
from rota.model.jobs.outcome import Succeeded
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import settle
from rota.store.contract import Exchange
from sources.stage import PATIENCE, Stage, live_jobs

DEADLY = """
import os, signal, sys
from rota import App
app = App(sys.argv[1], namespace=sys.argv[2], name="shop", lease="1s")

@app.task(name="sync")
def sync(source, collection):
    os.kill(os.getpid(), signal.SIGKILL)

app.start(scheduler=False)
signal.pause()
"""


@pytest.mark.parametrize("kind", DURABLE)  # a memory store is one process's
def test_a_task_whose_worker_dies_three_times_fails_with_the_reason_and_frees_its_collection(
    stage, place, make_app, tmp_path
):
    task = stage.run("orders")
    script = tmp_path / "deadly.py"
    script.write_text(DEADLY, encoding="utf-8")
    for death in range(1, 4):
        worker = ForkedPython([str(script), place.url, place.namespace], cwd=tmp_path, env=dict(os.environ))
        with worker.stdout:
            said = worker.stdout.read()
        assert worker.wait(6 * PATIENCE) == -signal.SIGKILL, said
        assert stage.app.jobs.read(task.id).lease_no == death
        assert stage.run("orders").id == task.id  # it is started anew, and still is the one
    with make_app(lease="1s").running(worker=False, scheduler=False):  # it looks twice per lease for who has died
        stage.app.jobs.wait(task.id, "60s")
    failed = stage.task(task.id)
    assert failed.status == "FAILED"
    assert failed.error.startswith("kept as failed: 3 workers died while they ran this job")
    assert stage.get(f"/tasks/{task.id}").json()["error"] == failed.error
    assert stage.calls == []
    after = stage.run("orders")
    assert not after.existed
    stage.work()
    assert stage.task(after.id).status == "SUCCESS"


def test_a_task_that_never_ends_fails_at_its_timeout_and_frees_its_collection(stage, gate):
    stage.declare(["all"], "other", timeout="1s")
    stage.act = lambda *_: gate.wait(PATIENCE)
    task = stage.run("all", "other")
    with stage.app.running(scheduler=False):
        stage.app.jobs.wait(task.id, "60s")
        failed = stage.task(task.id)
        after = stage.run("all", "other")
        gate.set()
    assert failed.status == "FAILED"
    assert "ran longer than its timeout of 1 s" in failed.error
    assert not after.existed


def end(stage, number: int) -> list[str]:
    """So many tasks of one collection, one after the other; answers their ids."""
    store, ids = stage.app.open(), []
    for _ in range(number):
        ids.append(stage.run("all", "other").id)
        (job,) = store.exchange(Exchange(holder="w", want=1)).claimed
        change = settle(job, Succeeded(), RetryPolicy(), store.now(), 0.5)
        assert not store.exchange(Exchange(holder="w", settled=[change])).refused
    return ids


def test_the_newest_so_many_of_each_collection_are_kept(stage):
    stage.declare(["all"], "other", keep=3)
    ids = end(stage, 5)
    live = stage.run("all", "other")
    orders = stage.run("orders")
    schedule = stage.app.sources.get("other").collections[0].schedule.record
    assert trim(stage.app.open(), schedule) == 2
    assert [task.id for task in stage.app.sources.tasks("other").items] == [live.id, *ids[:1:-1]]
    assert stage.task(orders.id).status == "SCHEDULED"
    assert trim(stage.app.open(), schedule) == 0


def test_a_node_trims_what_has_ended_and_looks_no_more_until_something_has(stage, monkeypatch):
    stage.declare(["all"], "other", keep=1)
    store = stage.app.open()
    trimmed = []
    monkeypatch.setattr(
        "rota.engine.upkeep.trimmer.trim", lambda store, one: trimmed.append(one.id) or trim(store, one)
    )
    with stage.app.running(worker=False, scheduler=False) as node:
        names = [service.name for service in node.services]
    assert "trimmer" in names
    trimmer = Trimmer(store, internals(stage.app).events, node.clock)
    trimmed.clear()
    trimmer.turn()
    assert len(trimmed) == 3
    ids = end(stage, 2)
    trimmed.clear()
    trimmer.turn()
    assert trimmed == ["sync__other__all"]
    assert [task.id for task in stage.app.sources.tasks("other").items] == ids[1:]
    trimmed.clear()
    trimmer.turn()
    assert trimmed == []


def test_a_node_whose_store_knows_no_collection_has_no_trimmer(app):
    with app.running(worker=False, scheduler=False) as node:
        assert "trimmer" not in [service.name for service in node.services]


def test_a_collection_whose_code_is_gone_is_started_no_more_and_keeps_its_past(make_app):
    stage = Stage(make_app(version="1"))
    stage.declare()
    task = stage.run("orders")
    stage.work()
    newer = make_app(version="2")
    newer.task(name="sync")(lambda source, collection: None)  # noqa: ARG005
    newer.sources.declare("shop", ["customers"])(internals(newer).registry.get("sync"))
    newer.schedules.sync()
    assert stage.post("/tasks/?source=shop&collection=orders").status_code == 404
    assert [one.id for one in newer.sources.tasks("shop", "orders").items] == [task.id]
    assert [one.id for one in newer.sources.tasks("shop").items] == [task.id]
    assert [one.name for one in newer.sources.get("shop").collections] == ["customers"]


def test_pausing_a_collections_schedule_cancels_what_it_made_and_leaves_what_a_hand_started(stage):
    by_hand = stage.run("customers")
    stage.tick()
    stage.app.schedules.pause("sync__shop__orders")
    stage.app.schedules.pause("sync__shop__customers")
    assert [job.id for job in live_jobs(stage.app)] == [by_hand.id]
    assert not stage.run("orders").existed
    assert stage.task(by_hand.id).created_at - stage.run("orders").created_at < timedelta(minutes=1)
