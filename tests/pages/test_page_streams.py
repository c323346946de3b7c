"""The streams of pages: begun on the event loop, with an event for each outage, and alive after it."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from amounts import PATIENCE
from rota import App
from rota.errors import StoreUnavailable
from rota.testing.document_suite.stage import wait_for
from rota.web.hub import Hub
from rota.web.server import WebServer
from web.test_streams import first


@pytest.fixture
def app(monkeypatch):
    monkeypatch.setenv("ROTA_WEB_ANONYMOUS", "read")
    monkeypatch.setattr("rota.web.hub.PACE", 0.02)
    app = App("memory://", name="shop")
    yield app
    app.close()


@pytest.fixture
def stream(app):
    """The stream of a page whose visitor has neither a token nor a session."""
    server = WebServer(app, port=0).start()
    with (
        httpx2.Client(base_url=server.url, timeout=PATIENCE) as client,
        client.stream("GET", "/events", headers={"Accept": "text/html"}) as found,
    ):
        yield found
    server.stop()


@pytest.fixture
def loops(monkeypatch):
    """The event loops on which streams are begun; None for a thread without one."""
    found = []
    begin = Hub.stream

    def stream(hub, listener):
        try:
            found.append(asyncio.get_running_loop())
        except RuntimeError:
            found.append(None)
        return begin(hub, listener)

    monkeypatch.setattr(Hub, "stream", stream)
    return found


def test_a_stream_of_a_page_is_begun_on_the_event_loop(loops, stream):
    assert stream.status_code == 200
    assert loops
    assert None not in loops


@pytest.mark.parametrize("error", [StoreUnavailable("the store does not answer"), ValueError("a bug")])
def test_an_outage_is_logged_once_and_streams_go_on_after_it(app, stream, monkeypatch, caplog, error):
    lines, failed = stream.iter_lines(), []
    first(lines, "counts")

    def fail(*_: object, **__: object) -> None:
        failed.append(error)
        raise error

    with monkeypatch.context() as outage:
        outage.setattr("rota.web.watching.Watcher.look", fail)
        first(lines, "away")
        wait_for(lambda: len(failed) > 3)
    app.task(len, name="count").enqueue("a")
    assert first(lines, "job")["task"] == "count"
    assert [record.message for record in caplog.records if record.name == "rota.web"] == [
        f"event streams cannot read the store: {error}"
    ]


def test_a_page_without_a_session_gets_the_event_that_the_store_is_away(app, stream, monkeypatch):
    lines = stream.iter_lines()
    first(lines, "counts")

    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("the store does not answer")

    monkeypatch.setattr(type(app.open()), "list_jobs", away)
    assert first(lines, "away") == {}
