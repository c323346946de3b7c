from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from rota import App
from web.stage import Stage, declare


@pytest.fixture(params=["memory", "sqlite"])
def kind(request) -> str:
    return request.param


@pytest.fixture
def app(kind, tmp_path):
    app = App("memory://" if kind == "memory" else f"sqlite:///{tmp_path / 'rota.db'}", name="shop")
    declare(app)
    yield app
    app.close()


@pytest.fixture
def stage(app, monkeypatch) -> Stage:
    """An app behind HTTP, and a client for each role."""
    monkeypatch.setattr("rota.web.access.FIRST_DELAY", 0.0)
    return Stage(app, TestClient(app.asgi()))
