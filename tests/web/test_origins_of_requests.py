"""Where a request comes from: trusted proxies, the Host header, and requests whose length is said twice."""

from __future__ import annotations

import logging
import socket

import pytest
from starlette.testclient import TestClient

from rota import App
from rota.errors import BadSettings
from rota.web.access import MOST_FAILURES
from rota.web.origins import client_address, is_own_host, networks_of
from rota.web.server import WebServer

JOBS = "/api/v1/jobs"
PROXIES = networks_of(["10.0.0.0/8", "127.0.0.1", "fd00::/8"])


@pytest.fixture
def kind() -> str:
    return "memory"


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["203.0.113.9"], "192.0.2.1"),  # not a proxy: its word counts for nothing
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["198.51.100.7, 203.0.113.9"], "203.0.113.9"),  # what stands to the left anybody may have written
        ("10.0.0.1", ["203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9", "10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9:4711"], "203.0.113.9"),
        ("10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        ("::ffff:10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("fd00::1", ["2001:db8::1"], "2001:db8::1"),
        ("10.0.0.1", ["nonsense"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9, nonsense"], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["10.0.0.2, 10.0.0.3"], "10.0.0.2"),
        ("", ["203.0.113.9"], ""),
    ],
)
def test_only_trusted_proxies_are_believed_and_only_their_own_words(peer, forwarded, address):
    assert client_address(peer, forwarded, PROXIES) == address


def test_without_trusted_proxies_nobody_is_believed():
    assert client_address("127.0.0.1", ["203.0.113.9"], ()) == "127.0.0.1"


def test_a_stranger_behind_a_proxy_locks_out_nobody_else(stage, monkeypatch):
    monkeypatch.setattr(type(stage.app.settings.web), "trusted_proxies", ("127.0.0.1/32",), raising=False)
    client = TestClient(stage.app.asgi(), client=("127.0.0.1", 50_000))
    bad = {"X-Admin-Token": "wrong", "X-Forwarded-For": "203.0.113.9"}
    answers = [client.get(JOBS, headers=bad).status_code for _ in range(MOST_FAILURES + 1)]
    assert answers[-1] == 429
    other = {"X-Admin-Token": "mistyped", "X-Forwarded-For": "203.0.113.10"}
    assert client.get(JOBS, headers=other).status_code == 401
    good = {"X-Admin-Token": stage.secrets["read"], "X-Forwarded-For": "203.0.113.11"}
    assert client.get(JOBS, headers=good).status_code == 200


def test_a_failed_login_is_logged_with_its_address_and_without_its_secret(stage, caplog):
    secret = stage.secrets["bad"]
    with caplog.at_level(logging.WARNING, logger="rota.web"):
        stage.get(JOBS, "bad")
        stage.client.get(JOBS, headers={"X-Admin-Token": "hunter2-hunter2"})
    first, second = (record.getMessage() for record in caplog.records if "bad token" in record.getMessage())
    assert "came from testclient" in first
    assert "token id 0123456789ab" in first
    assert secret.split("_")[2] not in first
    assert "token id none" in second
    assert "hunter2" not in second


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("127.0.0.1:8080", True),
        ("localhost", True),
        ("LOCALHOST:8080", True),
        ("[::1]:8080", True),
        ("127.0.0.2", True),
        ("jobs.example.org:8080", True),
        ("evil.example.org", False),
        ("localhost.evil.example.org", False),
        ("127.0.0.1.evil.example.org", False),
        ("192.0.2.1", False),
        ("", False),
        (None, False),
    ],
)
def test_a_host_header_must_name_this_server(host, is_own):
    assert is_own_host(host, ["jobs.example.org"]) is is_own


def local_client(stage, peer="127.0.0.1"):
    """Of a server on the loopback address that lets everybody on this machine read."""
    app = stage.app.asgi(anonymous=True)
    return TestClient(app, base_url="http://127.0.0.1:8080", client=(peer, 50_000))


@pytest.mark.parametrize("trusted", [("127.0.0.1/32",), ()], ids=["trusted", "untrusted"])
@pytest.mark.parametrize("hosts", [(), ("jobs.example.org",)], ids=["loopback", "named"])
@pytest.mark.parametrize(
    ("forwarded", "status"),
    [
        (None, 200),
        ("127.0.0.1", 200),
        ("::1, 127.0.0.1", 200),
        ("203.0.113.9", 401),
        ("127.0.0.1, 203.0.113.9", 401),
        ("203.0.113.9, 127.0.0.1", 401),
        ("nonsense", 401),
        ("", 401),
    ],
)
def test_only_clients_on_this_machine_read_without_a_token(stage, monkeypatch, trusted, hosts, forwarded, status):
    """A proxy on this machine may send its own address as Host, and it is the peer of all who come through it."""
    monkeypatch.setattr(type(stage.app.settings.web), "trusted_proxies", trusted, raising=False)
    monkeypatch.setattr(type(stage.app.settings.web), "hosts", hosts, raising=False)
    client, headers = local_client(stage), {"Host": hosts[0]} if hosts else {}
    if forwarded is not None:
        headers["X-Forwarded-For"] = forwarded
    answer = client.get(JOBS, headers=headers)
    assert answer.status_code == status
    if status == 401:
        assert "only clients on this machine" in answer.json()["error"]["message"]
    headers["X-Admin-Token"] = stage.secrets["read"]
    assert client.get(JOBS, headers=headers).status_code == 200


def test_a_remote_peer_does_not_read_without_a_token(stage):
    assert local_client(stage, "192.0.2.1").get(JOBS).status_code == 401
    assert local_client(stage, "::1").get(JOBS).status_code == 200


def test_reading_without_a_token_is_refused_under_a_strangers_name(stage):
    client = local_client(stage)
    assert client.get(JOBS).status_code == 200
    answer = client.get(JOBS, headers={"Host": "evil.example.org"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "unknown_host")
    token = {"Host": "evil.example.org", "X-Admin-Token": stage.secrets["read"]}
    assert client.get(JOBS, headers=token).status_code == 200


def test_a_request_whose_length_is_said_twice_is_refused_and_its_connection_ends(app):
    server = WebServer(app, port=0).start()
    body = b"0\r\n\r\nGET /live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n"
    try:
        with socket.create_connection((server.host, server.port), timeout=20) as connection:
            connection.sendall(head % len(body) + body)
            answer = b""
            while chunk := connection.recv(65_536):
                answer += chunk
    finally:
        server.stop()
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"ambiguous_length" in answer
    assert answer.count(b"HTTP/1.1") == 1  # what was smuggled behind it is not served


@pytest.mark.parametrize(
    ("setting", "text"), [("trusted_proxies", "[10.0.0.0/99]"), ("trusted_proxies", "[proxy]"), ("hosts", "['a b']")]
)
def test_settings_that_make_no_sense_are_told(tmp_path, monkeypatch, setting, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rota.yaml").write_text(f"web:\n  {setting}: {text}\n")
    with pytest.raises(BadSettings, match=setting):
        App("memory://").settings  # noqa: B018 - they are read when they are asked for


def test_proxies_and_hosts_are_read_from_a_file_and_the_environment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rota.yaml").write_text("web:\n  hosts: [jobs.example.org]\n")
    monkeypatch.setenv("ROTA_WEB_TRUSTED_PROXIES", "127.0.0.1, 10.0.0.0/8")
    web = App("memory://").settings.web
    assert (web.hosts, web.trusted_proxies) == (("jobs.example.org",), ("127.0.0.1/32", "10.0.0.0/8"))
