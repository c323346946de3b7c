"""rota sources: list, run, tasks."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from every_store import DURABLE
from rota.app import internals
from rota.cli.main import main


@pytest.fixture(params=DURABLE)
def kind(request) -> str:
    """A command cannot see into a memory store."""
    return request.param


@pytest.fixture
def rota(stage, place):  # noqa: ARG001 - with something in its store
    def call(*words: str):
        environment = {"ROTA_STORE": place.url, "ROTA_NAMESPACE": place.namespace}
        return CliRunner().invoke(main, ["sources", *words], env=environment)

    return call


def test_sources_are_listed_with_their_collections(rota):
    shown = rota("list", "-o", "json")
    assert shown.exit_code == 0, shown.output
    found = {one["collection"]: one for one in json.loads(shown.stdout)}
    assert set(found) == {"orders", "customers"}
    assert (found["orders"]["priority"], found["customers"]["priority"]) == (5, 1)
    assert found["orders"]["schedule_id"] == "sync__shop__orders"
    assert "orders" in rota("list").output


def test_a_collection_is_started_by_hand_once(rota, stage):
    first = rota("run", "shop", "orders")
    assert first.exit_code == 0, first.output
    task = stage.app.sources.tasks("shop").items[0]
    assert f"started {task.id}" in first.stderr
    assert f"{task.id} is scheduled already" in rota("run", "shop", "orders").stderr
    assert json.loads(rota("run", "shop", "orders", "-o", "json").stdout)[0]["id"] == task.id


def test_tasks_are_listed_newest_first_by_status_and_collection(rota, stage):
    done = stage.run("orders")
    stage.work()
    waiting = stage.run("customers")

    def ids(*words: str) -> list[str]:
        return [task["id"] for task in json.loads(rota("tasks", "shop", *words, "-o", "json").stdout)]

    assert ids() == [waiting.id, done.id]
    assert ids("orders") == [done.id]
    assert ids("--status", "success") == [done.id]
    assert ids("-n", "1") == [waiting.id]
    assert "the newest 1" in rota("tasks", "shop", "-n", "1").stderr


@pytest.mark.parametrize("words", [("run", "shop", "none"), ("run", "none", "orders"), ("tasks", "none")])
def test_what_is_not_there_is_said_with_its_exit_code(rota, words):
    answer = rota(*words)
    assert answer.exit_code == 5
    assert "none" in answer.stderr


def test_many_jobs_are_retried_at_once_and_tasks_of_collections_left_alone(rota, stage, place):
    stage.act = lambda *_: 1 / 0
    task = stage.run("orders")
    job = internals(stage.app).registry.get("sync").using(retries=0).enqueue("shop", "orders")
    stage.work()
    environment = {"ROTA_STORE": place.url, "ROTA_NAMESPACE": place.namespace}
    done = CliRunner().invoke(main, ["jobs", "retry", "--where", "state:failed", "--yes"], env=environment)
    assert done.exit_code == 0, done.output
    assert (job.refresh().state, stage.task(task.id).status) == ("queued", "FAILED")
    named = CliRunner().invoke(main, ["jobs", "retry", task.id], env=environment)
    assert named.exit_code == 6
    assert "rota sources run shop orders" in named.stderr
    del rota
