"""Live events and followed logs, over a real server: who listens is told, who goes is forgotten, who is slow is cut."""

from __future__ import annotations

import asyncio
import json
import socket
import threading

import httpx2
import pytest

from amounts import PATIENCE
from cli.processes import wait_until
from rota import App
from rota.app import internals
from rota.client.tokens import Identity
from rota.store.contract import LogLine
from rota.web.hub import MOST_WAITING, Hub, Listener
from rota.web.server import WebServer
from web.stage import declare

READER = Identity("ann", "read", "0123456789ab")


@pytest.fixture
def kind() -> str:
    return "sqlite"


@pytest.fixture
def served(app, monkeypatch):
    """A real server with a fast pace, and what a client of it needs."""
    monkeypatch.setattr("rota.web.hub.PACE", 0.02)
    server = WebServer(app, port=0).start()
    secret = app.tokens.create("ann", role="operate").secret
    with httpx2.Client(base_url=server.url, headers={"X-Admin-Token": secret}, timeout=PATIENCE) as client:
        yield server, client
    server.stop()


def events(lines) -> list[dict]:
    """Events as they come, up to the end of the stream."""
    found, current = [], {}
    for line in lines:
        if not line and current:
            found.append(current)
            current = {}
        elif line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            current[name] = json.loads(value) if name == "data" else value
    return found


def first(lines, name: str) -> dict:
    """The next event of that name."""
    is_next = False
    for line in lines:
        if line == f"event: {name}":
            is_next = True
        elif is_next and line.startswith("data: "):
            return json.loads(line.removeprefix("data: "))
    raise AssertionError(f"the stream ended without {name}")


def write(app: App, job_id: str, *texts: str) -> None:
    store = app.open()
    store.append_logs([LogLine(job_id=job_id, at=store.now(), level="info", text=text) for text in texts])


def test_what_happens_is_told(app, served):
    _, client = served
    with client.stream("GET", "/api/v1/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        assert first(lines, "counts")["jobs"]["queued"] == 0
        job = internals(app).registry.get("greet").enqueue("ann")
        told = first(lines, "job")
        assert (told["id"], told["task"], told["state"]) == (job.id, "greet", "queued")
        app.jobs.cancel(job.id, by="bob")
        assert first(lines, "job")["state"] == "cancelled"
        change = first(lines, "change")
        assert (change["by"], change["verb"], change["name"]) == ("bob", "cancelled", job.id)


def test_a_log_is_followed_to_its_end_without_gaps(app, served):
    _, client = served
    job = internals(app).registry.get("greet").enqueue("ann")
    write(app, job.id, *(f"line {number}" for number in range(450)))
    with client.stream("GET", f"/api/v1/jobs/{job.id}/logs?follow=true") as stream:
        lines = stream.iter_lines()
        assert first(lines, "line")["text"] == "line 0"
        write(app, job.id, "and more")
        app.jobs.cancel(job.id)
        found = events(lines)
    assert [event["data"].get("text") for event in found[:-1]] == [*(f"line {n}" for n in range(1, 450)), "and more"]
    assert found[-1]["event"] == "end"
    assert found[-1]["data"] == {"reason": "cancelled"}


def test_a_log_that_was_cut_off_goes_on_where_it_was(app, served):
    _, client = served
    job = internals(app).registry.get("greet").enqueue("ann")
    write(app, job.id, "one", "two", "three")
    app.jobs.cancel(job.id)
    path = f"/api/v1/jobs/{job.id}/logs?follow=true"
    with client.stream("GET", path) as stream:
        whole = events(stream.iter_lines())
    with client.stream("GET", path, headers={"Last-Event-ID": whole[0]["id"]}) as stream:
        rest = events(stream.iter_lines())
    assert rest == whole[1:]
    with client.stream("GET", f"{path}&after={whole[1]['id']}") as stream:
        assert events(stream.iter_lines()) == whole[2:]


def test_nobody_is_looked_for_once_nobody_listens(served):
    server, client = served
    with client.stream("GET", "/api/v1/events") as stream:
        lines = stream.iter_lines()
        first(lines, "counts")
        assert len(server.web.hub._listeners) == 1
    wait_until(lambda: not server.web.hub._listeners)
    wait_until(server.web.hub._looking.done)


def test_a_server_that_stops_says_so_and_lets_go(app, served):
    server, client = served
    stopping = threading.Thread(target=server.stop)
    with client.stream("GET", "/api/v1/events") as stream:
        lines = stream.iter_lines()
        first(lines, "counts")
        stopping.start()
        assert "the server stops" in first(lines, "end")["reason"]
    stopping.join(PATIENCE)
    assert not stopping.is_alive()
    with pytest.raises(httpx2.ConnectError):
        client.get("/live")
    WebServer(app, port=server.port).start().stop()  # the address is free again


def test_a_listener_that_reads_too_slowly_is_cut_off_with_a_last_word():
    async def scene() -> list[bytes | None]:
        listener = Listener(READER)
        for number in range(MOST_WAITING + 1):
            listener.send(b"%d" % number)
        listener.send(b"later")
        return [await listener.next(), await listener.next()]

    last, end = asyncio.run(scene())
    assert b"event: end" in last
    assert b"too slow" in last
    assert end is None


def test_the_store_going_away_ends_no_stream(app, served, monkeypatch):
    from rota.errors import StoreUnavailable  # noqa: PLC0415

    _, client = served
    with client.stream("GET", "/api/v1/events") as stream:
        lines = stream.iter_lines()
        first(lines, "counts")
        store = app.open()
        seen = threading.Event()

        def away(*_args, **_options):
            seen.set()
            raise StoreUnavailable("gone for a moment")

        with monkeypatch.context() as patch:
            patch.setattr(store, "list_queues", away)
            assert seen.wait(PATIENCE)
        internals(app).registry.get("greet").enqueue("ann")
        assert first(lines, "job")["task"] == "greet"


def test_only_so_many_listen_at_once(stage, monkeypatch):
    monkeypatch.setattr("rota.web.hub.MOST_LISTENERS", 0)
    response = stage.get("/api/v1/events")
    assert (response.status_code, response.json()["error"]["code"]) == (503, "too_many_listeners")


def test_no_look_is_taken_while_nobody_listens():
    app = App("memory://")
    declare(app)
    hub = Hub(app)
    assert hub._looking is None
    assert not internals(app).store.is_open


def test_the_head_of_a_stream_has_an_end(stage):
    response = stage.ask("HEAD", "/api/v1/events")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")


def test_answers_do_not_wait_for_the_other_side(app):
    server = WebServer(app, port=0)
    assert server._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    server.stop()
