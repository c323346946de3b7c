"""Every route against every kind of credential: each is let in or turned away as its role says, and what is turned
away changes nothing. Both sides come from the table of routes, so that no new route is forgotten."""

from __future__ import annotations

import pytest

from rota.model.token import ROLES
from rota.web.table import ROUTES
from web.examples import example
from web.stage import CREDENTIALS

ROUTE_IDS = [f"{route.method} {route.path}" for route in ROUTES]


@pytest.fixture
def kind() -> str:
    return "memory"


@pytest.fixture(autouse=True)
def _streams_end(monkeypatch):
    """A stream says that it is there, and ends."""

    async def stream(_hub, _listener):
        yield b": alive\n\n"

    monkeypatch.setattr("rota.web.hub.Hub._stream", stream)


@pytest.mark.parametrize("credential", CREDENTIALS)
@pytest.mark.parametrize("route", ROUTES, ids=ROUTE_IDS)
def test_a_route_lets_in_whom_its_role_says(stage, route, credential):
    path, options = example(route, stage)
    before = stage.dump()
    response = stage.ask(route.method, path, credential, **options)
    assert response.status_code in expected(route, credential), response.text
    if response.status_code in {401, 403}:
        assert response.json()["error"]["code"] in {"token_missing", "bad_token", "forbidden"}
        assert stage.dump() == before


def expected(route, credential) -> set[int]:
    served = {route.status, *route.also} - {401, 403}
    if route.role is None:
        return served
    if credential not in ROLES:
        return {401}
    return served if ROLES.index(credential) >= ROLES.index(route.role) else {403}


def test_reading_needs_a_role_that_reads_and_changing_one_that_operates():
    for route in ROUTES:
        least = ("operate", "admin") if route.is_change else ("read", "admin")
        assert route.role in least or (route.role is None and route.method == "GET"), route.path


@pytest.mark.parametrize("route", [route for route in ROUTES if route.is_change], ids=lambda route: route.name)
def test_a_server_that_only_shows_changes_nothing(stage, route):
    from starlette.testclient import TestClient  # noqa: PLC0415

    stage.client = TestClient(stage.app.asgi(read_only=True))
    path, options = example(route, stage)
    before = stage.dump()
    response = stage.ask(route.method, path, "admin", **options)
    assert (response.status_code, response.json()["error"]["code"]) == (403, "read_only")
    assert stage.dump() == before


@pytest.mark.parametrize("route", [route for route in ROUTES if route.changes_nothing], ids=lambda route: route.name)
def test_a_question_that_is_posted_changes_nothing(stage, route):
    path, options = example(route, stage)
    before = stage.dump()
    assert stage.ask(route.method, path, "admin", **options).status_code == route.status
    assert stage.dump() == before
