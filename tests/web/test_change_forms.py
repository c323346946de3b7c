"""Change records show instants and spans as people write them, over HTTP and on the command line alike."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pytest
from click.testing import CliRunner

from rota import every
from rota.app import internals
from rota.cli.main import main
from rota.model.schedules.wording import plain_form


@pytest.fixture
def kind() -> str:
    return "sqlite"


def test_changes_are_the_same_over_http_and_on_the_command_line(stage, app, monkeypatch, tmp_path):
    greet = internals(app).registry.get("greet")
    span = {"grace": "90s", "jitter": "1h30m", "lookahead": "6h"}
    app.schedules.put("new", greet.job("ann", times=2), every("1h"), end=datetime(2027, 12, 31, 9, tzinfo=UTC), **span)
    app.schedules.pause("new", until=datetime(2027, 1, 1, tzinfo=UTC), reason="stock-taking", by="ann")
    items = stage.get("/api/v1/schedules/new/changes").json()["items"]
    paused, created = items
    shown = created["after"]
    assert (shown["end"], shown["grace"], shown["jitter"], shown["lookahead"]) == (
        "2027-12-31T09:00:00Z",
        "1m30s",
        "1h30m",
        "6h",
    )
    assert (shown["args"], shown["kwargs"], shown["origin"]) == (["ann"], {"times": 2}, "the API")
    assert paused["after"]["pause"]["until"] == "2027-01-01T00:00:00Z"
    assert paused["after"]["pause"]["reason"] == "stock-taking"
    monkeypatch.setenv("ROTA_NAMESPACE", app.open().namespace)
    words = ["schedules", "changes", "new", "-o", "json", "--store", f"sqlite:///{tmp_path}/rota.db"]
    told = json.loads(CliRunner().invoke(main, words).stdout)
    assert [{name: one[name] for name in items[0]} for one in told] == items


def test_a_key_that_holds_is_shown_as_a_span(stage, app):
    app.schedules.put("new", internals(app).registry.get("tick").job(), every("1h"), key="mine", key_for="1.5s")
    (created,) = stage.get("/api/v1/schedules/new/changes").json()["items"]
    assert (created["after"]["key"], created["after"]["key_for"]) == ("mine", "1s500ms")


def test_a_change_of_what_a_call_says_beside_its_arguments_is_shown(stage, app):
    tick = internals(app).registry.get("tick")
    app.schedules.put("new", tick.job(), every("1h"))
    app.schedules.put("new", tick.using(retries=5, timeout="90s", meta={"team": "mail"}).job(), every("1h"))
    changed = stage.get("/api/v1/schedules/new/changes").json()["items"][0]
    names = ("retries", "timeout", "meta", "args", "kwargs")
    assert [changed["before"][name] for name in names] == [None, None, {}, [], {}]
    assert [changed["after"][name] for name in names] == [5, "1m30s", {"team": "mail"}, [], {}]


def test_a_tokens_expiry_is_shown_as_an_instant(stage, app):
    app.tokens.create("eve", ttl="1d")
    newest = stage.get("/api/v1/changes?limit=1", "admin").json()["items"][0]
    assert newest["after"]["expires_at"].endswith("Z")


def test_a_start_that_is_a_day_is_shown_as_the_instant_that_it_means(stage, app):
    app.schedules.put(
        "new", internals(app).registry.get("tick").job(), every("1h"), start=date(2027, 1, 1), tz="Asia/Kolkata"
    )
    created = stage.get("/api/v1/schedules/new/changes").json()["items"][0]
    assert created["after"]["start"] == "2026-12-31T18:30:00Z"


@pytest.mark.parametrize("form", [{"pause": "odd"}, {"payload": "{"}, {"end": "later"}, {"grace": None}, {"other": 5}])
def test_what_cannot_be_read_is_shown_as_it_is(form):
    assert plain_form(form) == form
