"""Schedules and tenants over HTTP: made, changed, guarded by their versions, and every change with its author."""

from __future__ import annotations

import pytest

from every_store import DURABLE
from rota import calendar, cron, every
from rota.app import internals
from rota.web.schedule_body import ScheduleBody

ALL = "/api/v1/schedules"
ONE = f"{ALL}/daily"
DAILY = {"task": "greet", "args": ["ann"], "trigger": {"cron": "0 9 * * *", "tz": "Europe/Paris"}}


@pytest.fixture(params=["memory", *DURABLE])
def kind(request) -> str:
    return request.param


def make(stage, **change):
    response = stage.post(ALL, json={"id": "daily", **DAILY, **change})
    assert response.status_code == 201, response.text
    return response.json()


def test_a_schedule_is_made_and_shown(stage):
    made = make(stage, description="Every morning", priority=5, overlap="queue", max_runs=3)
    shown = stage.get(ONE).json()
    assert {**shown, "warnings": []} == made
    expected = {"id": "daily", "state": "on", "task": "greet", "args": ["ann"], "tz": "Europe/Paris", "priority": 5}
    assert {name: shown[name] for name in expected} == expected
    assert shown["trigger"] == {"cron": "0 9 * * *", "tz": "Europe/Paris"}
    assert [item["id"] for item in stage.get(ALL).json()["items"]] == ["daily"]
    assert stage.app.schedules.get("daily").record.spec.overlap == "queue"


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ({"cron": "0 0/1 * ? * *", "dialect": "quartz"}, cron("0 0/1 * ? * *", dialect="quartz")),
        ({"every": "90s"}, every("90s")),
        (
            {"calendar": {"months": 1, "at": "00:05", "on": "tue", "nth": "last"}},
            calendar(months=1, at="00:05", on="tue", nth="last"),
        ),
        ({"calendar": {"weeks": 2, "start": "2026-01-05"}, "tz": "Asia/Tokyo"}, None),
        ({"once": "2031-01-01T00:00:00Z"}, None),
    ],
)
def test_triggers_of_every_kind_are_read_and_shown_in_the_same_form(stage, sent, meant):
    shown = make(stage, trigger=sent)
    if meant is not None:
        assert stage.app.schedules.get("daily").record.spec.trigger == str(meant)
    again = stage.ask("PUT", ONE, json={**DAILY, "trigger": shown["trigger"]})
    assert (again.status_code, again.json()["version"]) == (200, shown["version"])


def test_an_id_that_is_taken_is_refused(stage):
    make(stage)
    response = stage.post(ALL, json={"id": "daily", **DAILY})
    assert (response.status_code, response.json()["error"]["code"]) == (409, "already_exists")


def test_put_makes_or_says_anew(stage):
    first = stage.ask("PUT", ONE, json=DAILY)
    again = stage.ask("PUT", ONE, json=DAILY)
    other = stage.ask("PUT", ONE, json={**DAILY, "description": "new"})
    assert [first.status_code, again.status_code, other.status_code] == [201, 200, 200]
    assert again.json()["version"] == first.json()["version"]
    assert other.json()["description"] == "new"


def test_patch_changes_what_is_said_and_nothing_else(stage):
    full = {
        "priority": 7,
        "queue": "mail",
        "grace": "5m",
        "jitter": "10s",
        "start": "2030-01-01",
        "end": "2030-12-31T12:00:00Z",
        "description": "old",
        "catchup": "all",
        "lookahead": "1h",
        "key": "mine",
        "key_for": "30m",
    }
    before = make(stage, **full)
    same = stage.ask("PATCH", ONE, json={})
    assert same.json() == before
    after = stage.ask("PATCH", ONE, json={"description": "new", "jitter": None, "args": ["bob"]}).json()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"description", "jitter", "next_run", "args", "version", "updated_at"}  # the jitter is in it
    assert (after["description"], after["jitter"], after["args"]) == ("new", None, ["bob"])


def test_patch_keeps_the_key_of_a_unique_task_in_step_with_its_arguments(stage):
    @stage.app.task(unique="1h")
    def once(name: str) -> None: ...

    made = make(stage, task=once.name)
    assert (made["key"], made["key_for"]) == (once.job("ann").key, "1h")
    renamed = stage.ask("PATCH", ONE, json={"description": "new"}).json()
    assert (renamed["key"], renamed["key_for"]) == (made["key"], "1h")
    other = stage.ask("PATCH", ONE, json={"args": ["bob"]}).json()
    assert (other["key"], other["key_for"]) == (once.job("bob").key, "1h")
    own = stage.ask("PATCH", ONE, json={"key": "mine"}).json()
    again = stage.ask("PATCH", ONE, json={"args": ["eve"]}).json()
    assert own["key"] == again["key"] == "mine"
    back = stage.ask("PATCH", ONE, json={"key": None}).json()
    assert (back["key"], back["key_for"]) == (once.job("eve").key, "1h")


