"""Says where a request comes from, and whether its headers may be believed: proxies, the Host header, framing."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, NamedTuple

from rota.web.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_CHAIN = 50  # hops of X-Forwarded-For that are looked at

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_HOST = re.compile(r"(\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(:[0-9]+)?", re.ASCII)
_LOOPBACK_NAMES = frozenset({"localhost"})


class Origin(NamedTuple):
    """Where one request comes from, as far as its connection and its headers say."""

    server: str  # this server's own address
    peer: str  # the other end of the connection: the client, or a proxy
    forwarded: Sequence[str]  # the values of X-Forwarded-For, whether its sender is trusted or not
    address: str  # the client's address, as far as proxies are trusted

    @property
    def is_local(self) -> bool:
        """Whether the client is on this machine. A proxy's word counts against it even if the proxy is not trusted."""
        hops = [_plain(hop) for value in self.forwarded for hop in value.split(",")]
        return all(hop is not None and is_loopback(hop) for hop in (self.server, self.peer, *hops))


def networks_of(texts: Sequence[str]) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text, strict=False) for text in texts)


def client_address(peer: str, forwarded: Sequence[str], trusted: Sequence[Network]) -> str:
    """The address that asks: the peer's, or behind trusted proxies the last one that is not such a proxy.

    Each proxy appends the address that it saw, so that only the right end of X-Forwarded-For can be believed.
    """
    address = peer
    hops = [hop for value in forwarded for hop in value.split(",")][-LONGEST_CHAIN:]
    while is_in(address, trusted) and hops:
        hop = _plain(hops.pop())
        if hop is None:
            break
        address = hop
    return address


def source_of(address: str) -> str:
    """Which client an address is counted as: an IPv6 client has a whole /64 to try from, and an IPv4 address that is
    mapped into IPv6 is the IPv4 address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host.lower() in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def is_own_host(header: str | None, hosts: Sequence[str]) -> bool:
    """Whether a Host header names this server: a page elsewhere can make a browser ask under a name of its own."""
    if not header:
        return False
    name = _host_name(header)
    return is_loopback(name) or name in {host.lower() for host in hosts}


def check_framing(headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Refuse a request whose length is said twice: a proxy in front may have read another end than this server."""
    names = {name.lower() for name, _ in headers}
    if b"content-length" in names and b"transfer-encoding" in names:
        message = "a request has Content-Length or Transfer-Encoding, not both"
        raise Refusal(400, "ambiguous_length", message, field="Content-Length", headers={"Connection": "close"})


def forwarded_for(headers: Sequence[tuple[bytes, bytes]]) -> list[str]:
    return [value.decode("latin-1") for name, value in headers if name.lower() == b"x-forwarded-for"]


def _host_name(header: str) -> str:
    """Without the port; brackets belong to an IPv6 address. Empty if the header is no host at all."""
    found = _HOST.fullmatch(header.strip().lower())
    return "" if found is None else (found["six"] or found["name"].rstrip("."))


def _plain(hop: str) -> str | None:
    """A hop as an address without its port; None if it is no address."""
    text = hop.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


def is_in(address: str, networks: Sequence[Network]) -> bool:
    """Whether an address belongs to one of these networks."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None) or found
    return any(mapped in network for network in networks if network.version == mapped.version)
