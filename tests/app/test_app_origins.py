"""What code or a file declares is changed and removed there: one rule for Python, the command line and HTTP."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from rota import App, every
from rota.app import internals
from rota.errors import Refused


@pytest.fixture
def app():
    app = App("memory://", name="shop", version="1")

    @app.schedule(every("1h"), id="declared")
    @app.task(name="greet")
    def greet() -> None: ...

    app.schedules.sync()
    app.schedules.put("mine", greet.job(), every("1h"))
    yield app
    app.close()


def test_what_code_declares_is_neither_changed_nor_removed_elsewhere(app):
    with pytest.raises(Refused, match="defined by the code of app 'shop', so you cannot change it"):
        app.schedules.put("declared", internals(app).registry.get("greet").job(), every("2h"))
    with pytest.raises(Refused, match="defined by the code of app 'shop', so you cannot remove it; remove it there"):
        app.schedules.remove("declared")
    assert app.schedules.get("declared").next_run is not None


def test_what_the_api_made_is_removed_by_it(app):
    assert app.schedules.remove("mine")
    assert not app.schedules.remove("mine")


def test_what_nobody_declares_any_more_may_be_removed(app):
    app.schedules.remove("declared", force=True)
    assert [view.id for view in app.schedules.list().items] == ["mine"]


def test_a_retired_schedule_may_be_removed(app):
    later = App(app.open(), name="shop", version="2")
    later.task(name="greet")(lambda: None)
    later.schedules.sync()
    assert later.schedules.get("declared").record.origin.is_retired
    assert later.schedules.remove("declared")


def test_delete_and_patch_over_http_answer_alike(app):
    client = TestClient(app.asgi(token="let-me-in"))  # noqa: S106 - of this test alone
    client.headers["Authorization"] = "Bearer let-me-in"
    answers = [
        client.request(method, "/api/v1/schedules/declared", json=body)
        for method, body in (("DELETE", None), ("PATCH", {"description": "mine"}))
    ]
    assert [answer.status_code for answer in answers] == [409, 409]
    assert all("the code of app 'shop'" in answer.json()["error"]["message"] for answer in answers)
    assert client.delete("/api/v1/schedules/mine").status_code == 204
