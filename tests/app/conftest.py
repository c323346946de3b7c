from __future__ import annotations

import threading

import pytest

from app.steps import Clock, StillStore
from every_store import _servers_end_with_the_session  # noqa: F401 - for its effect
from rota import App


@pytest.fixture(params=["memory", "sqlite"])
def kind(request) -> str:
    return request.param


@pytest.fixture
def make_app(kind, tmp_path):
    """Makes apps that share one store."""
    made: list[App] = []
    shared: list[StillStore] = []

    def make(**options) -> App:
        if kind == "memory":
            if not shared:
                shared.append(StillStore())
            store = shared[0]
        else:
            store = f"sqlite:///{tmp_path / 'rota.db'}"
        made.append(App(store, **options))
        return made[-1]

    yield make
    for app in made:
        app.close()


@pytest.fixture
def app(make_app) -> App:
    return make_app()


@pytest.fixture
def clock(make_app, kind, monkeypatch) -> Clock:
    """The store's clock, which stands still until the test moves it."""
    clock = Clock()
    if kind == "memory":
        make_app().open().clock = clock
    else:
        monkeypatch.setattr("rota.store.sqlite.store.wall_now", clock)
        monkeypatch.setattr("rota.store.sqlite.store.lease_now", lambda now: (clock() if now is None else now, "boot"))
    return clock


@pytest.fixture
def gate():
    """A gate that tasks wait at; it opens at the end, so that no thread outlives its test."""
    gate = threading.Event()
    yield gate
    gate.set()
