"""Defines channels and heartbeat URLs as code or rota.yaml declares them. Their secrets are not shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from rota.errors import BadOption
from rota.model.alerts.message import Alert
from rota.model.alerts.url import is_variable, shown_url, target_of
from rota.model.names import check_name, check_schedule_id

if TYPE_CHECKING:
    from collections.abc import Iterable

ChannelKind = Literal["webhook", "email", "python"]

_ADDRESS = re.compile(r"[^\s@<>,;:\"()\[\]\\]{1,64}@[A-Za-z0-9.-]{1,255}")
_SECRET = re.compile(r"[!-~]{16,256}", re.ASCII)
SECRET_WANTED = "a secret of 16 to 256 characters without spaces, or env:NAME of a variable that holds it"  # noqa: S105
ADDRESS_WANTED = "a list of e-mail addresses such as [oncall@example.org]"
URL_WANTED = "a URL such as https://hooks.example.org/rota, or env:NAME of a variable that holds it"


class Channel(Struct, frozen=True, kw_only=True):
    """A destination of messages."""

    name: str
    kind: ChannelKind
    url: str = ""  # of a webhook, or env:NAME
    secret: str = ""  # likewise; empty: that of the settings
    to: tuple[str, ...] = ()  # e-mail addresses
    handler: Callable[[Alert], object] | None = None
    place: str = ""  # rota.yaml:7; empty: declared in code

    @property
    def shown(self) -> str:
        """The destination without its secrets."""
        if self.kind == "webhook":
            return shown_url(self.url)
        return ", ".join(self.to) if self.kind == "email" else getattr(self.handler, "__qualname__", "a function")


class HeartbeatUrl(Struct, frozen=True, kw_only=True):
    """A URL that is called when runs of a schedule end; with `start`, also when they begin."""

    schedule: str
    url: str
    start: bool = False
    place: str = ""


def make_webhook(name: str, url: str, *, secret: str | None = None, place: str = "") -> Channel:
    check_name("channel", name)
    return Channel(
        name=name,
        kind="webhook",
        url=check_url(url),
        secret="" if secret is None else check_secret(secret),
        place=place,
    )


def make_email(name: str, to: str | Iterable[str], *, place: str = "") -> Channel:
    check_name("channel", name)
    return Channel(name=name, kind="email", to=check_addresses([to] if isinstance(to, str) else to), place=place)


def make_python(name: str, handler: Any) -> Channel:
    check_name("channel", name)
    if not callable(handler):
        raise BadOption(f"the channel {name!r} needs a function that takes an alert, got {handler!r}")
    return Channel(name=name, kind="python", handler=handler)


def make_heartbeat(schedule: str, url: str, *, start: bool = False, place: str = "") -> HeartbeatUrl:
    check_schedule_id(schedule)
    if not isinstance(start, bool):
        raise BadOption(f"start={start!r} must be True or False")
    return HeartbeatUrl(schedule=schedule, url=check_url(url), start=start, place=place)


def check_url(url: Any) -> str:
    """A URL, or the name of a variable that holds one. The error does not show it: it may be a secret."""
    if not isinstance(url, str):
        raise BadOption(f"got a {type(url).__name__}, wanted {URL_WANTED}")
    if not is_variable(url):
        target_of(url)
    return url


def check_secret(secret: Any) -> str:
    if not isinstance(secret, str) or not (is_variable(secret) or _SECRET.fullmatch(secret)):
        raise BadOption(f"the secret of a webhook must be {SECRET_WANTED}")
    return secret


def check_addresses(to: Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(to))
    for address in found:
        if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
            raise BadOption(f"{address!r} is no e-mail address")
    if not found:
        raise BadOption("an e-mail channel needs at least one address")
    return found
