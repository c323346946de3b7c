"""Texts without their secrets; and all else as it was."""

from __future__ import annotations

import pytest

from rota.observe.secrets import without_secrets


@pytest.mark.parametrize(
    "text",
    [
        "cannot reach postgresql://me:hunter2@db.example/shop: refused",
        "cannot reach redis://:hunter2@db.example:6379/0, trying again",
        "(mongodb://me:hunter2@a,b,c/shop?replicaSet=r)",
        "{'url': 'rediss://me:hunter2@host'}",
        "https://hooks.example/x?token=hunter2&y=1",
        "https://a.example/ and postgresql://me:hunter2@db/x",
        "connection to host=db user=me password=hunter2 failed",
        "password='hunter2 with spaces hunter2' host=db",
        "api_token = hunter2",
    ],
)
def test_secrets_are_masked(text):
    shown = without_secrets(text)
    assert "hunter2" not in shown
    assert "***" in shown


@pytest.mark.parametrize(
    "text",
    [
        "job 1a1d (mail.send) failed for good after 3 attempts: ValueError: x=1, key=user-42",
        "metrics are served at http://127.0.0.1:9100/metrics",
        "see https://docs.example/a?b=c#d, then write to ann@example.org: or not",
        "",
    ],
)
def test_all_else_stays(text):
    assert without_secrets(text) == text
