from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from rota.testing.document_suite.stage import wait_for

sys.path.append(str(Path(__file__).parents[1] / "processes"))  # what starts and kills processes

from every_store import _servers_end_with_the_session  # noqa: F401


@pytest.fixture(autouse=True)
def _no_thread_of_a_queue_is_left():
    before = set(threading.enumerate())
    yield
    wait_for(lambda: not [one for one in set(threading.enumerate()) - before if one.name.startswith("rota-document")])
