"""Bad requests of every kind: the documented status and error, never a 500, never a changed store."""

from __future__ import annotations

import json

import msgspec
import pytest

from rota.web.reading import LARGEST_BODY, is_too_deep
from rota.web.refusals import misfit, plain_words
from rota.web.table import ROUTES

JOBS = "/api/v1/jobs"
SCHEDULES = "/api/v1/schedules"
CRON = {"task": "greet", "args": ["ann"], "trigger": {"cron": "0 9 * * *"}}


@pytest.mark.parametrize(
    ("path", "status", "field"),
    [
        (f"{JOBS}?limit=0", 400, "limit"),
        (f"{JOBS}?limit=201", 400, "limit"),
        (f"{JOBS}?limit=ten", 400, "limit"),
        (f"{JOBS}?limit=", 400, "limit"),
        (f"{JOBS}?limit=1&limit=2", 400, "limit"),
        (f"{JOBS}?limit=99999999999999999999999999", 400, "limit"),
        (f"{JOBS}?colour=red", 400, "colour"),
        (f"{JOBS}?state=lost", 400, "state[0]"),
        (f"{JOBS}?since=yesterday", 400, "since"),
        (f"{JOBS}?since=2026-01-01T00:00:00", 400, "since"),
        (f"{JOBS}?since=2026-01-01T00:00:00+01:00", 400, "since"),
        (f"{JOBS}?cursor=abc", 400, "cursor"),
        (f"{JOBS}?cursor=99999999999999999999", 400, "cursor"),
        (f"{JOBS}?key=", 400, "key"),
        (f"{JOBS}?queue=a%20b", 400, "queue"),
        (f"{JOBS}/unknown", 404, None),
        (f"{JOBS}/%00", 404, "job_id"),
        (f"{JOBS}/{'x' * 300}", 404, "job_id"),
        (f"{JOBS}/unknown/logs?follow=maybe", 400, "follow"),
        (f"{JOBS}/unknown/logs?follow=true", 404, None),
        (f"{SCHEDULES}/unknown", 404, None),
        (f"{SCHEDULES}/unknown/next", 404, None),
        (f"{SCHEDULES}/unknown/why", 404, None),
        (f"{SCHEDULES}/unknown/occurrences?start=2026-01-01T00:00:00Z&end=2026-01-02T00:00:00Z", 404, None),
        (f"{SCHEDULES}/hourly/occurrences?end=2026-01-02T00:00:00Z", 400, "start"),
        (f"{SCHEDULES}/hourly/next?n=100000", 400, "n"),
        (f"{SCHEDULES}?cursor=%27", 400, "cursor"),
        ("/api/v1/tenants/unknown", 404, None),
        ("/api/v1/changes?cursor=5", 400, "cursor"),
        ("/api/v1/changes?subject=nonsense", 400, "subject"),
        ("/api/v1/next", 400, "cron"),
        ("/api/v1/next?cron=61+*+*+*+*", 422, "cron"),
        ("/api/v1/next?cron=0+9+*+*+*&tz=Mars/Olympus", 422, "tz"),
        ("/api/v1/next?cron=0+0+30+2+*", 422, "cron"),
        ("/api/v1/nothing", 404, None),
        ("/api/v1/jobs/", 404, None),
    ],
)
def test_bad_questions_are_answered_with_the_field_at_fault(stage, path, status, field):
    stage.app.schedules.sync()
    refused(stage, stage.get(path, "admin"), status, field)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "task"),
        ({"task": 5}, "task"),
        ({"task": "nobody.knows"}, "task"),
        ({"task": "os.system", "args": ["true"]}, "task"),
        ({"task": "greet", "args": "ann"}, "args"),
        ({"task": "greet"}, "args"),
        ({"task": "greet", "args": ["ann"], "colour": "red"}, "colour"),
        ({"task": "greet", "args": ["ann"], "priority": 1000}, "priority"),
        ({"task": "greet", "args": ["ann"], "priority": True}, "priority"),
        ({"task": "greet", "args": ["ann"], "queue": "a b"}, "queue"),
        ({"task": "greet", "args": ["ann"], "delay": "soon"}, "delay"),
        ({"task": "greet", "args": ["ann"], "delay": 5}, "delay"),
        ({"task": "greet", "args": ["ann"], "at": "2026-01-01T00:00:00"}, "at"),
        ({"task": "greet", "args": ["ann"], "key": ""}, "key"),
        ({"task": "greet", "args": ["ann"], "key": "a\x00b"}, "key"),
        ({"task": "greet", "args": ["ann"], "delay": "5m", "at": "2030-01-01T00:00:00Z"}, None),
        ([], None),
        ("text", None),
    ],
)
def test_bad_jobs_are_refused_with_the_field_at_fault(stage, body, field):
    refused(stage, lambda: stage.post(JOBS, json=body), 422, field)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": "a b"}, "id"),
        ({"id": ""}, "id"),
        ({"task": "nobody.knows"}, "task"),
        ({"args": [1, 2, 3]}, "args"),
        ({"trigger": {}}, "trigger"),
        ({"trigger": {"cron": "0 9 * * *", "every": "5m"}}, "trigger"),
        ({"trigger": {"cron": "x"}}, "trigger"),
        ({"trigger": {"cron": "0 0 30 2 *"}}, "trigger"),
        ({"trigger": {"every": "0s"}}, "trigger"),
        ({"trigger": {"calendar": {}}}, "trigger"),
        ({"trigger": {"calendar": {"months": 1, "at": "25:00"}}}, "trigger"),
        ({"trigger": {"calendar": {"months": 0}}}, "trigger.calendar.months"),
        ({"trigger": {"once": "tomorrow"}}, "trigger.once"),
        ({"trigger": {"once": "2030-01-01T00:00:00"}}, "trigger.once"),
        ({"trigger": "0 9 * * *"}, "trigger"),
        ({"tz": "Mars/Olympus"}, None),
        ({"tenant": "nobody"}, "tenant"),
        ({"overlap": "maybe"}, "overlap"),
        ({"catchup_limit": 0}, "catchup_limit"),
        ({"start": "monday"}, "start"),
        ({"start": "2030-01-02", "end": "2030-01-01"}, None),
        ({"lookahead": "40d"}, None),
        ({"description": "a\x00b"}, "description"),
        ({"description": "x" * 2_000}, "description"),
    ],
)
def test_bad_schedules_are_refused_with_the_field_at_fault(stage, change, field):
    refused(stage, lambda: stage.post(SCHEDULES, json={"id": "new", **CRON, **change}), 422, field)


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"", 415, "bad_content_type"),
        (b"{", 400, "bad_json"),
        (b"\xff\xfe", 400, "bad_json"),
        (b'{"task": "\xff"}', 400, "bad_json"),
        (b'{"task": "\\ud800"}', 400, "bad_json"),
        (b'{"task": NaN}', 400, "bad_json"),
        (b"null", 422, "bad_body"),
        (b'{"task": "greet", "args": [1e999]}', 422, "bad_body"),
        (b'{"task": "greet", "args": ' + b"[" * 70 + b"]" * 70 + b"}", 422, "too_deep"),
        (b"[" * 100_000, 422, "too_deep"),
        (b'{"a":' * 100_000, 422, "too_deep"),
        (b" " * (LARGEST_BODY + 1), 413, "body_too_large"),
        (b'{"task": "greet", "args": ["' + b"x" * 300_000 + b'"]}', 413, "payload_too_large"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_bodies(stage, content, status, code):
    headers = {"Content-Type": "application/json"} if content else {}
    found = refused(stage, lambda: stage.post(JOBS, content=content, headers=headers), status)
    assert found["code"] == code


def test_a_body_that_comes_in_pieces_is_not_read_to_its_end(stage):
    read = []

    def pieces():
        for number in range(100):
            read.append(number)
            yield b" " * 100_000

    headers = {"Content-Type": "application/json"}
    refused(stage, lambda: stage.post(JOBS, content=pieces(), headers=headers), 413)


@pytest.mark.parametrize(
    "kind_of_content", ["text/plain", "application/x-www-form-urlencoded", "application/json5", ""]
)
def test_a_body_must_be_said_to_be_json(stage, kind_of_content):
    body = json.dumps({"task": "greet", "args": ["ann"]}).encode()
    refused(stage, lambda: stage.post(JOBS, content=body, headers={"Content-Type": kind_of_content}), 415)
    body_of = stage.post(JOBS, content=body, headers={"Content-Type": 'application/json; charset="UTF-8"'})
    assert body_of.status_code == 201


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "NONSENSE"])
def test_a_path_says_which_methods_it_has(stage, method):
    response = stage.ask(method, JOBS)
    assert (response.status_code, response.headers["Allow"]) == (405, "GET, HEAD, POST")
    assert response.json()["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize("said", ["abc", '"x"', "-1", '"1", "2"', "9" * 30])
def test_a_bad_version_is_refused(stage, said):
    stage.app.tenants.put("acme", tz="UTC")
    change = {"json": {"description": "new"}, "headers": {"If-Match": said}}
    refused(stage, lambda: stage.ask("PATCH", "/api/v1/tenants/acme", **change), 400, "If-Match")
    bad = "/api/v1/tenants/acme?expect_version=" + said.strip('"') + "x"
    refused(stage, lambda: stage.ask("PATCH", bad, json={"description": "new"}), 400, "expect_version")


def test_depth_is_measured_outside_of_strings():
    assert not is_too_deep(b'{"a": "' + b"[" * 1_000 + b'"}')
    assert not is_too_deep(b'{"a": "\\"' + b"[" * 1_000 + b'"}')
    assert not is_too_deep(b"[[]," + b"[]," * 1_000 + b"[]]")
    assert is_too_deep(b'["\\\\", ' + b"[" * 1_000)


def refused(stage, response, status, field=None):
    """An error of the right form; nothing was changed by it."""
    before = stage.dump()
    response = response() if callable(response) else response
    assert response.status_code == status, response.text
    assert set(response.json()) == {"error"}
    error = response.json()["error"]
    assert set(error) == {"code", "message", "field"}
    assert error["message"]
    if field is not None:
        assert error["field"] == field, error
    assert stage.dump() == before
    return error


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Expected `int`, got `str`", "wanted a whole number, got text"),
        ("Expected `int | null`, got `object`", "wanted a whole number or null, got an object"),
        ("Expected `int` >= 1", "wanted a whole number >= 1"),
        ("Expected `str` of length <= 1000", "wanted text of length <= 1000"),
        (r"Expected `str` matching regex '^[a-z]\\Z'", "wanted text that matches '^[a-z]$'"),
        ("Object missing required field `task`", "it is missing"),
        ("Object contains unknown field `tsk`", "there is no such field"),
        ("Invalid RFC3339 encoded datetime", "Invalid RFC3339 encoded datetime"),
    ],
)
def test_what_does_not_fit_is_told_in_plain_words(text, words):
    assert plain_words(text) == words


