from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from every_store import DURABLE, _servers_end_with_the_session, fresh_place  # noqa: F401 - for its effect
from made_apps import app, closing_apps, gate  # noqa: F401 - fixtures
from sources.stage import Stage

sys.path.append(str(Path(__file__).parents[1] / "processes"))  # for processes that start without importing


@pytest.fixture(params=["memory", *DURABLE])
def kind(request) -> str:
    return request.param


@pytest.fixture
def place(kind, tmp_path):
    return fresh_place(kind, tmp_path)


@pytest.fixture
def make_app(place):
    """Makes apps that share one store."""
    shared = place.make() if place.kind == "memory" else None
    with closing_apps() as make:
        yield partial(make, shared or place.url, namespace=place.namespace, name="shop")


@pytest.fixture
def stage(app) -> Stage:  # noqa: F811 - the fixture
    """An app with two sources, and a client for its HTTP API."""
    stage = Stage(app)
    stage.declare()
    return stage
