"""A real node dies by kill -9 between the record of an alert and its message; another node sends it, once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from alerts.alert_child import declare
from alerts.receivers import web_receiver
from alerts.stage import AlertStage
from amounts import PATIENCE
from every_store import fresh_place, take_back_places
from rota.alerts.sender import Sender

CHILD = Path(__file__).parent / "alert_child.py"


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_the_message_of_a_node_that_was_killed_is_sent_by_another(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_ALERTING_EVERY", "1s")
    monkeypatch.setenv("ROTA_ALERTING_NETWORKS", "127.0.0.0/8")
    place = fresh_place(kind, tmp_path)
    with web_receiver() as receiver:
        command = [sys.executable, str(CHILD), place.url, place.namespace, f"{receiver.url}/hook", "die"]
        ended = subprocess.run(command, env=dict(os.environ), timeout=PATIENCE, check=False)
        assert ended.returncode == -signal.SIGKILL
        stage = AlertStage(place.make())
        declare(stage.app, f"{receiver.url}/hook")
        assert stage.open_alerts() == ["mail"]
        assert receiver.requests == []
        stage.receiver = Sender(stage.plan)
        del stage.app.alerts.declared.channels["pager"]
        stage.node("b")
        stage.skip(60)
        stage.turn()
        assert receiver.requests == []  # the other one may still be at it
        for _ in range(3):
            stage.skip(70)
            stage.turn()
        (request,) = receiver.requests
        assert b'"alert.raised"' in request.body
        stage.app.close()
    take_back_places(sound=True)
