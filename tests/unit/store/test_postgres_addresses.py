"""PostgreSQL addresses: what a URL says, what is told of it, and which servers are taken."""

from __future__ import annotations

import pytest

from rota.errors import BadStoreUrl, StoreError
from rota.store.postgres.address import check_server, parse

URL = "postgresql://ann:s3cret@db.example:6543/shop"


def test_our_own_options_are_taken_out_of_the_url():
    address = parse(f"{URL}?sslmode=require&timeout=3.5&pool=7&listen=postgresql://db2/shop")
    assert (address.timeout, address.pool, address.listen) == (3.5, 7, "postgresql://db2/shop")
    assert address.conninfo.endswith("?sslmode=require")


def test_without_options_the_defaults_hold():
    address = parse(URL)
    assert (address.conninfo, address.timeout, address.pool, address.listen) == (URL, 10.0, 10, None)


def test_a_place_is_told_without_user_and_password():
    assert parse(URL).describe() == "postgresql database shop at db.example:6543"


def test_a_place_that_says_little_is_told_with_its_defaults():
    assert parse("postgresql:///shop").describe() == "postgresql database shop at localhost:5432"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:s3cret@db:port/shop",
        "postgresql://ann:s3cret@db/shop?colour=blue",
        "postgresql://ann:s3cret@db/shop?listen=postgresql://x:s3cret@db:port/y",
        "postgresql://ann:s3cret@[::1/shop",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_and_no_secret_is_told(url: str):
    with pytest.raises(BadStoreUrl) as told:
        parse(url)
    assert "s3cret" not in str(told.value)


def test_an_unknown_option_is_named():
    with pytest.raises(BadStoreUrl, match="colour"):
        parse(f"{URL}?colour=blue")


@pytest.mark.parametrize("option", ["timeout=soon", "timeout=0", "timeout=-1", "pool=0", "pool=many", "timeout=nan"])
def test_a_number_that_is_none_is_refused(option: str):
    with pytest.raises(BadStoreUrl, match=option.partition("=")[0]):
        parse(f"{URL}?{option}")


@pytest.mark.parametrize("version", [140_000, 140_013, 160_004, 180_000])
def test_servers_from_14_on_are_taken(version: int):
    check_server(version, "UTF8", "read committed", "here")


@pytest.mark.parametrize(("version", "shown"), [(130_014, "13.14"), (90_624, "9.624")])
def test_older_servers_are_refused(version: int, shown: str):
    with pytest.raises(StoreError, match=f"PostgreSQL {shown}; 14 or newer"):
        check_server(version, "UTF8", "read committed", "here")


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_an_encoding_that_cannot_keep_every_text_is_refused(encoding: str):
    with pytest.raises(StoreError, match=encoding):
        check_server(160_000, encoding, "read committed", "here")


@pytest.mark.parametrize("isolation", ["serializable", "repeatable read"])
def test_another_isolation_by_default_is_refused_with_the_remedy(isolation: str):
    with pytest.raises(StoreError, match="ALTER ROLE"):
        check_server(160_000, "UTF8", isolation, "here")
