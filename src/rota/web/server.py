"""Serves the HTTP API on its own address, in a thread of this process, until it is stopped."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import TYPE_CHECKING

import uvicorn

from rota.errors import BadOption
from rota.web.asgi import Web
from rota.web.origins import is_loopback
from rota.web.request_timeout import REQUEST_TIMEOUT, ListeningSocket, RequestTimeout

if TYPE_CHECKING:
    from rota.app import App

GRACE = 5  # seconds that requests have to come to their end


class WebServer:
    """Serves one app over HTTP."""

    def __init__(
        self,
        app: App,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        token: str | None = None,
        read_only: bool = False,
        request_timeout: float = REQUEST_TIMEOUT,
    ) -> None:
        check_address(host, anonymous=app.settings.web.anonymous == "read")
        self.web = Web(app, token=token, read_only=read_only)
        limited = RequestTimeout(self.web, request_timeout)
        self._socket = ListeningSocket(_bound(host, port), limited)
        self.host, self.port = host, int(self._socket.getsockname()[1])
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server = uvicorn.Server(_config(limited))
        self._thread = threading.Thread(target=self._run, name="rota-web", daemon=True)
        self._reading = threading.Thread(target=self.web.readings.read_first, name="rota-schedules", daemon=True)

    @property
    def url(self) -> str:
        """Its URL on this machine."""
        shown = "127.0.0.1" if self.is_everywhere else self.host
        return f"http://[{shown}]:{self.port}" if ":" in shown else f"http://{shown}:{self.port}"

    @property
    def is_everywhere(self) -> bool:
        """Whether it listens on every address of this machine."""
        return self.host in {"0.0.0.0", "::", ""}  # noqa: S104 - every address is meant

    def login_link(self) -> str:
        """A link to the dashboard that logs an admin in, once, within a quarter of an hour."""
        return f"{self.url}/login?once={self.web.access.sessions.make_link()}"

    def start(self) -> WebServer:
        self._thread.start()
        self._reading.start()
        return self

    def stop(self) -> None:
        """End the streams, let requests finish, and close the listening socket."""
        self._server.should_exit = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.web.hub.close)
        if self._thread.ident is not None:
            self._thread.join(GRACE + 5)
            self._reading.join(GRACE)
        self._socket.close()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._server.serve(sockets=[self._socket])


def check_address(host: str, *, anonymous: bool) -> None:
    """Refuse to show everything to everybody."""
    if anonymous and not is_loopback(host):
        raise BadOption(
            f"web.anonymous is 'read' and {host} is not a loopback address, so that anybody who reaches it could read "
            "every job; leave web.anonymous out and give out tokens (`rota token create`), or use --host 127.0.0.1"
        )


def _config(app: RequestTimeout) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        access_log=False,
        http="h11",
        lifespan="off",
        log_config=None,
        log_level="warning",
        proxy_headers=False,  # the ASGI app reads them itself, from proxies that the settings trust
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        ws="none",
    )


def _bound(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as err:
        raise BadOption(f"the HTTP API cannot listen on {host}:{port}: {err.strerror or err}; try --port 0") from err
    # Connections inherit it. Without it, an answer's body waits 40 ms for the other side to say that it has its head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
