"""B21-B26: the tasks of collections over HTTP, to the letter of the contract."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from starlette.testclient import TestClient

from rota.app import internals
from rota.web.table import ROUTES
from sources.stage import EVER, TOKEN

TASK_ROUTES = [route for route in ROUTES if route.path.startswith("/tasks")]
POST = "/tasks/?source=shop&collection=orders"


def test_b21_all_endpoints_want_a_token(stage):
    task = stage.run()
    stranger = TestClient(stage.app.asgi(token=TOKEN))
    for route in TASK_ROUTES:
        path = route.path.replace("{task_id}", task.id)
        answer = stranger.request(route.method, f"{path}?source=shop&collection=customers")
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "token_missing")
        with_bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert stranger.request(route.method, path, headers=with_bearer).status_code != 401
    assert len(stage.app.sources.tasks("shop").items) == 1


def test_b22_a_task_by_its_id(stage):
    task = stage.run("orders")
    answer = stage.get(f"/tasks/{task.id}")
    assert answer.status_code == 200
    assert answer.json() == {
        "id": task.id,
        "source": "shop",
        "collection": "orders",
        "priority": 5,
        "created_at": f"{task.created_at:%Y-%m-%dT%H:%M:%S.%f}Z",
        "started_at": "",
        "finished_at": "",
        "status": "SCHEDULED",
        "attempts": 0,
        "error": "",
    }


@pytest.mark.parametrize("path", ["", "/logs"])
def test_b22_what_is_no_task_of_a_collection_is_not_found(stage, path):
    job = internals(stage.app).registry.get("sync").enqueue("shop", "orders")  # a job like any other
    for wrong in (job.id, "shop_orders_00000000-0000-4000-8000-000000000000", "x", "a b", "%00", "ä"):
        answer = stage.get(f"/tasks/{wrong}{path}")
        assert (answer.status_code, answer.json()["error"]["code"]) in {(404, "task_not_found"), (404, "not_found")}


def test_b23_logs_are_objects_with_time_message_and_level(stage):
    stage.act = lambda *_: print("hello")  # noqa: T201
    task = stage.run()
    stage.work()
    answer = stage.get(f"/tasks/{task.id}/logs?{EVER}").json()
    (line,) = answer["logs"]
    assert set(answer) == {"logs"}
    assert (line["message"], line["level"]) == ("hello", "info")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line["time"])
    assert stage.get(f"/tasks/{task.id}/logs?start=2090-01-01T00:00:00Z").json() == {"logs": []}


@pytest.mark.parametrize("path", ["/tasks", "/tasks/"])
def test_b24_source_start_and_end_are_required_and_the_missing_one_is_named(stage, path):
    stage.run()
    said = {"source": "shop", "start": "2000-01-01T00:00:00Z", "end": "2100-01-01T00:00:00Z"}
    assert len(stage.client.get(path, params=said, follow_redirects=False).json()["tasks"]) == 1
    for name in said:
        answer = stage.client.get(path, params={key: value for key, value in said.items() if key != name})
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, name)
        assert name in answer.json()["error"]["message"]


def test_b24_tasks_are_listed_by_status_collection_and_time_newest_first(stage):
    first = stage.run("orders")
    stage.work()
    second, third = stage.run("orders"), stage.run("customers")

    def ids(query: str = "") -> list[str]:
        answer = stage.get(f"/tasks?source=shop&{EVER}{query}")
        assert answer.status_code == 200, answer.text
        return [task["id"] for task in answer.json()["tasks"]]

    assert ids() == [third.id, second.id, first.id]
    assert ids("&status=SUCCESS") == [first.id]
    assert ids("&status=SCHEDULED&collection=orders") == [second.id]
    assert ids("&collection=customers") == [third.id]
    assert ids("&status=FAILED") == ids("&status=RUNNING") == []
    assert ids("&limit=2") == [third.id, second.id]
    at = {name: stage.task(task.id).created_at for name, task in (("start", first), ("end", second))}
    said = {"source": "shop", **{name: f"{when:%Y-%m-%dT%H:%M:%S.%f}Z" for name, when in at.items()}}
    listed = stage.client.get("/tasks", params=said).json()["tasks"]
    assert [task["id"] for task in listed] == [second.id, first.id]


def test_b24_a_list_that_is_cut_off_says_where_it_goes_on(stage):
    stage.declare([f"c{number}" for number in range(7)], "other")
    made = [stage.run(f"c{number}", "other").id for number in range(7)]
    found, cursor = [], ""
    while cursor is not None:
        page = stage.get(f"/tasks?source=other&{EVER}&limit=3" + (f"&cursor={cursor}" if cursor else "")).json()
        found += [task["id"] for task in page["tasks"]]
        cursor = page["cursor"]
    assert found == made[::-1]


@pytest.mark.parametrize(
    ("query", "field", "status"),
    [
        (f"source=shop&{EVER}&status=DONE", "status", 400),
        (f"source=shop&{EVER}&status=success", "status", 400),
        (f"source=shop&{EVER}&limit=0", "limit", 400),
        (f"source=shop&{EVER}&limit=many", "limit", 400),
        (f"source=shop&{EVER}&cursor=abc", "cursor", 400),
        (f"source=shop&{EVER}&color=red", "color", 400),
        (f"source=shop&source=shop&{EVER}", "source", 400),
        (f"source=&{EVER}", "source", 400),
        (f"source=a%20b&{EVER}", "source", 400),
        (f"source=nowhere&{EVER}", "source", 404),
        (f"source=shop&{EVER}&collection=none", "collection", 404),
        ("source=shop&start=yesterday&end=2100-01-01T00:00:00Z", "start", 400),
        ("source=shop&start=2000-01-01T00:00:00&end=2100-01-01T00:00:00Z", "start", 400),
    ],
)
def test_b24_what_makes_no_sense_is_refused_by_name(stage, query, field, status):
    answer = stage.get(f"/tasks?{query}")
    assert (answer.status_code, answer.json()["error"]["field"]) == (status, field), answer.text


@pytest.mark.parametrize("path", ["/tasks", "/tasks/"])
def test_b25_b26_a_post_starts_a_task_or_answers_the_one_that_waits_or_runs(stage, path):
    first = stage.post(f"{path}?source=shop&collection=orders")
    assert first.status_code == 201
    assert set(first.json()) == {"task_id"}
    waiting = stage.post(f"{path}?source=shop&collection=orders")
    assert (waiting.status_code, waiting.json()) == (200, first.json())
    stage.claim()
    running = stage.post(f"{path}?source=shop&collection=orders")
    assert (running.status_code, running.json()) == (200, first.json())
    other = stage.post(f"{path}?source=shop&collection=customers")
    assert other.status_code == 201


def test_b25_after_its_end_a_post_starts_the_next(stage):
    first = stage.post(POST).json()["task_id"]
    stage.work()
    second = stage.post(POST)
    assert second.status_code == 201
    assert second.json()["task_id"] != first


@pytest.mark.parametrize(
    ("query", "field", "status"),
    [
        ("source=shop", "collection", 400),
        ("collection=orders", "source", 400),
        ("", "source", 400),
        ("source=shop&collection=none", "collection", 404),
        ("source=nowhere&collection=orders", "source", 404),
        ("source=shop&collection=orders&priority=5", "priority", 400),
    ],
)
def test_b25_a_post_that_makes_no_sense_starts_nothing(stage, query, field, status):
    answer = stage.post(f"/tasks/?{query}")
    assert (answer.status_code, answer.json()["error"]["field"]) == (status, field), answer.text
    assert stage.app.sources.tasks("shop").items == []


def test_b26_one_that_the_schedule_made_is_answered_too(stage):
    stage.tick()
    (made,) = stage.app.sources.tasks("shop", "orders").items
    answer = stage.post(POST)
    assert (answer.status_code, answer.json()) == (200, {"task_id": made.id})


def test_a_task_is_cancelled_over_http(stage):
    task_id = stage.post(POST).json()["task_id"]
    answer = stage.post(f"/tasks/{task_id}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (200, "FAILED")
    assert answer.json()["error"] == "cancelled by admin"
    assert stage.post(f"/tasks/{task_id}/cancel").status_code == 409
    assert stage.post(POST).status_code == 201


def test_who_started_a_task_is_kept(stage):
    task_id = stage.post(POST).json()["task_id"]
    change = stage.app.changes(since=datetime.now(UTC) - timedelta(days=1)).items[0]
    assert (change.kind, change.name, change.verb, change.by) == ("schedule", "sync__shop__orders", "started", "admin")
    assert change.after["runs"] == [task_id]
    assert stage.app.jobs.history(task_id)[0].reason == "started by admin"
