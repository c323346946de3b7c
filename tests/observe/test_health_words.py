"""live and ready: what this process says of itself to anybody, in few words and without secrets."""

from __future__ import annotations

import json
import time

import pytest

from rota import App
from rota.errors import SchemaMismatch, StoreUnavailable
from rota.inspector.health import live, ready
from rota.store.contract import Seal


@pytest.fixture
def app():
    app = App("memory://")
    app.task(name="t")(lambda: None)
    yield app
    app.close()


def fails_with(err: Exception):
    def fails():
        raise err

    return fails


def test_a_process_without_loops_lives(app):
    del app
    assert (live(None).status, json.loads(live(None).json)) == (200, {"status": "ok", "checks": {}})


def test_a_loop_that_stands_still_is_no_life(app):
    with app.running() as node:
        assert live(node).status == 200
        node.services[-1].turns_by = time.monotonic() - 1
        assert (live(node).status, live(node).checks) == (503, {"loops": "stuck"})


def test_a_node_is_ready_in_its_roles(app):
    with app.running() as node:
        assert ready(app.open, node).checks == {"store": "ok", "worker": "ok", "scheduler": "ok"}
        next(service for service in node.services if service.name == "scheduler").turns_by = time.monotonic() - 1
        found = ready(app.open, node)
        assert (found.status, found.checks["scheduler"]) == (503, "stuck")


def test_one_role_alone(app):
    with app.running(worker=False) as node:
        assert set(ready(app.open, node).checks) == {"store", "scheduler"}


def test_who_drains_is_not_ready(app):
    with app.running() as node:
        node.worker.drain()
        assert ready(app.open, node).checks == {"store": "ok", "worker": "draining"}
        assert ready(app.open, node).status == 503


def test_a_sealed_store_is_not_ready(app):
    app.open().seal(Seal(target="elsewhere"))
    found = ready(app.open, None)
    assert found.status == 503
    assert "sealed" in found.checks["store"]
    assert b"elsewhere" not in found.json


@pytest.mark.parametrize("kind", [StoreUnavailable, SchemaMismatch])
def test_no_word_of_an_error_gets_out(kind):
    found = ready(fails_with(kind("postgresql://me:hunter2@db.internal is down")), None)
    assert found.status == 503
    assert json.loads(found.json)["status"] == "unhealthy"
    assert b"hunter2" not in found.json
    assert b"internal" not in found.json
