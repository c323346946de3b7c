"""The SQLite store, by the suite of all stores."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rota.store.sqlite import SqliteStore
from rota.testing.store_suite import *  # noqa: F403
from rota.testing.store_suite.durable import *  # noqa: F403
from rota.testing.store_suite.shared import *  # noqa: F403

MEMORY = "/dev/shm"  # noqa: S108 - what a busy disk takes for each commit is no part of these tests


@pytest.fixture
def make_store(tmp_path):
    with TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else tmp_path) as folder:
        yield partial(SqliteStore, Path(folder) / "rota.db")
