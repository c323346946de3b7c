from __future__ import annotations

from functools import partial

import pytest

from app.steps import Clock, StillStore
from every_store import _servers_end_with_the_session  # noqa: F401 - for its effect
from made_apps import app, closing_apps, gate  # noqa: F401 - fixtures


@pytest.fixture(params=["memory", "sqlite"])
def kind(request) -> str:
    return request.param


@pytest.fixture
def make_app(kind, tmp_path):
    """Makes apps that share one store."""
    with closing_apps() as make:
        yield partial(make, StillStore() if kind == "memory" else f"sqlite:///{tmp_path / 'rota.db'}")


@pytest.fixture
def clock(make_app, kind, monkeypatch) -> Clock:
    """The store's clock, which stands still until the test moves it."""
    clock = Clock()
    if kind == "memory":
        make_app().open().clock = clock
    else:
        monkeypatch.setattr("rota.store.sqlite.clock.wall_now", clock)
        monkeypatch.setattr("rota.store.sqlite.clock.lease_now", lambda now: (clock() if now is None else now, "boot"))
    return clock
