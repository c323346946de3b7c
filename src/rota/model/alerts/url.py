"""Reads URLs that Rota calls by itself: their parts, how they are shown without secrets, and values from the
environment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from rota.errors import BadOption

if TYPE_CHECKING:
    from collections.abc import Mapping

PORTS = {"http": 80, "https": 443}

_VARIABLE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]{0,127})", re.ASCII)


class Target(NamedTuple):
    """A URL in parts."""

    scheme: str
    host: str
    port: int
    path: str  # with the query

    @property
    def shown(self) -> str:
        """Without the path, which may be a secret."""
        port = "" if PORTS[self.scheme] == self.port else f":{self.port}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}{port}"


def target_of(url: str) -> Target:
    """The parts of a URL. If it cannot be used, BadOption says why, without any part of it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise BadOption("the URL has a port or an address that cannot be read") from None
    if parts.scheme not in PORTS or not parts.hostname:
        raise BadOption("the URL must begin with https:// or http:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise BadOption("the URL names a user or a password, which Rota does not send; leave them out")
    if not url.isascii() or any(character <= " " or character == "\x7f" for character in url):
        raise BadOption("the URL has spaces or characters beyond ASCII; write them percent-encoded")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, parts.hostname, port or PORTS[parts.scheme], path)


def is_variable(text: str) -> bool:
    """Whether a value only names the variable that holds it: env:OPS_WEBHOOK."""
    return _VARIABLE.fullmatch(text) is not None


def variable_value(text: str, variables: Mapping[str, str]) -> str:
    """The value itself, or that of the variable which it names."""
    found = _VARIABLE.fullmatch(text)
    if found is None:
        return text
    value = variables.get(found[1], "")
    if not value:
        raise BadOption(f"the variable {found[1]} is not set")
    return value


def shown_url(url: str) -> str:
    """A URL as people see it: the host without the path."""
    if is_variable(url):
        return url
    try:
        return f"{target_of(url).shown}/…"
    except BadOption:
        return "********"
