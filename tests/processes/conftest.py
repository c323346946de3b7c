from __future__ import annotations

import pytest
from kill_harness import Ground
from killable_app import be_patient

from amounts import PATIENCE
from every_store import _servers_end_with_the_session, fresh_place  # noqa: F401 - for its effect
from rota.store.mongo import connection

pytest.register_assert_rewrite("rota.testing.store_suite.checks", "kill_checks")


@pytest.fixture
def kind():
    """Which store. Tests of what all stores must survive are parametrised over them."""
    return "sqlite"


@pytest.fixture
def patient(monkeypatch):
    """Clients of MongoDB give up after 8 seconds, and on a busy machine a server may take longer than that."""
    monkeypatch.setattr(connection, "DEADLINE", connection.DEADLINE)
    monkeypatch.setattr(connection, "CONNECT_WITHIN", connection.CONNECT_WITHIN)
    be_patient(PATIENCE)


@pytest.fixture
def make_ground(tmp_path, kind, patient):  # noqa: ARG001 - for its effect
    made = []

    def make(lease="1s"):
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Ground(folder, fresh_place(kind, folder), lease, patience=PATIENCE))
        return made[-1]

    yield make
    for ground in made:
        ground.close()


@pytest.fixture
def ground(make_ground):
    return make_ground()
