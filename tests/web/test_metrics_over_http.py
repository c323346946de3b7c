"""/metrics over HTTP: in the form that is asked for, which its type tells."""

from __future__ import annotations

import sys

import pytest
from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

from rota.app import internals

PLAIN = "text/plain; version="
OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@pytest.fixture
def kind() -> str:
    return "memory"


@pytest.mark.parametrize("accept", ["", "*/*", "text/plain", "text/html,text/plain;version=0.0.4;q=0.5"])
def test_plain_text_is_answered_to_who_asks_for_nothing_else(stage, accept):
    answer = stage.get("/metrics", headers={"Accept": accept})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == stage.app.metrics.content_type
    assert stage.app.metrics.content_type.startswith(PLAIN)
    assert "rota_store_up" in {family.name for family in plain_families(answer.text)}


def test_openmetrics_is_answered_to_who_asks_for_it(stage):
    internals(stage.app).registry.get("greet").enqueue("ann")
    answer = stage.get("/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.1"})
    assert answer.headers["content-type"].startswith(OPEN)
    assert answer.text.endswith("# EOF\n")
    families = {family.name: family.type for family in openmetrics_families(answer.text)}
    assert (families["rota_store_up"], families["rota_jobs_ended"]) == ("gauge", "counter")
    assert families["rota_job_run_seconds"] == "histogram"


def test_the_newest_plain_text_is_answered_to_who_asks_for_it(stage):
    answer = stage.get("/metrics", headers={"Accept": CONTENT_TYPE_LATEST})
    assert answer.headers["content-type"].startswith(CONTENT_TYPE_LATEST)


@pytest.mark.parametrize("version", ["abc", "1..0", '1.0.0-x"y', ""])
@pytest.mark.parametrize("media", ["text/plain", "application/openmetrics-text"])
def test_a_version_that_is_none_is_no_fault(stage, media, version):
    answer = stage.get("/metrics", headers={"Accept": f"{media}; version={version}"})
    assert answer.status_code == 200


def test_an_extra_that_is_missing_is_told(stage, monkeypatch):
    monkeypatch.delitem(sys.modules, "rota.observe.metrics", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    answer = stage.get("/metrics")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_metrics")
