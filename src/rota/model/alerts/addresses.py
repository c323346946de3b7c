"""Decides which addresses a webhook or heartbeat URL may lead to, so that a URL cannot reach internal hosts.

Only addresses of the public internet are allowed, whatever form they are written in. An operator may allow networks.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    Address = IPv4Address | IPv6Address

_NEVER = tuple(
    ip_network(text)
    for text in (
        "169.254.0.0/16",  # link-local: the metadata services of most clouds
        "168.63.129.16/32",  # Azure's, although it is a public address
        "100.100.100.200/32",  # Alibaba's
        "192.0.0.192/32",  # Oracle's
        "fd00:ec2::/32",  # Amazon's, over IPv6
        "fe80::/10",
        "0.0.0.0/8",  # this host
        "::/128",
        "224.0.0.0/4",  # multicast
        "ff00::/8",
        "255.255.255.255/32",
    )
)
_NAT64 = (IPv6Network("64:ff9b::/96"),)  # the last 32 bits are an IPv4 address
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")  # likewise; the operator chooses where in it
_COMPATIBLE = IPv6Network("::/96")
_6TO4 = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")


def refusal(text: str, allowed: Sequence[str] = ()) -> str:
    """Why an address may not be connected to; empty if it may. `allowed` are networks such as 10.0.0.0/8."""
    try:
        given = ip_address(text.partition("%")[0])
    except ValueError:
        return f"{text} is no IP address"
    for address in _meant(given):
        if any(address in network for network in _NEVER):
            return f"{text} is a link-local, metadata, multicast or unspecified address; these are never allowed"
    if all(_is_in(address, allowed) for address in _meant(given)):
        return ""
    for address in _meant(given):
        if not _is_public(address):
            return f"{text} is not an address of the public internet; alerting.networks can allow it"
    return ""


def is_allowed_network(text: str, allowed: Sequence[str]) -> bool:
    """Whether an operator has allowed the network of an address by name."""
    return all(_is_in(address, allowed) for address in _meant(ip_address(text.partition("%")[0])))


def _meant(address: Address) -> list[Address]:
    """The address, and the IPv4 address inside it if it leads to one."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if any(address in network for network in _NAT64):
        return [_last_32_bits(address)]
    if address in _6TO4 and address.sixtofour is not None:
        return [address, address.sixtofour]
    if address in _TEREDO and address.teredo is not None:
        return [address, *address.teredo]
    return [address]


def _last_32_bits(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFF_FFFF)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        is_special = address in _COMPATIBLE or address in _NAT64_LOCAL or address in _6TO4 or address in _TEREDO
        if is_special or address.is_site_local:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _is_in(address: Address, networks: Sequence[str]) -> bool:
    return any(address in network for network in map(ip_network, networks) if network.version == address.version)
