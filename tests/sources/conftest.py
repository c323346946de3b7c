from __future__ import annotations

import threading

import pytest

from every_store import DURABLE, _servers_end_with_the_session, fresh_place  # noqa: F401 - for its effect
from rota import App
from sources.stage import Stage


@pytest.fixture(params=["memory", *DURABLE])
def kind(request) -> str:
    return request.param


@pytest.fixture
def place(kind, tmp_path):
    return fresh_place(kind, tmp_path)


@pytest.fixture
def make_app(place):
    """Makes apps that share one store."""
    made: list[App] = []
    shared = place.make() if place.kind == "memory" else None

    def make(**options) -> App:
        made.append(App(shared or place.url, namespace=place.namespace, name="shop", **options))
        return made[-1]

    yield make
    for app in made:
        app.close()


@pytest.fixture
def app(make_app) -> App:
    return make_app()


@pytest.fixture
def stage(app) -> Stage:
    """An app with two sources, and a client for its HTTP API."""
    stage = Stage(app)
    stage.declare()
    return stage


@pytest.fixture
def gate():
    """A gate that tasks wait at; it opens at the end, so that no thread outlives its test."""
    gate = threading.Event()
    yield gate
    gate.set()
