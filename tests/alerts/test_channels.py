"""Channels against real receivers on loopback: what is sent, who may be reached, and what is never shown."""

from __future__ import annotations

import asyncio
import hmac
import json
import socket
import ssl
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from alerts.receivers import mail_receiver, web_receiver
from amounts import PATIENCE
from rota import App
from rota.alerts import http_client, mail
from rota.alerts.http_client import HttpClient
from rota.alerts.sender import Sender
from rota.errors import AlertNotSent, BadOption
from rota.model.alerts.message import sample_alert

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "0123456789abcdef"  # noqa: S105
LOCAL = ("127.0.0.0/8",)


@pytest.fixture
def receiver():
    with web_receiver() as receiver:
        yield receiver


@pytest.fixture
def app(tmp_path, monkeypatch):
    """An app whose settings a test says by variables."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_ALERTING_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("ROTA_ALERTING_SECRET", SECRET)
    app = App("memory://", name="shop")
    yield app
    app.close()


def test_a_webhook_gets_signed_json(app, receiver):
    app.alerts.webhook("ops", f"{receiver.url}/hook?team=a")
    app.alerts.test("ops", by="ann")
    (request,) = receiver.requests
    assert (request.method, request.path) == ("POST", "/hook?team=a")
    said = json.loads(request.body)
    assert (said["event"], said["app"], said["text"]) == (
        "alert.test",
        "shop",
        "This is a test of the channel ops, sent by ann.",
    )
    signed = request.headers["Rota-Timestamp"].encode() + b"." + request.body
    expected = hmac.new(SECRET.encode(), signed, sha256).hexdigest()
    assert request.headers["Rota-Signature"] == f"v1={expected}"
    assert request.headers["Rota-Delivery"] == said["id"]
    assert request.headers["Host"] == receiver.url.removeprefix("http://")


def test_a_webhook_of_its_own_secret_and_a_url_from_a_variable(app, receiver, monkeypatch):
    monkeypatch.setenv("OPS_URL", f"{receiver.url}/secret-path")
    app.alerts.webhook("ops", "env:OPS_URL", secret="another-secret-of-its-own")  # noqa: S106
    app.alerts.test("ops")
    (request,) = receiver.requests
    signed = request.headers["Rota-Timestamp"].encode() + b"." + request.body
    expected = hmac.new(b"another-secret-of-its-own", signed, sha256).hexdigest()
    assert request.headers["Rota-Signature"] == f"v1={expected}"


@pytest.mark.parametrize("status", [301, 400, 500])
def test_what_is_no_success_is_no_delivery_and_a_redirect_is_not_followed(app, receiver, status):
    receiver.status, receiver.headers = status, {"Location": f"{receiver.url}/elsewhere"}
    app.alerts.webhook("ops", f"{receiver.url}/hook")
    with pytest.raises(AlertNotSent, match=str(status)):
        app.alerts.test("ops")
    assert len(receiver.requests) == 1


def test_a_loopback_receiver_needs_a_network_that_is_allowed(app, receiver, monkeypatch):
    monkeypatch.delenv("ROTA_ALERTING_NETWORKS")
    app.alerts.webhook("ops", f"{receiver.url}/hook")
    with pytest.raises(AlertNotSent, match=r"127\.0\.0\.1 is not an address of the public internet; alerting.networks"):
        app.alerts.test("ops")
    assert receiver.requests == []


def test_the_connection_goes_to_the_address_that_was_checked(receiver):
    """A name whose address changes between the check and the connection: it is resolved once."""
    port = int(receiver.url.rpartition(":")[2])
    answers = iter([["127.0.0.1"], ["169.254.169.254"]])
    client = HttpClient(LOCAL, lambda _host, _port: next(answers))
    assert client.send("POST", f"http://hooks.example.org:{port}/x", b"{}") == 204
    assert receiver.requests[0].headers["Host"] == f"hooks.example.org:{port}"
    with pytest.raises(AlertNotSent, match="never allowed"):
        client.send("POST", f"http://hooks.example.org:{port}/x", b"{}")
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("address", ["10.0.0.1", "::ffff:192.168.0.1", "64:ff9b::a00:1", "::1"])
def test_one_private_address_among_public_ones_refuses_the_name(address, monkeypatch):
    def connect(*_: object) -> None:
        raise AssertionError("a connection was made")

    monkeypatch.setattr(socket, "create_connection", connect)
    client = HttpClient((), lambda _host, _port: ["93.184.216.34", address])
    with pytest.raises(AlertNotSent, match="is refused"):
        client.send("POST", "https://hooks.example.org/x", b"{}")


def test_plain_http_is_refused_outside_the_networks_that_are_allowed():
    client = HttpClient((), lambda _host, _port: ["93.184.216.34"])
    with pytest.raises(AlertNotSent, match="only https:// is allowed"):
        client.send("POST", "http://hooks.example.org/x", b"{}")


def test_a_host_without_an_address_is_said(receiver):
    def resolve(_host: str, _port: int) -> list[str]:
        raise socket.gaierror("no such name")

    with pytest.raises(AlertNotSent, match="could not be resolved: no such name"):
        HttpClient(LOCAL, resolve).send("POST", receiver.url, b"")
    with pytest.raises(AlertNotSent, match="has no address"):
        HttpClient(LOCAL, lambda _host, _port: []).send("POST", receiver.url, b"")


def test_the_next_address_is_tried_if_one_refuses_the_connection(receiver):
    port = int(receiver.url.rpartition(":")[2])
    client = HttpClient(LOCAL, lambda _host, _port: ["127.0.0.2", "127.0.0.1"])
    assert client.send("POST", f"http://hooks.example.org:{port}/", b"{}") == 204


@contextmanager
def dripping(first: bytes) -> Iterator[int]:
    """The port of a server that sends this, then one byte at a time: each comes in time, the whole never does."""
    listener = socket.create_server(("127.0.0.1", 0))
    is_over = threading.Event()

    def drip() -> None:
        peer, _ = listener.accept()
        with peer:
            peer.sendall(first)
            while not is_over.wait(0.02):
                try:
                    peer.sendall(b"a")
                except OSError:
                    return

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        is_over.set()
        thread.join(PATIENCE)
        listener.close()


def test_a_receiver_that_drips_bytes_is_left(monkeypatch):
    monkeypatch.setattr(http_client, "REQUEST_FOR", 0.3)
    with (
        dripping(b"HTTP/1.1 200 OK\r\nX-Long: ") as port,
        pytest.raises(AlertNotSent, match="gave no whole response"),
    ):
        HttpClient(LOCAL).send("POST", f"http://127.0.0.1:{port}/", b"{}")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for hooks.example.org that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hooks.example.org")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("hooks.example.org")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder


def test_tls_is_checked_against_the_name_and_not_the_address(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    names = []
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    client = HttpClient(LOCAL, lambda _host, _port: ["127.0.0.1"])
    with web_receiver(context) as receiver:
        port = receiver.url.rpartition(":")[2]
        assert client.send("POST", f"https://hooks.example.org:{port}/x", b"{}") == 204
        with pytest.raises(AlertNotSent, match="CERTIFICATE_VERIFY_FAILED"):
            client.send("POST", f"https://other.example.org:{port}/x", b"{}")
    assert names == ["hooks.example.org", "other.example.org"]
    assert receiver.requests[0].headers["Host"] == f"hooks.example.org:{port}"


@pytest.mark.parametrize(
    "url",
    ["ftp://example.org/", "https://", "https://user:secret@example.org/", "https://a b/", "https://host:x/", "hook"],
)
def test_a_url_that_cannot_be_used_is_refused_without_showing_it(app, url):
    with pytest.raises(BadOption) as refused:
        app.alerts.webhook("ops", url)
    assert "secret" not in str(refused.value)


def test_a_channel_never_shows_its_secrets(app, receiver):
    app.alerts.webhook("ops", f"{receiver.url}/T0/secret-path", secret="another-secret-of-its-own")  # noqa: S106
    (shown,) = app.alerts.rules().channels
    assert shown.to == f"{receiver.url}/…"
    receiver.status = 500
    with pytest.raises(AlertNotSent) as failed:
        app.alerts.test("ops")
    assert "secret" not in str(failed.value)


def test_a_function_is_a_channel_and_its_error_is_kept(app, caplog):
    heard = []

    @app.alerts.channel("pager")
    def page(alert) -> None:
        heard.append(alert)
        if len(heard) > 1:
            raise ValueError("no credit")

    app.alerts.test("pager")
    assert heard[0].event == "alert.test"
    with pytest.raises(AlertNotSent, match="its function raised ValueError: no credit"):
        app.alerts.test("pager")
    assert "the function of the alert channel pager failed" in caplog.text


def test_a_coroutine_is_a_channel(app):
    received = []

    @app.alerts.channel("pager")
    async def page(alert) -> None:
        await asyncio.sleep(0)
        received.append(alert.event)
        if len(received) > 1:
            raise ValueError("no credit")

    app.alerts.test("pager")
    assert received == ["alert.test"]
    with pytest.raises(AlertNotSent, match="its function raised ValueError: no credit"):
        app.alerts.test("pager")


# E-mail.


@pytest.fixture
def by_mail(app, monkeypatch):
    monkeypatch.setenv("ROTA_SMTP_HOST", "127.0.0.1")
    monkeypatch.setenv("ROTA_SMTP_TLS", "none")
    monkeypatch.setenv("ROTA_SMTP_SENDER", "rota@example.org")
    monkeypatch.setenv("ROTA_SMTP_USER", "rota")
    monkeypatch.setenv("ROTA_SMTP_PASSWORD", "hunter2-of-the-server")
    app.alerts.email("team", ["oncall@example.org", "boss@example.org"])
    return app


def test_an_alert_by_mail(by_mail, monkeypatch):
    with mail_receiver() as server:
        monkeypatch.setenv("ROTA_SMTP_PORT", str(server.port))
        by_mail.alerts.test("team", by="ann")
    (message,) = server.messages
    assert "Subject: [shop] Test: test (team)" in message
    assert "To: oncall@example.org, boss@example.org" in message
    assert "This is a test of the channel team, sent by ann." in message
    assert [line for line in server.commands if line.upper().startswith("RCPT")] == [
        "rcpt TO:<oncall@example.org>",
        "rcpt TO:<boss@example.org>",
    ]


def test_a_mail_that_the_server_refuses_is_said_without_the_password(by_mail, monkeypatch):
    with mail_receiver(refuses=True) as server:
        monkeypatch.setenv("ROTA_SMTP_PORT", str(server.port))
        with pytest.raises(AlertNotSent, match="nobody is called so") as failed:
            by_mail.alerts.test("team")
    assert "hunter2" not in str(failed.value)


def test_a_mail_server_that_is_away_is_said(by_mail, monkeypatch):
    monkeypatch.setenv("ROTA_SMTP_PORT", "1")
    with pytest.raises(AlertNotSent, match=r"127\.0\.0\.1:1 did not take the message: ConnectionRefusedError"):
        by_mail.alerts.test("team")


def test_a_mail_server_that_drips_bytes_is_left(by_mail, monkeypatch):
    monkeypatch.setattr(mail, "MESSAGE_FOR", 0.3)
    with dripping(b"220 here\r\n250-") as port:
        monkeypatch.setenv("ROTA_SMTP_PORT", str(port))
        with pytest.raises(AlertNotSent, match="did not take the message"):
            by_mail.alerts.test("team")


def test_a_channel_whose_settings_are_missing_says_which(app, monkeypatch):
    monkeypatch.delenv("ROTA_ALERTING_SECRET")
    app.alerts.webhook("ops", "env:OPS_URL")
    app.alerts.email("team", ["oncall@example.org"])
    with pytest.raises(AlertNotSent, match="the variable OPS_URL is not set; a webhook needs a secret"):
        app.alerts.test("ops")
    with pytest.raises(AlertNotSent, match=r"needs smtp\.host; .*needs smtp\.sender"):
        app.alerts.test("team")


def test_starttls_is_not_left_out_if_the_server_cannot_do_it(by_mail, monkeypatch):
    monkeypatch.setenv("ROTA_SMTP_TLS", "starttls")
    with mail_receiver() as server:
        monkeypatch.setenv("ROTA_SMTP_PORT", str(server.port))
        with pytest.raises(AlertNotSent, match="STARTTLS"):
            by_mail.alerts.test("team")
    assert server.messages == []


def test_a_subject_cannot_begin_a_header_of_its_own(by_mail, monkeypatch):
    with mail_receiver() as server:
        monkeypatch.setenv("ROTA_SMTP_PORT", str(server.port))
        alert = sample_alert("shop\r\nBcc: eve@example.org", "team", 0, "ann")
        Sender(by_mail.alerts.plan).send(by_mail.alerts.plan.channel("team"), alert)
    assert not [line for line in server.messages[0].split("\n\n")[0].splitlines() if line.startswith("Bcc")]
