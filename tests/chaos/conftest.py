from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "processes"))  # the harness that starts, watches and kills processes
pytest.register_assert_rewrite("rota.testing.store_suite.checks", "kill_checks")

from kill_harness import Ground  # noqa: E402

from every_store import fresh_place, make_server  # noqa: E402 - asserts are rewritten in what is imported after that
from rota.testing.servers.proxy import Proxy  # noqa: E402


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def server(stack, kind):
    """A server for this test alone, which keeps what it has acknowledged through a kill -9."""
    return stack.enter_context(make_server(kind, keeps_its_word=True))


@pytest.fixture
def ground(stack, server, kind, tmp_path):
    ground = Ground(tmp_path, fresh_place(kind, tmp_path, server), lease="3s")
    stack.callback(ground.close)
    return ground


@pytest.fixture
def proxy(stack, server):
    return stack.enter_context(Proxy(server.port))


@pytest.fixture
def ground_behind(stack, server, proxy, kind, tmp_path):
    """The processes reach the server through the proxy; the test itself goes straight to it."""
    place = fresh_place(kind, tmp_path, server)
    seen_at = proxy.in_front_of(place.url).replace("replicaSet=rota", "directConnection=true")  # it knows its address
    ground = Ground(tmp_path, place, lease="3s", seen_at=seen_at)
    stack.callback(ground.close)
    return ground
