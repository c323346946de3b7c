"""Alerts over HTTP: what was found, the rules without secrets, silences, and a test of a channel."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from alerts.stage import raised_alert
from rota.model.alerts.incident import Delivery


def test_alerts_are_pages_with_the_open_ones_first(stage):
    now = stage.app.open().now()
    for number in range(3):
        raised_alert(stage.app, "mail", f"old-{number}", state="ended", ended_at=now, end_text="It is well.")
    failed = Delivery(channel="pager", message="raised", state="failed", tries=10, error="no credit", at=now)
    alert = raised_alert(stage.app, "mail", "mail", deliveries=(failed,))
    first = stage.get("/api/v1/alerts?limit=2").json()
    assert first["items"][0]["subject"] == "mail"
    second = stage.get(f"/api/v1/alerts?limit=2&cursor={first['cursor']}").json()
    subjects = [one["subject"] for one in (*first["items"], *second["items"])]
    assert sorted(subjects) == ["mail", "old-0", "old-1", "old-2"]
    assert second["cursor"] is None
    one = stage.get(f"/api/v1/alerts/{alert.id}").json()
    assert one["deliveries"][0]["error"] == "no credit"
    assert [one["id"] for one in stage.get("/api/v1/alerts?state=open").json()["items"]] == [alert.id]
    assert stage.get("/api/v1/alerts/0123456789abcdef").status_code == 404


def test_rules_and_channels_are_shown_without_secrets(stage):
    stage.app.alerts.webhook("ops", "https://hooks.example.org/T0/very-secret", secret="0123456789abcdef")  # noqa: S106
    shown = stage.get("/api/v1/alerts/rules")
    assert "very-secret" not in shown.text
    assert "0123456789abcdef" not in shown.text
    assert [rule["name"] for rule in shown.json()["rules"]] == ["mail"]
    assert {one["name"]: one["to"] for one in shown.json()["channels"]}["ops"] == "https://hooks.example.org/…"


def test_a_rule_is_silenced_and_heard_again(stage):
    body = {"target": "mail", "last": "2h", "reason": "it moves"}
    said = stage.post("/api/v1/alerts/silence", json=body).json()
    assert (said["target"], said["by"], said["reason"]) == ("mail", "operateer", "it moves")
    (rule,) = stage.get("/api/v1/alerts/rules").json()["rules"]
    assert rule["silence"]["reason"] == "it moves"
    assert stage.post("/api/v1/alerts/unsilence", json={"target": "mail"}).status_code == 204
    assert stage.post("/api/v1/alerts/unsilence", json={"target": "mail"}).status_code == 422
    changes = stage.get("/api/v1/changes?subject=alert:mail").json()["items"]
    assert [(one["verb"], one["by"]) for one in changes] == [("unsilenced", "operateer"), ("silenced", "operateer")]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"target": "nothing", "last": "2h"}, "target"),
        ({"target": "mail"}, "until"),
        ({"target": "mail", "last": "2h", "until": "2100-01-01T00:00:00Z"}, "until"),
        ({"target": "mail", "until": "2000-01-01T00:00:00Z"}, None),
    ],
)
def test_a_silence_that_makes_no_sense_is_refused(stage, body, field):
    refused = stage.post("/api/v1/alerts/silence", json=body)
    assert refused.status_code == 422
    assert refused.json()["error"]["field"] == field


def test_a_channel_is_tested(stage):
    assert stage.post("/api/v1/alerts/test", json={"channel": "pager"}).json() == {
        "channel": "pager",
        "sent": True,
        "error": None,
    }

    @stage.app.alerts.channel("broken")
    def broken(_) -> None:
        raise ValueError("no credit")

    said = stage.post("/api/v1/alerts/test", json={"channel": "broken"}).json()
    assert (said["sent"], said["error"]) == (False, "its function raised ValueError: no credit")
    assert stage.post("/api/v1/alerts/test", json={"channel": "none"}).status_code == 422
    assert stage.post("/api/v1/alerts/test", "read", json={"channel": "pager"}).status_code == 403


def test_a_silence_that_lasts_until_a_time(stage):
    until = datetime(2100, 1, 1, tzinfo=UTC)
    said = stage.post("/api/v1/alerts/silence", json={"target": "mail", "until": until.isoformat()}).json()
    assert said["until"] == "2100-01-01T00:00:00Z"


def test_a_stored_rule_is_put_changed_and_removed_by_its_version(stage):
    path = "/api/v1/alerts/rules/slow"
    body = {"when": "oldest", "queue": "mail", "after": "5m", "channels": ["pager"]}
    made = stage.ask("PUT", path, "operate", json=body)
    assert (made.status_code, made.headers["ETag"]) == (201, '"1"')
    assert (made.json()["origin"], made.json()["app"]) == ("store", stage.app.name)
    assert stage.ask("PUT", path, "operate", json=body, headers={"If-None-Match": "*"}).status_code == 412
    changed = stage.ask("PUT", path, "operate", json={**body, "after": "10m"}, headers={"If-Match": '"1"'})
    assert (changed.status_code, changed.headers["ETag"], changed.json()["after"]) == (200, '"2"', "10m")
    assert stage.ask("PUT", path, "operate", json=body, headers={"If-Match": '"1"'}).status_code == 412
    assert stage.get(path).headers["ETag"] == '"2"'
    assert [one["name"] for one in stage.get("/api/v1/alerts/rules").json()["rules"]] == ["mail", "slow"]
    assert stage.ask("DELETE", path, "operate", headers={"If-Match": '"1"'}).status_code == 412
    assert stage.ask("DELETE", path, "operate").status_code == 204
    assert stage.ask("DELETE", path, "operate").status_code == 404
    assert stage.get(path).status_code == 404
    changes = stage.get("/api/v1/changes?subject=alert:slow").json()["items"]
    assert [(one["verb"], one["by"]) for one in changes] == [
        *(("removed", "operateer"), ("changed", "operateer"), ("created", "operateer")),
    ]


@pytest.mark.parametrize(
    ("name", "body", "status", "field", "said"),
    [
        ("mail", {"when": "fails"}, 409, None, "alert rule 'mail' is declared in code; change it there"),
        ("new", {"when": "fails", "channels": ["ops"]}, 422, "channels", "there is no channel named 'ops'"),
        ("new", {"when": "oldest"}, 422, None, "needs after="),
        ("new", {"when": "fails", "queue": "mail"}, 422, None, "does not fit when='fails'"),
        ("new", {"when": "failing"}, 422, "when", "wanted"),
        ("new", {"when": "length", "more_than": -1}, 422, "more_than", "wanted"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(stage, name, body, status, field, said):
    refused = stage.ask("PUT", f"/api/v1/alerts/rules/{name}", "operate", json=body)
    assert refused.status_code == status
    assert refused.json()["error"]["field"] == field
    assert said in refused.json()["error"]["message"]
    assert [one["name"] for one in stage.get("/api/v1/alerts/rules").json()["rules"]] == ["mail"]


def test_a_declared_rule_is_shown_and_not_removed(stage):
    shown = stage.get("/api/v1/alerts/rules/mail")
    assert shown.json()["origin"] == "code"
    assert "ETag" not in shown.headers
    assert stage.ask("DELETE", "/api/v1/alerts/rules/mail", "operate").status_code == 409
