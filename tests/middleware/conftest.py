from __future__ import annotations

from functools import partial

import pytest

from every_store import _servers_end_with_the_session  # noqa: F401 - a fixture
from made_apps import app, closing_apps, gate  # noqa: F401 - fixtures


@pytest.fixture
def make_app(tmp_path):
    with closing_apps() as make:
        yield partial(make, f"sqlite:///{tmp_path / 'rota.db'}")
