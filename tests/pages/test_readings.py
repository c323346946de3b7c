"""What visitors of one dashboard share is the dashboard's own, and ends with it."""

from __future__ import annotations

import gc
from weakref import ref

from starlette.testclient import TestClient

from pages.sample import declare
from rota import App

TOKEN = "a-token-of-the-tests"  # noqa: S105 - of nobody
SHARING = ("/", "/schedules", "/agenda", "/tenants")


def show(app: App) -> None:
    client = TestClient(app.asgi(token=TOKEN), follow_redirects=False)
    client.post("/login", data={"token": TOKEN})
    assert [client.get(path).status_code for path in SHARING] == [200] * len(SHARING)


def test_an_app_whose_dashboard_was_shown_can_be_collected():
    app = App("memory://", name="shop")
    declare(app)
    show(app)
    app.close()
    gone = ref(app)
    del app
    gc.collect()
    assert gone() is None
