"""URLs of sources that cannot be read are refused, and their passwords are shown nowhere."""

from __future__ import annotations

import pytest

from rota import App


@pytest.mark.parametrize("server", ["redis://u:{}@host/0", "mongodb://u:{}@host/db", "postgresql://u:{}@host/db"])
@pytest.mark.parametrize("password", ["s3cret/t0p", "s3cret?t0p", "s3cret#t0p"])
def test_a_password_that_is_not_escaped_is_told_without_the_password(tmp_path, monkeypatch, server, password):
    error = error_of(tmp_path, monkeypatch, server.format(password))
    assert "%2F" in error
    assert "s3cret" not in error
    assert "t0p" not in error


def test_a_port_that_is_no_number_is_told_with_its_line(tmp_path, monkeypatch):
    assert error_of(tmp_path, monkeypatch, "redis://host:none/0").startswith("rota.yaml:3")


def error_of(tmp_path, monkeypatch, url):
    """What the list of queues says about a source."""
    text = f"documents:\n  bills:\n    source: '{url}'\n    collection: bills\n    handler: 'shop:remind'\n"
    (tmp_path / "rota.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    app = App("memory://")
    (facts,) = app.documents.queues()
    app.close()
    assert "t0p" not in facts.source
    return facts.error
