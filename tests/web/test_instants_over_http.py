"""Every instant that a request can name is bounded, and a refused one changes nothing."""

from __future__ import annotations

from datetime import datetime
from typing import get_type_hints
from urllib.parse import quote

import pytest

from rota.web.reading import _plain
from rota.web.table import ROUTES
from web.examples import BODIES, example

OUTSIDE = ("9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "2200-01-01T00:00:01Z", "1969-12-31T23:59:59Z")


def instants_of(kind) -> list[str]:
    hints = get_type_hints(kind, include_extras=True) if kind is not None else {}
    return [name for name, hint in hints.items() if datetime in _plain(hint)]


QUERIES = [(route, name) for route in ROUTES for name in instants_of(route.query)]
BOUNDED = [(route, name) for route in ROUTES for name in instants_of(route.body)]


def called(case) -> str:
    return f"{case[0].name}-{case[1]}"


@pytest.fixture
def kind() -> str:
    return "memory"


def check_refused(stage, answer, before, field):
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["code"] == "bad_instant"
    assert answer.json()["error"]["field"] == field
    assert "2200-01-01" in answer.json()["error"]["message"]
    assert stage.dump() == before


def test_the_table_has_instants_to_bound():
    assert {route.name for route, _ in QUERIES} >= {"list_jobs", "list_occurrences", "get_why", "get_next"}
    assert {route.name for route, _ in BOUNDED} == {"enqueue_job", "pause_schedule", "pause_tenant", "silence_alerts"}


@pytest.mark.parametrize("at", OUTSIDE)
@pytest.mark.parametrize("case", QUERIES, ids=called)
def test_an_instant_in_a_query_is_bounded(stage, case, at):
    route, name = case
    stage.app.schedules.sync()
    path, _ = example(route, stage)
    head, _, query = path.partition("?")
    others = [pair for pair in query.split("&") if pair and not pair.startswith(f"{name}=")]
    before = stage.dump()
    answer = stage.ask(route.method, f"{head}?{'&'.join([*others, f'{name}={quote(at)}'])}")
    check_refused(stage, answer, before, name)


@pytest.mark.parametrize("at", OUTSIDE)
@pytest.mark.parametrize("case", BOUNDED, ids=called)
def test_an_instant_in_a_body_is_bounded(stage, case, at):
    route, name = case
    path, _ = example(route, stage)
    before = stage.dump()
    answer = stage.ask(route.method, path, json={**BODIES.get(route.name, {}), name: at})
    check_refused(stage, answer, before, name)


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59-14:00", "9999-12-31", "2200-01-02", "1899-12-31"])
@pytest.mark.parametrize("name", ["start", "end"])
@pytest.mark.parametrize("route", ["create_schedule", "put_schedule", "patch_schedule"])
def test_a_bound_of_a_schedule_is_bounded(stage, route, name, at):
    found = next(one for one in ROUTES if one.name == route)
    path, _ = example(found, stage)
    before = stage.dump()
    answer = stage.ask(found.method, path, json={**BODIES[route], name: at})
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["field"] == name
    assert stage.dump() == before


@pytest.mark.parametrize("at", ["9998-12-31T00:00:00Z", "1969-12-31T00:00:00Z"])
def test_the_instant_of_a_once_trigger_is_bounded(stage, at):
    body = {"id": "late", "task": "greet", "args": ["ann"], "trigger": {"once": at}}
    answer = stage.post("/api/v1/schedules", json=body)
    assert answer.status_code == 422, answer.text
    assert "once" in answer.json()["error"]["message"]


@pytest.mark.parametrize("span", ["9999999999d", "53000w"])
@pytest.mark.parametrize(("path", "field"), [("/api/v1/jobs", "delay"), ("/api/v1/tokens", "ttl")])
def test_a_span_whose_end_no_calendar_has_is_refused(stage, path, field, span):
    body = {"task": "greet", "args": ["ann"]} if field == "delay" else {"name": "eve", "role": "read"}
    before = stage.dump()
    answer = stage.ask("POST", path, json={**body, field: span})
    assert answer.status_code == 422, answer.text
    assert stage.dump() == before
