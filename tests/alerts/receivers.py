"""Receivers on loopback: a web server that records requests, and a mail server that records messages."""

from __future__ import annotations

import socketserver
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple

from amounts import PATIENCE

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator


class Request(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class WebReceiver:
    """Answers each request with a status, or as a function says."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.status = 204
        self.headers: dict[str, str] = {}
        self.came = threading.Condition()
        self.url = ""

    def wait_for(self, number: int) -> list[Request]:
        with self.came:
            assert self.came.wait_for(lambda: len(self.requests) >= number, PATIENCE), self.requests
        return self.requests


@contextmanager
def web_receiver(context: ssl.SSLContext | None = None) -> Iterator[WebReceiver]:
    receiver = WebReceiver()

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with receiver.came:
                receiver.requests.append(Request(self.command, self.path, dict(self.headers), body))
                receiver.came.notify_all()
            self.send_response(receiver.status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.end_headers()

        do_GET = do_POST = handle_one  # noqa: N815 - the names that the base class calls

        def log_message(self, *_: object) -> None: ...

    server = QuietServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    with _serving(server) as port:
        receiver.url = f"{'http' if context is None else 'https'}://127.0.0.1:{port}"
        yield receiver


class QuietServer(ThreadingHTTPServer):
    """Says nothing of a client that goes away, or that trusts no certificate."""

    def handle_error(self, *_: object) -> None: ...


class MailReceiver(NamedTuple):
    port: int
    messages: list[str]
    commands: list[str]


@contextmanager
def mail_receiver(*, refuses: bool = False) -> Iterator[MailReceiver]:
    messages: list[str] = []
    commands: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

        def handle(self) -> None:
            self.say("220 here")
            while line := self.rfile.readline().decode().strip():
                commands.append(line)
                word = line.split()[0].upper()
                if word == "EHLO":
                    self.say("250-here")
                    self.say("250 AUTH PLAIN")
                elif word == "RCPT" and refuses:
                    self.say("550 nobody is called so")
                elif word == "DATA":
                    self.say("354 go on")
                    lines = []
                    while (text := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                        lines.append(text)
                    messages.append("\n".join(lines))
                    self.say("250 taken")
                elif word == "QUIT":
                    self.say("221 bye")
                    return
                else:
                    self.say("235 in" if word == "AUTH" else "250 ok")

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with _serving(Server(("127.0.0.1", 0), Handler)) as port:
        yield MailReceiver(port, messages, commands)


@contextmanager
def _serving(server: socketserver.BaseServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
