"""What an app offers to its users: these names, and no others."""

from __future__ import annotations

from rota import App
from rota.app import internals

PARTS = {"jobs", "schedules", "tenants", "queues", "tokens", "sources", "metrics", "documents", "alerts"}
SAYS = {"name", "version", "settings"}
DECLARES = {"task", "schedule", "codec", "on", "use"}
DOES = {"enqueue", "enqueue_many", "changes", "lock", "aio", "asgi"}
RUNS = {"start", "stop", "running", "open", "close"}


def test_an_app_has_these_public_names():
    app = App("memory://")
    public = {name for name in dir(app) if not name.startswith("_")}
    assert public == PARTS | SAYS | DECLARES | DOES | RUNS


def test_the_inside_of_an_app_is_reached_through_one_door():
    app = App("memory://", name="shop")
    wiring = internals(app)
    assert (wiring.name, wiring.store.is_open) == ("shop", False)
    assert app.open() is wiring.open()
    assert wiring.store.is_open
    assert app.jobs is wiring.jobs
    app.close()
    assert not wiring.store.is_open
