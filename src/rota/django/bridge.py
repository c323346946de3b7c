"""Serves the dashboard, which is an ASGI app, to Django's views, under WSGI as under ASGI.

The ASGI app lives on an event loop in a thread of its own. A view waits for the whole answer. A stream of events would
hold a thread of the server for as long as a page is open, so that it is cut after a second: the browser asks again five
seconds later.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rota.web.login import Person  # noqa: TC001 - the type of a field

if TYPE_CHECKING:
    from starlette.requests import Request

    from rota.app import App

STREAM_FOR = 1.0  # seconds of a stream that are collected
RETRY = b"retry: 5000\n\n"  # milliseconds until the browser asks again
PERSON = "rota.django.person"  # where a scope carries whom Django knows


class Reply(Struct, kw_only=True):
    """An answer of the dashboard."""

    status: int = 500
    headers: list[tuple[str, str]] = []
    body: bytes = b""


class Bridge:
    """One app's dashboard in this process."""

    def __init__(self, app: App, login_url: str) -> None:
        self._web = app.asgi(login=_person, login_url=login_url)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="rota-dashboard", daemon=True).start()

    def ask(self, scope: dict[str, Any], body: bytes) -> Reply:
        """Have a request answered; called by a thread of the server."""
        return asyncio.run_coroutine_threadsafe(self._ask(scope, body), self._loop).result()

    async def _ask(self, scope: dict[str, Any], body: bytes) -> Reply:
        exchange = _Exchange(body)
        serving = asyncio.ensure_future(self._web(scope, exchange.receive, exchange.send))
        started = asyncio.ensure_future(exchange.started.wait())
        await asyncio.wait({serving, started}, return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if exchange.is_stream:
            await asyncio.wait({serving}, timeout=STREAM_FOR)
            exchange.is_gone.set()
            exchange.reply.body = RETRY + exchange.reply.body
        await serving
        return exchange.reply


class _Exchange:
    """One request and its answer, in the words of ASGI."""

    def __init__(self, body: bytes) -> None:
        self._unread: bytes | None = body
        self.is_gone = asyncio.Event()
        self.started = asyncio.Event()
        self.reply = Reply()

    @property
    def is_stream(self) -> bool:
        return any(name == "content-type" and "event-stream" in value for name, value in self.reply.headers)

    async def receive(self) -> dict[str, Any]:
        if self._unread is not None:
            body, self._unread = self._unread, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.is_gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.reply.status = message["status"]
            self.reply.headers = [
                (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in message["headers"]
            ]
            self.started.set()
        elif message["type"] == "http.response.body" and not self.is_gone.is_set():
            self.reply.body += message.get("body", b"")


async def _person(request: Request) -> Person | None:
    """Whom Django knows: the view has asked before."""
    found: Person | None = request.scope[PERSON]
    return found


_bridges: dict[int, Bridge] = {}  # by process: threads do not survive a fork
_making = threading.Lock()


def bridge_of(app: App, login_url: str) -> Bridge:
    """The bridge of this process, made when it is first needed."""
    with _making:
        pid = os.getpid()
        if pid not in _bridges:
            _bridges.clear()
            _bridges[pid] = Bridge(app, login_url)
        return _bridges[pid]
