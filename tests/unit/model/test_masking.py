"""Secrets in stores' URLs: none of them is shown, whatever form it has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.model.secrets.masking import masked


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:pw@host", "redis://:***@host"),
        ("redis://host/0?password=a%26b&db=1", "redis://host/0?password=***&db=1"),
        ("redis://h?db=1;Password=x", "redis://h?db=1;Password=***"),
        ("redis://h?password=a;b#c&db=1", "redis://h?password=***&db=1"),
        (
            "mongodb://u:p%40x@h1,h2/?tlsCertificateKeyFilePassword=y",
            "mongodb://u:***@h1,h2/?tlsCertificateKeyFilePassword=***",
        ),
        (
            "mongodb://h/?authMechanismProperties=AWS_SESSION_TOKEN:x&w=1",
            "mongodb://h/?authMechanismProperties=***&w=1",
        ),
        ("postgresql://u:1234@h:5432/db", "postgresql://u:***@h:5432/db"),
        ("postgresql://u@h/db?password=x&sslpassword=y", "postgresql://u@h/db?password=***&sslpassword=***"),
        (
            "postgresql://h:1/db?listen=postgresql://u:p@h2/db&pool=3",
            "postgresql://h:1/db?listen=postgresql://u:***@h2/db&pool=3",
        ),
        (
            "postgresql://u:p@h/db?listen=postgresql%3A%2F%2Fu%3Aq%40h2%2Fdb",
            "postgresql://u:***@h/db?listen=postgresql://u:***@h2/db",
        ),
        ("redis:ann:pw@host", "redis:ann:***@host"),
        ("host=db user=ann password=pw dbname=x", "host=db user=ann password=*** dbname=x"),
        (r"password = 'a \' b' host=db", "password = *** host=db"),
        ("host=db password='never closed", "host=db password=***"),
    ],
)
def test_a_secret_is_masked_and_the_rest_is_shown(url, shown):
    assert masked(url) == shown


@pytest.mark.parametrize(
    "url",
    ["redis://:a/b@host", "redis://:a?b@host/0", "redis://u:a#b@host", "redis://u:a@b@host", "redis://u:ab@[half"],
)
def test_a_password_with_signs_that_should_be_quoted_is_masked_too(url):
    assert masked(url).rpartition("@")[0] in {"redis://:***", "redis://u:***"}


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///a.db", "sqlite:////srv/a:b.db", "memory://", "redis://host:6379/0", "postgresql://ann@h:5432/db",
        "mongodb://h1:27017,h2:27018/?replicaSet=rs0", "redis://h:1?name=a@b", "host=db user=ann", "",
    ],
)  # fmt: skip
def test_what_has_no_secret_is_shown_as_it_is(url):
    assert masked(url) == url


@given(st.text(alphabet=st.characters(exclude_characters="@"), min_size=5).filter(lambda word: not word.isdigit()))
def test_no_password_before_the_host_is_ever_shown(password):
    secret = f"hunter2{password}"
    assert "hunter2" not in masked(f"redis://ann:{secret}@host/0".replace("\n", ""))
