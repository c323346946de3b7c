"""Sends one HTTP request to a configured URL, and to no other address that the URL might lead to.

The host is resolved once, every address is checked, and the connection goes to one of the checked addresses with the
right Host and server name. Redirects are not followed. Of the response, only the status is read.
"""

from __future__ import annotations

import http.client
import socket
import ssl
from contextlib import closing
from typing import TYPE_CHECKING

from rota.alerts.time_limit import TimeLimit
from rota.errors import AlertNotSent
from rota.model.alerts.addresses import is_allowed_network, refusal
from rota.model.alerts.url import PORTS, target_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rota.model.alerts.url import Target

    Resolver = Callable[[str, int], list[str]]

CONNECT_FOR = 5.0  # seconds for one address
REQUEST_FOR = 10.0  # seconds for everything after the host is resolved
MOST_ADDRESSES = 3  # that are tried, of those that a name has


def resolve(host: str, port: int) -> list[str]:
    """All addresses of a host, by the system's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


class HttpClient:
    """Sends requests under one operator's rules."""

    def __init__(self, networks: Sequence[str] = (), resolver: Resolver = resolve) -> None:
        self._networks = networks
        self._resolve = resolver

    def send(self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> int:
        """The status of the response; AlertNotSent if there is none, or the URL may not be used."""
        target = target_of(url)
        addresses = self._checked(target)
        problem = ""
        for address in addresses[:MOST_ADDRESSES]:
            try:
                return _request(target, address, method, body, headers or {})
            except _NotConnected as err:
                problem = str(err)
        raise AlertNotSent(f"{target.shown} could not be reached: {problem}")

    def _checked(self, target: Target) -> list[str]:
        """The addresses, all of them allowed. One that is refused refuses the others: the name is not trustworthy."""
        try:
            found = self._resolve(target.host, target.port)
        except (OSError, UnicodeError) as err:
            raise AlertNotSent(f"the host of {target.shown} could not be resolved: {err}") from err
        if not found:
            raise AlertNotSent(f"the host of {target.shown} has no address")
        for address in found:
            if problem := refusal(address, self._networks):
                raise AlertNotSent(f"{target.shown} is refused: {problem}")
        if target.scheme == "http" and not all(is_allowed_network(one, self._networks) for one in found):
            raise AlertNotSent(f"{target.shown} is refused: outside alerting.networks only https:// is allowed")
        return found


class _NotConnected(Exception):
    """No connection was made, so another address may be tried."""


def _request(target: Target, address: str, method: str, body: bytes, headers: Mapping[str, str]) -> int:
    with closing(_Pinned(target, address)) as connection, TimeLimit(REQUEST_FOR, lambda: connection.sock) as limit:
        try:
            connection.connect()
            said = {"User-Agent": "rota-alerts", "Connection": "close", **headers}
            connection.request(method, target.path, body or None, said)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException, ValueError) as err:
            if limit.is_over:  # the error is the effect of the closed socket
                raise AlertNotSent(_too_slow(target)) from err
            raise AlertNotSent(f"{target.shown} gave no response: {type(err).__name__}: {err}") from err
    if limit.is_over:  # the end of a response that was cut off looks like the end of its headers
        raise AlertNotSent(_too_slow(target))
    return status


def _too_slow(target: Target) -> str:
    return f"{target.shown} gave no whole response within {REQUEST_FOR:g} s"


class _Pinned(http.client.HTTPConnection):
    """A connection to one address, for the host that the URL names."""

    def __init__(self, target: Target, address: str) -> None:
        super().__init__(target.host, target.port, timeout=CONNECT_FOR)
        self._address = address
        self._context = ssl.create_default_context() if target.scheme == "https" else None
        self.default_port = PORTS[target.scheme]  # so that Host names a port only if it is an unusual one

    def connect(self) -> None:
        try:
            plain = socket.create_connection((self._address, self.port), CONNECT_FOR)
        except OSError as err:
            raise _NotConnected(f"{type(err).__name__}: {err}") from err
        self.sock = plain
        if self._context is not None:
            self.sock = self._context.wrap_socket(plain, server_hostname=self.host)
