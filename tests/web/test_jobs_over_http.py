"""Jobs over HTTP: enqueued by name, found by what is known of them, retried, cancelled, deleted."""

from __future__ import annotations

import pytest

from app.steps import work
from every_store import DURABLE

JOBS = "/api/v1/jobs"


@pytest.fixture(params=["memory", *DURABLE])
def kind(request) -> str:
    return request.param


def enqueue(stage, **body):
    return stage.post(JOBS, json={"task": "greet", "args": ["ann"], **body})


def test_a_job_is_enqueued_run_and_looked_at(stage):
    made = enqueue(stage, priority=5, meta={"why": "test"}, retries=0, timeout="1m")
    assert (made.status_code, made.json()["state"], made.json()["priority"]) == (201, "queued", 5)
    path = f"{JOBS}/{made.json()['id']}"
    work(stage.app)
    shown = stage.get(path).json()
    assert (shown["state"], shown["result"], shown["attempts"]) == ("succeeded", "ANN", 1)
    assert [move["state"] for move in stage.get(f"{path}/history").json()["items"]] == [
        "queued",
        "running",
        "succeeded",
    ]
    [line] = stage.get(f"{path}/logs").json()["items"]
    assert (line["level"], line["text"]) == ("info", "hello ann")
    assert stage.get(f"{path}/logs?after={line['number']}").json()["items"] == []
    assert stage.get(f"{path}/logs?end=2020-01-01T00:00:00Z").json()["items"] == []


def test_a_job_says_what_it_waits_for(stage):
    path = f"{JOBS}/{enqueue(stage, delay='1h').json()['id']}/why"
    why = stage.get(path).json()
    assert (why["state"], why["outcome"], why["waits_for"]) == ("scheduled", "waiting", None)
    assert why["due_at"] > "2026"
    assert "The job is due at" in why["sentence"]
    ready = stage.get(f"{JOBS}/{enqueue(stage).json()['id']}/why").json()
    assert (ready["outcome"], ready["due_at"]) == ("waiting: no worker for this queue", None)
    assert ready["fix"] == "Start one: `rota worker TARGET -q default`."
    assert stage.get(f"{JOBS}/nobody/why").status_code == 404


def test_a_bare_name_will_do_where_it_is_clear_and_an_unknown_one_is_told(stage):
    response = enqueue(stage, task="nope")
    assert (response.status_code, response.json()["error"]["code"]) == (422, "unknown_task")
    assert "greet" in response.json()["error"]["message"]


def test_a_key_that_is_taken_answers_the_job_that_has_it(stage):
    first, second = enqueue(stage, key="ann"), enqueue(stage, key="ann")
    assert [first.status_code, second.status_code] == [201, 200]
    assert first.json()["id"] == second.json()["id"]
    verbs = [item["verb"] for item in stage.get("/api/v1/changes?subject=job:" + first.json()["id"]).json()["items"]]
    assert verbs == ["enqueued"]


def test_jobs_are_found_by_what_is_known_of_them(stage):
    mine = enqueue(stage, queue="mail", key="ann").json()["id"]
    later = enqueue(stage, delay="1h").json()["id"]
    other = stage.post(JOBS, json={"task": "anything"}).json()["id"]

    def found(query: str) -> list[str]:
        return [job["id"] for job in stage.get(f"{JOBS}?{query}").json()["items"]]

    assert found("") == [other, later, mine]
    assert found("state=scheduled") == [later]
    assert found("state=scheduled&state=queued") == [other, later, mine]
    assert found("queue=mail") == [mine]
    assert found("task=any*") == [other]
    assert found("key=ann") == [mine]
    assert found("until=2020-01-01T00:00:00Z") == []
    assert found("since=2020-01-01T00:00:00%2B01:00") == [other, later, mine]


def test_cancel_retry_delete_and_what_their_states_do_not_allow(stage):
    path = f"{JOBS}/{enqueue(stage).json()['id']}"
    assert stage.ask("DELETE", path).status_code == 409
    assert stage.post(f"{path}/retry").status_code == 409
    assert stage.post(f"{path}/cancel", json={"reason": "not wanted"}).json()["state"] == "cancelled"
    assert stage.get(f"{path}/history").json()["items"][-1]["reason"] == "cancelled by operateer: not wanted"
    assert stage.post(f"{path}/cancel").status_code == 409
    assert stage.post(f"{path}/retry").json()["state"] == "queued"
    stage.post(f"{path}/cancel")
    assert stage.ask("DELETE", path).status_code == 204
    assert stage.get(path).status_code == 404
    assert stage.ask("DELETE", path).status_code == 404


def test_a_job_that_has_run_and_gone_is_answered_as_it_was_accepted(stage, monkeypatch):
    monkeypatch.setattr(stage.app.open(), "get_jobs", lambda _ids: [])
    made = enqueue(stage)
    assert (made.status_code, made.json()["task"], made.json()["args"]) == (201, "greet", ["ann"])


def test_arguments_come_back_as_they_were_sent(stage):
    sent = ["'; drop table jobs; --", "<script>alert(1)</script>", "é\u0000\u2028😀", {"$ne": None}, -0.5, 2**53, []]
    made = stage.post(JOBS, json={"task": "anything", "args": sent, "kwargs": {"a b": 1, "$set": {}}}).json()
    found = stage.get(f"{JOBS}/{made['id']}").json()
    assert (found["args"], found["kwargs"]) == (sent, {"a b": 1, "$set": {}})
    again = {"id": "odd", "task": "anything", "args": sent, "trigger": {"every": "1h"}, "description": "é\u2028😀"}
    assert stage.post("/api/v1/schedules", json=again).status_code == 201
    shown = stage.get("/api/v1/schedules/odd").json()
    assert (shown["args"], shown["description"]) == (sent, "é\u2028😀")


def test_queues_nodes_numbers_and_the_catalogue(stage):
    enqueue(stage)
    paused = stage.post("/api/v1/queues/default/pause").json()
    assert (paused["name"], paused["state"], paused["counts"]["queued"]) == ("default", "paused", 1)
    assert stage.post("/api/v1/queues/default/resume").json()["state"] == "open"
    stats = stage.get("/api/v1/stats").json()
    assert (stats["jobs"]["queued"], stats["oldest_queue"], stats["nodes"]) == (1, "default", {"alive": 0, "silent": 0})
    assert stage.get("/api/v1/nodes").json() == {"items": []}
    tasks = {task["name"]: task for task in stage.get("/api/v1/tasks").json()["items"]}
    assert set(tasks) == {"anything", "fail", "greet", "tick"}
    assert tasks["tick"]["description"] == "Tick."
    assert tasks["greet"]["parameters"] == [
        {"name": "name", "kind": "either", "type": "str", "required": True, "secret": False},
        {"name": "times", "kind": "either", "type": "int", "required": False, "secret": False},
    ]


def test_what_a_cron_expression_means(stage):
    said = stage.get("/api/v1/next?cron=30+2+*+*+*&tz=America/New_York&n=3").json()
    assert said["sentence"] == "At 02:30 every day, America/New_York time"
    assert len(said["runs"]) == 3
    assert said["runs"][0]["utc"].endswith("Z")
    assert {caveat["kind"] for caveat in said["warnings"]} >= {"gap"}
