from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from every_store import _servers_end_with_the_session, fresh_place  # noqa: F401 - the one for its effect
from rota import App
from web.stage import Stage, declare


@pytest.fixture(params=["memory", "sqlite"])
def kind(request) -> str:
    return request.param


@pytest.fixture
def app(kind, tmp_path):
    place = fresh_place(kind, tmp_path) if kind != "memory" else None
    app = App(place.url, namespace=place.namespace, name="shop") if place else App("memory://", name="shop")
    declare(app)
    yield app
    app.close()


@pytest.fixture
def stage(app, monkeypatch) -> Stage:
    """An app behind HTTP, and a client for each role."""
    monkeypatch.setattr("rota.web.access.FIRST_DELAY", 0.0)
    return Stage(app, TestClient(app.asgi()))
