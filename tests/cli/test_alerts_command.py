"""alerts: the list, one alert, rules, silences and a test of a channel, as an operator types them."""

from __future__ import annotations

import json

import pytest
import yaml

from alerts.stage import raised_alert
from rota import App
from rota.model.alerts.incident import Delivery

FILE = """
app: jobs.py
channels:
  ops: {webhook: https://127.0.0.1:1/very-secret, secret: 0123456789abcdef}
alerts:
  mail: {when: oldest, queue: mail, after: 5m}
"""


@pytest.fixture
def known(rota, folder, store):
    """An app with a rule, and an alert that a node has raised."""
    (folder / "rota.yaml").write_text(FILE)
    rota.sync()
    app = App(f"sqlite:///{store.path}")
    refused = Delivery(channel="ops", message="raised", tries=2, error="the receiver is down", due_at=app.open().now())
    alert = raised_alert(app, "mail", "mail", deliveries=(refused,))
    app.close()
    rota.alert = alert.id
    return rota


def test_alerts_are_listed_and_shown(known):
    listed = known("alerts", "list")
    assert listed.stdout.splitlines()[0].split() == ["alert", "state", "rule", "about", "since", "messages", "text"]
    assert listed.stdout.splitlines()[1].split()[:5] == [known.alert, "open", "mail", "queue", "mail"]
    assert "no node has checked the rules yet; `rota run` starts one" in listed.stderr
    assert known.data("alerts", "list", "--state", "ended") == []
    page = known("alerts", "show", known.alert).stdout
    assert "the receiver is down" in page
    assert known.data("alerts", "show", known.alert)["deliveries"][0]["tries"] == 2
    assert "no alert has the id 'nothing'" in known("alerts", "show", "nothing", code=5).stderr


def test_rules_are_listed_with_where_they_are_declared(known):
    assert known("alerts", "rules").stdout.splitlines()[1].split() == [
        *("mail", "oldest", "queue", "mail", "5m", "all", "rota.yaml:6", "app"),
    ]


def test_a_rule_is_silenced_with_an_end_a_reason_and_a_name(known):
    said = known("alerts", "silence", "mail", "--for", "2h", "--reason", "it moves", "--by", "ann").stderr
    assert said.startswith("mail is silent until 20")
    (alert,) = known.data("alerts", "list")
    assert (alert["silence"]["by"], alert["silence"]["reason"]) == ("ann", "it moves")
    assert "open, silent" in known("alerts", "list").stdout
    assert "by ann: it moves" in known("alerts", "show", known.alert).stdout
    assert known("alerts", "unsilence", "mail").stderr == "mail is no longer silent\n"
    known("alerts", "unsilence", "mail", code=5)
    assert "needs an end" in known("alerts", "silence", "mail", code=2).stderr
    assert (
        "there is no alert rule and no alert 'mial'" in known("alerts", "silence", "mial", "--for", "1h", code=5).stderr
    )


def test_a_channel_that_cannot_be_reached_fails_without_its_secrets(known):
    said = known("alerts", "test", "ops", code=1).stderr
    assert "https://127.0.0.1:1 is refused: 127.0.0.1 is not an address of the public internet" in said
    assert "secret" not in said
    assert "there is no channel named 'nobody'; the app has: ops" in known("alerts", "test", "nobody", code=5).stderr


def test_the_settings_show_no_secret(known, monkeypatch):
    monkeypatch.setenv("ROTA_ALERTING_SECRET", "0123456789abcdef-0")
    monkeypatch.setenv("ROTA_SMTP_PASSWORD", "hunter2")
    monkeypatch.setenv("ROTA_ALERTING_NODE_HEARTBEAT", "https://hc-ping.com/very-secret")
    shown = known("config", "show").stdout
    assert "https://hc-ping.com/…" in shown
    for secret in ("0123456789abcdef-0", "hunter2", "very-secret"):
        assert secret not in shown


def test_a_store_without_rules_says_how_to_declare_one(rota):
    rota("migrate", "--app", "jobs.py")
    assert "there are no alerts and no alert rules" in rota("alerts", "list", "--app", "jobs.py").stderr
    assert "app.alerts.add()" in rota("alerts", "rules", "--app", "jobs.py").stderr


