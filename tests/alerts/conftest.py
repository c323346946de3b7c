from __future__ import annotations

import pytest

from alerts.stage import AlertStage
from every_store import SERVED, _servers_end_with_the_session, fresh_place, take_back_places  # noqa: F401


def staged(kind, folder):
    place = fresh_place(kind, folder)
    stage = AlertStage(place.make())
    yield stage
    for watch in stage.watches:
        watch.close()
    stage.app.close()
    take_back_places(sound=True)


@pytest.fixture(params=["memory", "sqlite", *SERVED])
def every_stage(request, tmp_path):
    """Alerts on every store."""
    yield from staged(request.param, tmp_path)


@pytest.fixture
def stage(tmp_path):
    """Alerts on the memory store."""
    yield from staged("memory", tmp_path)