def test_a_line_break_at_the_end_of_a_name_is_refused(stage):
    assert stage.ask("POST", "/api/v1/jobs", json={"task": "t", "queue": "mail\n"}).status_code == 422
    assert stage.ask("GET", "/api/v1/jobs/abc%0A").json()["error"]["code"] == "not_found"


SCHEDULE = "/api/v1/schedules"
INSTANT = "an instant with an offset, as in 2026-01-31T09:00:00Z"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"overlap": "maybe"}, "overlap: got 'maybe', wanted skip, allow, queue or cancel"),
        ({"catchup": "none"}, "catchup: got 'none', wanted latest, skip or all"),
        ({"trigger": {"cron": "x", "dialect": "q"}}, "trigger.dialect: got 'q', wanted unix or quartz"),
        (
            {"trigger": {"calendar": {"months": 1, "month_end": "x"}}},
            "trigger.calendar.month_end: got 'x', wanted clamp, skip or last",
        ),
        ({"trigger": {"once": "tomorrow"}}, f"trigger.once: got 'tomorrow', wanted {INSTANT}"),
        ({"trigger": {"once": "2030-01-01T00:00:00"}}, f"trigger.once: got '2030-01-01T00:00:00', wanted {INSTANT}"),
        ({"trigger": {"once": 5}}, f"trigger.once: got 5, wanted {INSTANT}"),
        ({"grace": "soon"}, "grace: got 'soon', wanted a duration such as 90s, 5m or 1h30m"),
        ({"queue": "a b"}, "queue: got 'a b', wanted 1 to 127 of the characters A-Z a-z 0-9 . _ : -"),
        ({"queue": "a " * 100}, f"queue: got '{'a ' * 39}a…, wanted 1 to 127 of the characters A-Z a-z 0-9 . _ : -"),
        ({"overlap": 5}, "overlap: wanted text, got a whole number"),
    ],
)
def test_a_bad_value_is_answered_with_the_value_and_what_is_wanted(stage, change, message):
    error = stage.post(SCHEDULE, json={"id": "new", **CRON, **change}).json()["error"]
    assert error["message"] == message


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("state=lost", "state[0]: got 'lost', wanted scheduled, queued, running, succeeded, failed, cancelled or held"),
        ("since=yesterday", f"since: got 'yesterday', wanted {INSTANT}"),
        ("since=2026-01-01T00:00:00", f"since: got '2026-01-01T00:00:00', wanted {INSTANT}"),
    ],
)
def test_a_bad_parameter_is_answered_with_the_value_and_what_is_wanted(stage, query, message):
    assert stage.get(f"/api/v1/jobs?{query}").json()["error"]["message"] == message


def test_no_message_of_the_decoder_is_answered_as_it_is():
    """Of every type that a route takes: a bad value of each choice, instant and pattern is told with what is wanted."""
    for route in ROUTES:
        for kind in filter(None, (route.query, route.body)):
            for field in msgspec.structs.fields(kind):
                for bad in ("no such value \x00", "2026-13-45T00:00:00"):
                    try:
                        msgspec.convert({field.name: bad}, kind)
                    except msgspec.ValidationError as err:
                        told = misfit(err, 422, "bad", kind, {field.name: bad}).fault.message
                        assert "Invalid" not in told, (route.name, field.name, told)