@pytest.mark.parametrize("unique", ["500ms", "1.5s"])
def test_a_key_that_holds_for_part_of_a_second_is_kept_as_it_is(stage, unique):
    @stage.app.task(unique=unique)
    def once(name: str) -> None: ...

    text = {"500ms": "500ms", "1.5s": "1s500ms"}[unique]
    made = make(stage, task=once.name)
    assert made["key_for"] == text
    patched = stage.ask("PATCH", ONE, json={"description": "new"})
    assert (patched.status_code, patched.json()["key_for"]) == (200, text)
    shown = {name: made[name] for name in ScheduleBody.__struct_fields__}
    assert stage.ask("PUT", ONE, json=shown).json()["key_for"] == text
    assert stage.ask("PATCH", ONE, json={"key_for": "250ms"}).json()["key_for"] == "250ms"
    refused = stage.ask("PATCH", ONE, json={"key_for": "0s"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "bad_duration")


def test_patch_of_the_trigger_takes_its_zone(stage):
    make(stage)
    kept = stage.ask("PATCH", ONE, json={"trigger": {"cron": "0 10 * * *"}}).json()
    assert (kept["tz"], kept["trigger"]["cron"]) == ("Europe/Paris", "0 10 * * *")
    moved = stage.ask("PATCH", ONE, json={"trigger": {"cron": "0 10 * * *", "tz": "Asia/Tokyo"}}).json()
    assert moved["tz"] == "Asia/Tokyo"


def test_patch_leaves_to_the_tenant_what_was_left_to_it(stage):
    stage.app.tenants.put("acme", tz="Asia/Kolkata", queue="acme", priority=3)
    made = make(stage, tenant="acme", trigger={"cron": "0 9 * * *"})
    assert (made["tz"], made["queue"], made["priority"]) == ("Asia/Kolkata", "acme", 3)
    patched = stage.ask("PATCH", ONE, json={"description": "new", "priority": 5}).json()
    assert (patched["tz"], patched["queue"], patched["priority"]) == ("Asia/Kolkata", "acme", 5)
    stage.app.tenants.put("acme", tz="Asia/Tokyo", queue="other", priority=4)
    found = stage.get(ONE).json()
    assert (found["tz"], found["queue"], found["priority"]) == ("Asia/Tokyo", "other", 5)


def test_what_the_code_declares_is_changed_in_the_code(stage):
    stage.app.schedules.sync()
    response = stage.ask("PATCH", f"{ALL}/hourly", json={"description": "mine"})
    assert response.status_code == 409
    assert "the code of app 'shop'" in response.json()["error"]["message"]
    assert stage.ask("POST", f"{ALL}/hourly/pause").status_code == 200


def test_a_racing_edit_is_told(stage):
    version = make(stage)["version"]
    etag = stage.get(ONE).headers["ETag"]
    assert etag == f'"{version}"'
    first = stage.ask("PATCH", ONE, json={"description": "first"}, headers={"If-Match": etag})
    second = stage.ask("PATCH", ONE, json={"description": "second"}, headers={"If-Match": etag})
    third = stage.ask("PATCH", f"{ONE}?expect_version={version}", json={"description": "third"})
    assert [first.status_code, second.status_code, third.status_code] == [200, 412, 409]
    assert stage.get(ONE).json()["description"] == "first"
    assert stage.ask("DELETE", ONE, headers={"If-Match": etag}).status_code == 412
    assert stage.ask("DELETE", ONE, headers={"If-Match": first.headers["ETag"]}).status_code == 204


def test_pause_resume_disable_enable_run_now_and_remove(stage):
    make(stage)
    paused = stage.post(f"{ONE}/pause", json={"reason": "month end", "until": "2031-01-01T00:00:00Z"}).json()
    assert (paused["state"], paused["pause"]["by"], paused["pause"]["reason"]) == ("paused", "operateer", "month end")
    assert stage.post(f"{ONE}/resume").json()["state"] == "on"
    assert stage.post(f"{ONE}/disable").json()["state"] == "disabled"
    assert stage.post(f"{ONE}/enable").json()["state"] == "on"
    ran = stage.post(f"{ONE}/run-now")
    assert (ran.status_code, ran.json()["schedule_id"]) == (201, "daily")
    assert len(stage.get(f"{ONE}/next?n=3").json()["items"]) == 3
    why = stage.get(f"{ONE}/why?at=2031-01-01T03:00:00Z").json()
    assert why["outcome"] == "not expected"
    assert stage.ask("DELETE", ONE).status_code == 204
    assert stage.ask("DELETE", ONE).status_code == 404
    changes = stage.get(f"{ONE}/changes").json()["items"]
    verbs = [change["verb"] for change in changes]
    assert verbs == ["removed", "run by hand", "enabled", "disabled", "resumed", "paused", "created"]
    why = stage.get(f"{ONE}/why").json()
    assert (why["outcome"], f"The schedule was removed by {changes[0]['by']} at" in why["sentence"]) == (
        "removed",
        True,
    )


def test_every_change_carries_its_author(stage):
    make(stage)
    stage.ask("PATCH", ONE, "admin", json={"description": "new"})
    stage.post("/api/v1/tenants", json={"name": "acme", "tz": "UTC"})
    stage.post("/api/v1/queues/mail/pause")
    job = stage.post("/api/v1/jobs", json={"task": "greet", "args": ["ann"]}).json()["id"]
    stage.post(f"/api/v1/jobs/{job}/cancel", json={"reason": "not wanted"})
    stage.post(f"/api/v1/jobs/{job}/retry")
    stage.post(f"/api/v1/jobs/{job}/cancel")
    stage.ask("DELETE", f"/api/v1/jobs/{job}")
    token = stage.ask("POST", "/api/v1/tokens", json={"name": "eve"}).json()
    stage.ask("DELETE", f"/api/v1/tokens/{token['id']}")
    items = stage.get("/api/v1/changes").json()["items"]
    told = [(item["by"], item["verb"], item["kind"]) for item in items if item["by"].endswith("er")]
    assert told == [
        ("adminer", "revoked", "token"),
        ("adminer", "created", "token"),
        ("adminer", "deleted", "job"),
        ("operateer", "cancelled", "job"),
        ("operateer", "retried", "job"),
        ("operateer", "cancelled", "job"),
        ("operateer", "enqueued", "job"),
        ("operateer", "paused", "queue"),
        ("operateer", "created", "tenant"),
        ("adminer", "changed", "schedule"),
        ("operateer", "created", "schedule"),
    ]
    assert items[3]["after"]["reason"]
    of_job = stage.get(f"/api/v1/changes?subject=job:{job}").json()["items"]
    assert [item["verb"] for item in of_job] == ["deleted", "cancelled", "retried", "cancelled", "enqueued"]
    assert token["secret"] not in stage.get("/api/v1/changes").text


def test_lists_are_pages(stage):
    for number in range(5):
        stage.app.schedules.put(f"s{number}", internals(stage.app).registry.get("tick").job(), every("1h"))
        internals(stage.app).registry.get("tick").enqueue()
        stage.app.tenants.put(f"t{number}", tz="UTC")
    for path in (ALL, "/api/v1/jobs", "/api/v1/tenants", "/api/v1/changes", "/api/v1/tokens"):
        whole = stage.ask("GET", f"{path}?limit=200").json()
        assert whole["cursor"] is None
        found, cursor, rounds = [], "", 0
        while cursor is not None:
            page = stage.ask("GET", f"{path}?limit=2{cursor and '&cursor=' + cursor}").json()
            found, cursor, rounds = found + page["items"], page["cursor"], rounds + 1
        assert found == whole["items"], path
        assert rounds == -(-len(found) // 2), path


def test_tenants(stage):
    made = stage.post("/api/v1/tenants", json={"name": "acme", "tz": "Asia/Kolkata"})
    assert (made.status_code, made.headers["ETag"]) == (201, '"1"')
    assert stage.post("/api/v1/tenants", json={"name": "acme", "tz": "UTC"}).status_code == 409
    patched = stage.ask("PATCH", "/api/v1/tenants/acme", json={"queue": "acme"}, headers={"If-Match": '"1"'}).json()
    assert (patched["tz"], patched["queue"], patched["version"]) == ("Asia/Kolkata", "acme", 2)
    assert stage.post("/api/v1/tenants/acme/pause", json={"reason": "moving"}).json()["pause"]["by"] == "operateer"
    assert stage.post("/api/v1/tenants/acme/resume").json()["pause"] is None
    make(stage, tenant="acme")
    assert stage.ask("DELETE", "/api/v1/tenants/acme").status_code == 409
    assert stage.ask("PUT", "/api/v1/tenants/other", json={"tz": "UTC"}).status_code == 201
    assert stage.ask("PUT", "/api/v1/tenants/other", json={"tz": "Nowhere/Land"}).json()["error"]["field"] == "tz"


def test_the_agenda_is_read_page_by_page(stage):
    tick = internals(stage.app).registry.get("tick")
    for number in range(3):
        stage.app.schedules.put(f"daily{number}", tick.job(), cron("0 9 * * *"))
    whole = stage.get("/api/v1/agenda?days=2&limit=200").json()
    assert whole["cursor"] is None
    pages, cursor = [], ""
    while cursor is not None:
        page = stage.get(f"/api/v1/agenda?days=2&limit=2{cursor and f'&cursor={cursor}'}").json()
        pages += page["items"]
        cursor = page["cursor"]
    assert pages == whole["items"]
    assert [entry["at"] for entry in pages] == sorted(entry["at"] for entry in pages)
    assert stage.get("/api/v1/agenda?days=367").json()["error"]["field"] == "days"
