from __future__ import annotations

import pytest

from rota import App
from rota.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock("2026-03-02T12:00:00Z")  # a Monday


@pytest.fixture
def app(tmp_path, monkeypatch) -> App:
    """An app whose own store is the default file, in a folder that must stay empty."""
    monkeypatch.chdir(tmp_path)
    return App(tz="America/New_York")
