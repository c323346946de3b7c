"""The OpenAPI document is true: schemathesis, which knows nothing else, finds nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from amounts import IS_SOAK, amount
from every_store import SERVED, fresh_place
from rota import App, every
from rota.app import internals
from rota.web.openapi import openapi_document
from rota.web.server import WebServer
from rota.web.table import ROUTES
from web.stage import declare

SETTINGS = """
[parameters]
"path.job_id" = "{job_id}"
"path.schedule_id" = "daily"
"path.tenant" = "acme"

[phases.stateful]
enabled = false

[checks.positive_data_acceptance]  # what a schema cannot say, such as which cron makes sense, is a documented 422
expected-statuses = ["2xx", "401", "403", "404", "409", "412", "422"]

[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "409", "412", "413", "415", "422", "429"]
"""
TASKS = ["anything", "greet", "tick"]
ALL_PHASES = {"sqlite"} if not IS_SOAK else {"sqlite", "postgres"}  # how a request is read does not depend on the store
EXAMPLES = amount(3, 20)  # that are drawn for each operation, beside those that cover its schema
WITH_TASK = ("NewJobBody", "ScheduleBody", "NewScheduleBody", "SchedulePatch")


@pytest.mark.slow_first
@pytest.mark.parametrize("kind", ["sqlite", *(kind for kind in ("postgres",) if kind in SERVED)])
def test_schemathesis_finds_nothing(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("rota.web.access.FIRST_DELAY", 0.0)
    monkeypatch.setattr("rota.web.access.MOST_FAILURES", sys.maxsize)
    place = fresh_place(kind, tmp_path)
    app = App(place.url, namespace=place.namespace)
    declare(app)
    app.tenants.put("acme", tz="Asia/Kolkata")
    app.schedules.put("daily", internals(app).registry.get("anything").job(), every("1d"))
    job = internals(app).registry.get("anything").enqueue()
    server = WebServer(app, port=0).start()
    try:
        secret = app.tokens.create("thesis", role="admin").secret
        phases = [] if kind in ALL_PHASES else ["--phases", "fuzzing"]
        ran = run_schemathesis(tmp_path, server.url, secret, job.id, *phases)
    finally:
        server.stop()
        app.close()
    assert ran.returncode == 0, ran.stdout[-20_000:] + ran.stderr[-2_000:]


def run_schemathesis(
    folder: Path, url: str, secret: str, job_id: str, *phases: str
) -> subprocess.CompletedProcess[str]:
    (folder / "openapi.json").write_text(json.dumps(document()), encoding="utf-8")
    (folder / "schemathesis.toml").write_text(SETTINGS.format(job_id=job_id), encoding="utf-8")
    program = Path(sys.executable).parent / "schemathesis"
    options = ["--max-examples", str(EXAMPLES), "--workers", "1", "--no-color", "--generation-deterministic", *phases]
    header = ["--header", f"Authorization: Bearer {secret}"]
    command = [program, "--config-file", "schemathesis.toml", "run", "openapi.json", "--url", url, *header, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=900)


def document() -> dict:
    """The document as it is served, with the tasks that this app has, and without what would go on for ever."""
    made = json.loads(json.dumps(openapi_document(ROUTES)))
    for name in WITH_TASK:
        made["components"]["schemas"][name]["properties"]["task"] = {"enum": TASKS}
    logs = made["paths"]["/api/v1/jobs/{job_id}/logs"]["get"]
    logs["parameters"] = [said for said in logs["parameters"] if said["name"] != "follow"]
    del made["paths"]["/api/v1/events"]
    return made


def test_the_document_is_served_to_anybody_and_has_every_route(stage):
    served = stage.get("/api/v1/openapi.json", "none").json()
    assert served == json.loads(json.dumps(openapi_document(ROUTES)))
    assert {(path, method.upper()) for path, methods in served["paths"].items() for method in methods} == {
        (route.path, route.method) for route in ROUTES
    }


def test_every_operation_has_a_name_of_its_own():
    names = [route.name for route in ROUTES]
    assert len(set(names)) == len(names)
