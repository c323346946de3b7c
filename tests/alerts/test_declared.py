"""Alerts in rota.yaml and in code: what is read, and errors with the file, the line and the key."""

from __future__ import annotations

import pytest

from rota import App
from rota.errors import BadOption, BadSettings, DuplicateName, Refused


@pytest.fixture
def file(tmp_path, monkeypatch):
    """An app beside a rota.yaml with this text."""
    monkeypatch.chdir(tmp_path)
    apps = []

    def write(text: str) -> App:
        (tmp_path / "rota.yaml").write_text(text)
        apps.append(App("memory://", name="shop"))
        return apps[-1]

    yield write
    for app in apps:
        app.close()


def test_rules_channels_and_heartbeats_of_a_file(file):
    plan = file(
        """
alerting: {every: 30s, networks: [10.0.0.0/8], secret: env:OPS_SECRET}
smtp: {host: mail.example.org, sender: rota@example.org}
channels:
  ops: {webhook: env:OPS_WEBHOOK}
  team: {email: [oncall@example.org]}
alerts:
  nightly: {when: fails, schedule: nightly-*, channels: [ops]}
  backlog: {when: length, queue: mail, more_than: 1000}
heartbeats:
  nightly: {url: https://hc-ping.com/abc, start: true}
"""
    ).alerts.plan
    assert {name: (rule.when, rule.selects, rule.channels, rule.place) for name, rule in plan.rules.items()} == {
        "nightly": ("fails", "nightly-*", ("ops",), "rota.yaml:8"),
        "backlog": ("length", "mail", None, "rota.yaml:9"),
    }
    assert {name: channel.shown for name, channel in plan.channels.items()} == {
        "ops": "env:OPS_WEBHOOK",
        "team": "oncall@example.org",
    }
    assert plan.heartbeats["nightly"].start
    assert plan.settings.alerting.networks == ("10.0.0.0/8",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alerts:\n  a: {when: failing}", "rota.yaml:2: alerts.a.when: got 'failing', wanted fails, late, no_success"),
        ("alerts:\n  a: {schedule: x}", "rota.yaml:2: alerts.a: has no `when`"),
        ("alerts:\n  a: {when: fails, queue: x}", "rota.yaml:2: alerts.a: queue='x' does not fit when='fails'"),
        ("alerts:\n  a: {when: oldest}", "rota.yaml:2: alerts.a: when='oldest' needs after="),
        (
            "alerts:\n  a:\n    when: fails\n    shedule: x",
            "rota.yaml:4: alerts.a.shedule: there is no such key; did you",
        ),
        ("alerts:\n  a: {when: oldest, after: 5}", "rota.yaml:2: alerts.a.after: got '5', wanted a duration"),
        ("channels:\n  c: {}", "rota.yaml:2: channels.c: has to say one of `webhook` and `email`"),
        ("channels:\n  c: {email: [nobody]}", "rota.yaml:2: channels.c.email: got 'nobody', wanted a list of e-mail"),
        (
            "channels:\n  c: {email: a@b.org, secret: env:X}",
            "rota.yaml:2: channels.c: has a `secret`, and only webhooks",
        ),
        (
            "channels:\n  c: {webhook: 'ftp://u:hunter2@x'}",
            "rota.yaml:2: channels.c.webhook: got 17 characters, wanted",
        ),
        ("heartbeats:\n  s: {start: true}", "rota.yaml:2: heartbeats.s: has no `url`"),
        ("heartbeats: [a]", "rota.yaml:1: heartbeats: got a list, wanted names below it"),
        ("alerting: {secret: short}", "rota.yaml:1: alerting.secret: got 5 characters, wanted a secret of 16"),
        ("smtp: {tls: maybe}", "rota.yaml:1: smtp.tls: got 'maybe', wanted starttls, tls or none"),
    ],
)
def test_a_slip_names_file_line_and_key(file, text, said):
    with pytest.raises(BadSettings) as refused:
        file(text).alerts.rules()
    assert str(refused.value).startswith(said)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alerts:\n  a: {when: fails, channels: [ops]}", "rota.yaml:2: alerts.a.channels: there is no channel 'ops'"),
        (
            "alerts:\n  a: {when: fails}\nchannels:\n  ops: {webhook: https://x.org/}",
            "rota.yaml:4: channels.ops: a webhook needs a secret that signs its requests; set ROTA_ALERTING_SECRET",
        ),
        (
            "alerts:\n  a: {when: fails}\nchannels:\n  ops: {webhook: env:NOT_SET, secret: 0123456789abcdef}",
            "rota.yaml:4: channels.ops: the variable NOT_SET is not set",
        ),
        (
            "alerts:\n  a: {when: fails}\nchannels:\n  team: {email: a@example.org}",
            "rota.yaml:4: channels.team: e-mail needs smtp.host; set it in rota.yaml or by ROTA_SMTP_HOST",
        ),
        ("heartbeats:\n  s: {url: env:NOT_SET}", "rota.yaml:2: heartbeats.s: the variable NOT_SET is not set"),
    ],
)
def test_what_a_node_could_not_do_is_said_before_it_starts(file, text, said):
    app = file(text)
    with pytest.raises(BadSettings) as refused:
        app.start(worker=False)
    assert str(refused.value).startswith(said)


def test_code_and_file_together(file):
    app = file("alerts:\n  a: {when: fails}")
    app.alerts.add("b", when="late")
    assert sorted(app.alerts.plan.rules) == ["a", "b"]
    app.alerts.add("a", when="late")
    with pytest.raises(BadSettings, match=r"rota.yaml:2: alerts.a is declared in code, too"):
        app.start(worker=False)


def test_a_name_is_declared_once_and_before_the_start(file):
    app = file("")
    app.alerts.add("a", when="fails")
    with pytest.raises(DuplicateName):
        app.alerts.add("a", when="late")
    with pytest.raises(BadOption, match="did you mean schedule"):
        app.alerts.add("b", when="late", schedules="x")
    with app.running(worker=False) as node:
        assert "alert watch" in [service.name for service in node.services]
        with pytest.raises(Refused, match="before the app starts"):
            app.alerts.add("c", when="late")
