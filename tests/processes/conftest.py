from __future__ import annotations

import pytest
from kill_harness import Ground

from every_store import _servers_end_with_the_session, fresh_place  # noqa: F401 - for its effect

pytest.register_assert_rewrite("rota.testing.store_suite.checks", "kill_checks")


@pytest.fixture
def kind():
    """Which store. Tests of what all stores must survive are parametrised over them."""
    return "sqlite"


@pytest.fixture
def make_ground(tmp_path, kind):
    made = []

    def make(lease="1s"):
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Ground(folder, fresh_place(kind, folder), lease))
        return made[-1]

    yield make
    for ground in made:
        ground.close()


@pytest.fixture
def ground(make_ground):
    return make_ground()
