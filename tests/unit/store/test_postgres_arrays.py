"""Arrays for PostgreSQL: what is written by hand is read by the server as it was meant."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rota.store.postgres.codec import array_literal
from rota.testing.servers.postgres import shared_url

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([], "{}"),
        ([1, -2, 3], "{1,-2,3}"),
        ([1, None], "{1,NULL}"),
        (["a", "NULL", "", 'b"\\'], '{"a","NULL","","b\\"\\\\"}'),
        ([True, False, None], "{True,False,NULL}"),
        ([b"\x00\xff", b""], '{"\\\\x00ff","\\\\x"}'),
    ],
)
def test_a_list_is_one_text(values: list[Any], text: str):
    assert array_literal(values) == text


@pytest.fixture(scope="module")
def connection():
    with psycopg.connect(shared_url(), autocommit=True) as connection:
        yield connection


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(TEXT | st.none()),
    numbers=st.lists(st.integers(-(2**63), 2**63 - 1) | st.none()),
    blobs=st.lists(st.binary() | st.none()),
    truths=st.lists(st.booleans() | st.none()),
)
def test_the_server_reads_what_was_meant(
    connection: psycopg.Connection, texts: list, numbers: list, blobs: list, truths: list
):
    row = connection.execute(
        "SELECT %s::text[], %s::bigint[], %s::bytea[], %s::boolean[]",
        [array_literal(values) for values in (texts, numbers, blobs, truths)],
        binary=True,
    ).fetchone()
    assert row == (texts, numbers, blobs, truths)
