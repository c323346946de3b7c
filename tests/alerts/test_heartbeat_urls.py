"""Heartbeat URLs, as healthchecks.io expects them: of schedules when runs begin and end, and of a node every minute."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from alerts.receivers import web_receiver
from amounts import PATIENCE
from rota import App, every
from rota.alerts.heartbeats import NodeHeartbeat, Pinger, ScheduleHeartbeats, with_ending
from rota.alerts.http_client import HttpClient
from rota.engine.events import Events
from rota.engine.store_clock import StoreClock


@pytest.fixture
def receiver():
    with web_receiver() as receiver:
        yield receiver


@pytest.fixture
def app(tmp_path, monkeypatch, receiver):
    """An app with two schedules that call the receiver, one of them also when a run begins."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_ALERTING_NETWORKS", "127.0.0.0/8")
    app = App("memory://", name="shop")

    @app.schedule(every("1h"), id="good")
    @app.task(name="t.good")
    def good() -> None: ...

    @app.schedule(every("1h"), id="bad")
    @app.task(name="t.bad", retries=0)
    def bad() -> None:
        raise ValueError("no")

    @app.schedule(every("1h"), id="other")
    @app.task(name="t.other")
    def other() -> None: ...

    app.alerts.heartbeat("good", f"{receiver.url}/good?rid=1", start=True)
    app.alerts.heartbeat("bad", f"{receiver.url}/bad/")
    yield app
    app.close()


def run(app, schedule_id: str) -> None:
    app.jobs.wait(app.schedules.run_now(schedule_id).id, 60)


def test_a_run_calls_the_url_of_its_schedule_when_it_begins_succeeds_and_fails(app, receiver):
    with app.running():
        run(app, "good")
        assert sorted(one.path for one in receiver.wait_for(2)) == ["/good/start?rid=1", "/good?rid=1"]
        run(app, "other")
        run(app, "bad")
        assert receiver.wait_for(3)[2].path == "/bad/fail"
    assert {one.method for one in receiver.requests} == {"GET"}


def test_a_second_start_of_the_app_does_not_call_twice(app, receiver):
    for _ in range(2):
        with app.running():
            run(app, "bad")
    receiver.wait_for(2)
    run_paths = [one.path for one in receiver.requests]
    assert run_paths == ["/bad/fail", "/bad/fail"]


def test_a_node_that_stops_waits_for_calls_that_are_under_way(app):
    """Otherwise the call of the last run would be lost with the process."""
    events, pinger = Events(), Pinger(app.alerts.plan, HttpClient())
    ScheduleHeartbeats(app.alerts.plan, events, pinger)
    answers = threading.Event()
    under_way = []

    def stop() -> None:
        events.emit("node.stopped", 0, node="n")
        under_way.append(pinger.threads.unfinished("a"))

    pinger.threads.call("a", partial(answers.wait, PATIENCE))
    stopping = threading.Thread(target=stop)
    stopping.start()
    stopping.join(0.1)  # if nothing waited, it would have ended by now
    answers.set()
    stopping.join(PATIENCE)
    assert under_way == [0]


def test_a_url_that_does_not_answer_is_logged_once_and_without_its_path(app, receiver, caplog):
    receiver.status = 404
    pinger = Pinger(app.alerts.plan, HttpClient(("127.0.0.0/8",)))
    for _ in range(2):
        pinger.ping("schedule bad", f"{receiver.url}/secret-path", "fail")
        assert pinger.threads.wait_until_idle(60)
    assert len(receiver.requests) == 6  # each is tried three times
    assert caplog.text.count("the heartbeat URL of schedule bad could not be called: it answered with status 404") == 1
    assert "secret-path" not in caplog.text


def test_a_node_calls_its_url_while_it_is_well(app, receiver):
    pinger = Pinger(app.alerts.plan, HttpClient(("127.0.0.0/8",)))
    well = [True]
    service = NodeHeartbeat(Events(), StoreClock(lambda: 0), f"{receiver.url}/node", pinger, lambda: well[0])
    assert service.turn() == 60.0
    assert receiver.wait_for(1)[0].path == "/node"
    well[0] = False
    service.turn()
    assert pinger.threads.wait_until_idle(60)
    assert len(receiver.requests) == 1


def test_a_running_node_calls_the_url_of_the_settings_with_its_host(tmp_path, monkeypatch, receiver):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_ALERTING_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("ROTA_ALERTING_NODE_HEARTBEAT", f"{receiver.url}/key/rota-{{host}}?create=1")
    monkeypatch.setattr("socket.gethostname", lambda: "Web.01.example")
    app = App("memory://", name="shop")
    with app.running(worker=False):
        assert receiver.wait_for(1)[0].path == "/key/rota-web-01-example?create=1"
    app.close()


@pytest.mark.parametrize(
    ("url", "ending", "expected"),
    [
        ("https://hc-ping.com/abc", "", "https://hc-ping.com/abc"),
        ("https://hc-ping.com/abc", "fail", "https://hc-ping.com/abc/fail"),
        ("https://hc-ping.com/abc/", "start", "https://hc-ping.com/abc/start"),
        ("https://hc-ping.com/abc#note", "fail", "https://hc-ping.com/abc/fail"),
        ("https://hc-ping.com/key/slug?create=1", "fail", "https://hc-ping.com/key/slug/fail?create=1"),
    ],
)
def test_the_ending_stands_before_the_query(url, ending, expected):
    assert with_ending(url, ending) == expected