def test_lint_finds_what_does_not_fit_together(rota, folder):
    (folder / "rota.yaml").write_text(
        "app: jobs.py\nalerts:\n  a: {when: fails, channels: [ops]}\nheartbeats:\n  s: {url: env:NOT_SET}\n"
    )
    said = rota("lint", code=1).stdout
    assert "rota.yaml:3: alerts.a.channels: there is no channel 'ops'; there are: none" in said
    assert "rota.yaml:5: heartbeats.s: the variable NOT_SET is not set" in said


def test_a_rule_is_added_edited_and_removed(known):
    said = known("alerts", "add", "slow", "--when", "oldest", "--queue", "sync", "--after", "5m", "--channel", "ops")
    assert said.stderr == "added slow: oldest, queue sync, after 5m; it notifies ops\n"
    assert known("alerts", "rules").stdout.splitlines()[2].split()[:8] == [
        *("slow", "oldest", "queue", "sync", "5m", "ops", "store", "app"),
    ]
    assert (
        "alert rule 'slow' exists; `rota alerts edit slow`"
        in known("alerts", "add", "slow", "--when", "fails", code=2).stderr
    )
    said = known("alerts", "edit", "slow", "--after", "10m", "--channel", "", "--by", "ann").stderr
    assert said == "changed slow: oldest, queue sync, after 10m; it notifies all channels\n"
    assert known("alerts", "edit", "slow", "--when", "fails").stderr == (
        "changed slow: fails, schedule *; it notifies all channels\n"
    )
    assert known("alerts", "remove", "slow").stderr == "removed slow\n"
    assert "there is no alert rule 'slow'" in known("alerts", "remove", "slow", code=5).stderr


def test_a_rule_that_cannot_be_set_says_why(known, folder, store):
    assert "what is watched? Give --when" in known("alerts", "add", "x", code=2).stderr
    assert "nothing is to be changed" in known("alerts", "edit", "mail", code=2).stderr
    for command in (("edit", "mail", "--after", "1m"), ("remove", "mail"), ("add", "mail", "--when", "fails")):
        assert (
            "alert rule 'mail' is declared in rota.yaml:6; change it there" in known("alerts", *command, code=6).stderr
        )
    assert (
        "there is no channel named 'nobody'; the app has: ops"
        in known("alerts", "add", "x", "--when", "fails", "--channel", "nobody", code=5).stderr
    )
    (folder / "rota.yaml").unlink()
    url = ("--store", f"sqlite:///{store.path}")
    refused = known("alerts", "add", "x", "--when", "fails", *url, code=6).stderr
    assert "this process has no app" in refused


def test_an_export_has_stored_rules_as_rota_yaml_says_them(known, folder):
    known("alerts", "add", "slow", "--when", "length", "--queue", "sync", "--more-than", "7", "--channel", "ops")
    said = {"slow": {"when": "length", "queue": "sync", "after": "1m", "more_than": 7, "channels": ["ops"]}}
    text = known("export").stdout
    assert yaml.safe_load(text)["alerts"] == said
    exported = known("export", "-o", "json").stdout
    assert json.loads(exported)["alerts"] == said
    assert json.loads(exported)["schedules"] == yaml.safe_load(text)["schedules"]
    for name, body in (("all.yaml", text), ("all.json", exported)):
        (folder / name).write_text(body)
        assert "alert rules to import: slow" in known("import", "rota", name, "--dry-run").stderr
        known("alerts", "remove", "slow")
        assert "alert rules imported: slow" in known("import", "rota", name).stderr
        assert yaml.safe_load(known("export").stdout)["alerts"] == said


def test_an_alert_rule_that_cannot_be_imported_is_named(known, folder):
    rules = "alerts:\n  mail: {when: fails}\n  odd: {when: 7}\n  good: {when: node_gone}\n"
    (folder / "all.yaml").write_text(f"format: 1\nschedules: {{}}\n{rules}")
    told = known("import", "rota", "all.yaml").stderr
    assert "alert rule mail is not imported: alert rule 'mail' is declared in rota.yaml:6" in told
    assert "alert rule odd is not imported: Expected `str`, got `int` - at `$.when`" in told
    assert "alert rules imported: good" in told
