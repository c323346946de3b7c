"""Clients that do not come to the end of what they ask, over real sockets: they are cut off, and streams live on."""

from __future__ import annotations

import socket
from itertools import chain, repeat

import pytest

from amounts import PATIENCE
from rota.app import internals
from rota.web.server import WebServer

SHORT = 0.5
HEAD = b"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nX-Admin-Token: %s\r\n"
LIVE = b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
JOB = b'{"task": "greet", "args": ["ann"]}'


@pytest.fixture
def kind() -> str:
    return "sqlite"


@pytest.fixture
def secret(app) -> bytes:
    return app.tokens.create("ann", role="operate").secret.encode()


@pytest.fixture
def patience() -> float:
    return SHORT


@pytest.fixture
def served(app, patience, monkeypatch):
    monkeypatch.setattr("rota.web.hub.PACE", 0.02)
    monkeypatch.setattr("rota.web.access.FIRST_DELAY", 0.0)
    server = WebServer(app, port=0, request_timeout=patience).start()
    yield server
    server.stop()


@pytest.fixture
def connect(served):
    opened = []

    def connect(said: bytes = b"") -> socket.socket:
        opened.append(socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE))
        opened[-1].sendall(said)
        return opened[-1]

    yield connect
    for one in opened:
        one.close()


def rest(client: socket.socket) -> bytes:
    """All that still comes, up to the end; TimeoutError where it does not end."""
    found = b""
    while True:
        try:
            part = client.recv(65_536)
        except ConnectionError:
            return found
        if not part:
            return found
        found += part


def answer(client: socket.socket, last: bytes = b"}") -> bytes:
    found = b""
    while not found.endswith(last):
        part = client.recv(65_536)
        assert part, found
        found += part
    return found


def is_cut_off(client: socket.socket, parts) -> bool:
    """Say a little, see whether the other side has hung up, and go on."""
    client.settimeout(0.02)
    for part in parts:
        try:
            client.sendall(part)
            if not client.recv(65_536):
                return True
        except TimeoutError:
            continue
        except ConnectionError:
            return True
    return False


@pytest.mark.parametrize("said", [b"", b"G", LIVE[:-2]], ids=["nothing", "a letter", "no end"])
def test_who_does_not_finish_a_head_is_cut_off(connect, said):
    assert rest(connect(said)) == b""


@pytest.mark.parametrize("much", [b"Content-Length: 99\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"])
def test_who_does_not_finish_a_body_is_cut_off(app, connect, secret, much):
    assert rest(connect(HEAD % secret + much)) == b""
    assert app.jobs.list().items == []


def test_a_letter_now_and_then_buys_no_time(connect, secret):
    assert is_cut_off(connect(LIVE[:-2]), chain([b"X-Long: "], repeat(b"x", 400)))
    assert is_cut_off(connect(HEAD % secret + b"Content-Length: 9999\r\n\r\n"), repeat(b" ", 400))


def test_patience_is_the_same_for_a_connections_later_requests(connect):
    client = connect(LIVE)
    assert b"200 OK" in answer(client)
    client.sendall(LIVE[:9])
    assert rest(client) == b""


def test_a_body_that_nobody_waits_for_buys_no_time_either(connect):
    client = connect(HEAD % b"bad" + b"Content-Length: 9999\r\n\r\n")
    assert b" 401 " in answer(client)
    assert is_cut_off(client, repeat(b" ", 400))


@pytest.mark.parametrize("patience", [PATIENCE])
def test_a_request_in_parts_is_answered_and_so_is_the_next(connect, secret):
    client = connect()
    head = HEAD % secret + b"Content-Length: %d\r\n\r\n" % len(JOB)
    for part in (head[:10], head[10:], JOB[:5], JOB[5:]):
        client.sendall(part)
    assert b" 201 " in answer(client)
    client.sendall(LIVE + LIVE)
    assert answer(client).count(b"200 OK") >= 1


def test_a_stream_outlives_the_patience(app, connect, secret):
    asked = b"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Admin-Token: %s\r\n\r\n" % secret
    stream = connect(asked)
    answer(stream, b"\n\n\r\n")
    assert rest(connect(b"G")) == b""  # begun later, and its time is over
    job = internals(app).registry.get("greet").enqueue("ann")
    found = b""
    while job.id.encode() not in found:
        found += answer(stream, b"\r\n")
