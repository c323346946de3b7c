"""--wait-for-store: a command that starts before its store."""

from __future__ import annotations

import signal

import pytest

from rota.testing.servers.process import free_port
from rota.testing.servers.redis import RedisServer

AWAY = "redis://127.0.0.1:{}/0"
WAITING = "; waiting up to 60s for it"


@pytest.fixture
def server(tmp_path):
    """One that is not started yet."""
    server = RedisServer(tmp_path)
    yield server
    server.close()


def test_commands_that_serve_wait_for_their_store(started, server):
    at = ("--store", server.url(), "--wait-for-store", "60s")
    run = started("run", "jobs.py", *at)
    web = started("web", "--app", "jobs.py", "--port", "0", *at)
    migrate = started("migrate", *at)
    for process in (run, web, migrate):
        process.wait_for(WAITING)
    server.start()
    assert migrate.end() == 0
    run.wait_for("started:")
    web.wait_for("openapi.json")
    for process in (run, web):
        process.signal(signal.SIGTERM)
        assert process.end() == 0
        assert process.stderr.count(WAITING) == 1


def test_a_store_that_stays_away_ends_the_wait_with_4(started):
    url = AWAY.format(free_port())
    commands = [
        started(*command, "--store", url, "--wait-for-store", "1s")
        for command in (["worker", "jobs.py"], ["scheduler", "jobs.py"], ["web"], ["migrate"])
    ]
    for process in commands:
        assert process.end() == 4
        assert "waiting up to 1s for it" in process.stderr
        assert "error: cannot reach redis" in process.stderr


def test_only_a_store_that_is_out_of_reach_is_waited_for(rota):
    rota("migrate", "--store", "nonsense://x", "--wait-for-store", "1h", code=4)
    rota("migrate", "--wait-for-store", "soon", code=2)


@pytest.mark.parametrize(("command", "code"), [("run", 0), ("web", 0), ("migrate", 143)])
def test_a_signal_ends_the_wait_also_of_a_containers_first_process(started, command, code):
    """A migration ends with 143, not 0: a job of Kubernetes that migrates must not count as done."""
    words = ("--app", "jobs.py", "--store", AWAY.format(free_port()), "--wait-for-store", "60s")
    process = started(command, *words)
    process.wait_for(WAITING)
    process.signal(signal.SIGTERM)
    assert process.end() == code
