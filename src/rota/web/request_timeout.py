"""Closes a connection whose client takes too long to send a request. Uvicorn waits without a limit.

The limit runs from the moment that a connection is accepted, or that the last answer has ended, until the next request
has arrived, body included. Bytes that arrive slowly do not extend it. Answers have no limit, so streams live on.

It needs nothing from inside uvicorn: the listening socket sees connections begin, and an ASGI app around the API sees
requests arrive and answers end. Both name a connection by its client's address and port.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUEST_TIMEOUT = 30.0  # seconds

Client = tuple[str, int]


class RequestTimeout:
    """An ASGI app with a limit on the time that its clients take to send a request."""

    def __init__(self, app: ASGIApp, seconds: float = REQUEST_TIMEOUT) -> None:
        self._app = app
        self._seconds = seconds
        self._connections: WeakValueDictionary[Client, socket.socket] = WeakValueDictionary()  # open ones
        self._timers: dict[Client, asyncio.TimerHandle] = {}

    def accepted(self, connection: socket.socket, client: Client) -> None:
        self._connections[client] = connection
        self._await_request(client)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = _client_of(scope)
        if client is None:
            await self._app(scope, receive, send)
            return
        if not _has_body(scope):
            self._request_arrived(client)

        async def watched_receive() -> Message:
            message = await receive()
            if not message.get("more_body"):
                self._request_arrived(client)
            return message

        async def watched_send(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                self._await_request(client)

        await self._app(scope, watched_receive, watched_send)

    def _await_request(self, client: Client) -> None:
        self._request_arrived(client)
        self._timers[client] = asyncio.get_running_loop().call_later(self._seconds, self._close, client)

    def _request_arrived(self, client: Client) -> None:
        timer = self._timers.pop(client, None)
        if timer is not None:
            timer.cancel()

    def _close(self, client: Client) -> None:
        self._timers.pop(client, None)
        connection = self._connections.get(client)
        if connection is not None:
            with suppress(OSError):  # it has just been closed
                connection.shutdown(socket.SHUT_RDWR)


class ListeningSocket(socket.socket):
    """A listening socket that reports the connections which it accepts."""

    def __init__(self, listening: socket.socket, timeout: RequestTimeout) -> None:
        super().__init__(listening.family, listening.type, listening.proto, fileno=listening.detach())
        self._timeout = timeout

    def accept(self) -> tuple[socket.socket, Any]:
        connection, address = super().accept()
        self._timeout.accepted(connection, address[:2])
        return connection, address


def _client_of(scope: Scope) -> Client | None:
    client = scope.get("client") if scope["type"] == "http" else None
    return None if client is None else (client[0], client[1])


def _has_body(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"
