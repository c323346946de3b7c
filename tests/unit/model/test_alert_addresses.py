"""Which addresses a webhook may lead to: public ones, and those of networks that an operator allows."""

from __future__ import annotations

import pytest

from rota.model.alerts.addresses import refusal

REFUSED = [
    "127.0.0.1",
    "127.8.8.8",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "198.18.0.1",
    "192.0.2.1",
    "240.0.0.1",
    "::1",
    "fc00::1",
    "fd12:3456::1",
    "fec0::1",
    "2001:db8::1",
    "::ffff:10.0.0.1",
    "::ffff:127.0.0.1",
    "::10.0.0.1",
    "64:ff9b::a00:1",  # NAT64 of 10.0.0.1
    "64:ff9b:1::a00:1",
    "2002:a00:1::1",  # 6to4 of 10.0.0.1
    "2002:808:808::1",  # … and of a public one: nobody needs it
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",  # Teredo
    "no address",
    "",
]
NEVER = [
    "169.254.169.254",
    "169.254.1.1",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "fe80::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "168.63.129.16",
    "100.100.100.200",
    "0.0.0.0",  # noqa: S104
    "::",
    "224.0.0.1",
    "ff02::1",
    "255.255.255.255",
]
EVERYTHING = ("0.0.0.0/0", "::/0")


@pytest.mark.parametrize("address", [*REFUSED, *NEVER])
def test_an_address_that_is_not_public_is_refused(address):
    assert refusal(address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_a_public_address_is_allowed(address):
    assert refusal(address) == ""


@pytest.mark.parametrize("address", NEVER)
def test_metadata_and_link_local_addresses_are_refused_even_if_all_networks_are_allowed(address):
    assert "never allowed" in refusal(address, EVERYTHING)


def test_a_network_that_the_operator_allows_is_allowed_in_every_form():
    assert refusal("10.1.2.3", ("10.0.0.0/8",)) == ""
    assert refusal("::ffff:10.1.2.3", ("10.0.0.0/8",)) == ""
    assert refusal("127.0.0.1", ("10.0.0.0/8",))
    assert refusal("::1", ("127.0.0.0/8", "::1/128")) == ""
