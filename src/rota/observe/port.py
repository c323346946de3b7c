"""Serves metrics and health of one worker or scheduler on a port of its own. It only reads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger("rota.metrics")

TRY_AGAIN = 1.0  # seconds, if the port is in use, as by the worker that this one replaces
PATIENCE = 5.0  # seconds that a client may take to send its request


class Answer(NamedTuple):
    """The answer of a path."""

    status: int
    kind: str  # of content
    body: bytes


Respond = Callable[[str], Answer]  # the answer of a path to a client that accepts these types


class Port:
    """Serves paths until it is closed. If the port is in use, it tries again: the node continues meanwhile."""

    def __init__(self, host: str, port: int, paths: Mapping[str, Respond]) -> None:
        self.host = host
        self.number = port  # 0: any that is free; known once it serves
        self.serves = threading.Event()
        self._handler = _handler_for(paths)
        self._closing = threading.Event()
        self._server: ThreadingHTTPServer | None = None
        self._thread = threading.Thread(target=self._serve, name="rota-metrics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Close the port, so that another process can use it."""
        self._closing.set()
        server = self._server
        if server is not None:
            server.shutdown()
        self._thread.join(timeout=PATIENCE)

    def _serve(self) -> None:
        server = self._bound()
        if server is None:
            return
        with server:
            self._server = server
            self.number = server.server_address[1]
            log.info("metrics are served at http://%s:%d/metrics", self.host, self.number)
            self.serves.set()
            if not self._closing.is_set():
                server.serve_forever(poll_interval=0.1)

    def _bound(self) -> ThreadingHTTPServer | None:
        was_told = False
        while not self._closing.is_set():
            try:
                return _Server((self.host, self.number), self._handler)
            except (OSError, OverflowError) as err:
                if not was_told:
                    log.warning("metrics cannot be served at %s:%d yet: %s", self.host, self.number, err)
                was_told = True
                self._closing.wait(TRY_AGAIN)
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignore a client that disconnects."""


def _handler_for(paths: Mapping[str, Respond]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE
        server_version, sys_version = "rota", ""

        def do_GET(self) -> None:
            respond = paths.get(self.path.partition("?")[0])
            answer = (
                Answer(404, "text/plain", b"not found\n")
                if respond is None
                else _answer_of(respond, self.headers.get("Accept", ""))
            )
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(answer.body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Ignore the line of a request: there is a scrape every few seconds."""

    return Handler


def _answer_of(respond: Respond, accept: str) -> Answer:
    try:
        return respond(accept)
    except Exception:
        log.exception("a scrape failed")
        return Answer(503, "text/plain", b"the metrics cannot be read now; the log says why\n")
