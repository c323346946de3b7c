from __future__ import annotations

import pytest
from kill_harness import Ground

pytest.register_assert_rewrite("rota.testing.store_suite.checks", "kill_checks")


@pytest.fixture
def make_ground(tmp_path):
    made = []

    def make(lease="1s"):
        made.append(Ground(tmp_path, lease))
        return made[-1]

    yield make
    for ground in made:
        ground.close()


@pytest.fixture
def ground(make_ground):
    return make_ground()
