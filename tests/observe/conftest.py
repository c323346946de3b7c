from __future__ import annotations

import pytest

from cli.conftest import folder, rota, started, store  # noqa: F401 - a project of one file, and commands in it
from engine.conftest import gate, stage  # noqa: F401 - the engine by hand, on a clock that stands still
from every_store import _servers_end_with_the_session  # noqa: F401
from rota.observe import census


@pytest.fixture(autouse=True)
def _schedules_are_read_at_every_scrape(monkeypatch):
    monkeypatch.setattr(census, "LEAST_AGE", 0.0)
    monkeypatch.setattr(census, "SHARE", 0)
