"""The command line on servers: doctor tells what their settings may lose; a server that is not there ends with 4."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from every_store import SERVED, fresh_place
from rota.cli.main import main
from rota.testing.servers.process import free_port
from rota.testing.servers.redis import RedisServer

ABSENT = {
    "redis": "redis://127.0.0.1:{port}/0",
    "postgres": "postgresql://rota:hidden@127.0.0.1:{port}/rota",
    "mongo": "mongodb://127.0.0.1:{port}/rota",
}


def rota(*words: str):
    return CliRunner().invoke(main, words, prog_name="rota")


@pytest.mark.parametrize("kind", SERVED)
def test_migrate_stats_and_doctor_on_a_server(kind, tmp_path, monkeypatch):
    place = fresh_place(kind, tmp_path)
    monkeypatch.setenv("ROTA_NAMESPACE", place.namespace)
    where = ("--store", place.url)
    assert rota("migrate", "--plan", *where).exit_code == 0
    assert rota("migrate", *where).exit_code == 0
    assert rota("stats", *where).exit_code == 0
    checks = json.loads(rota("doctor", *where, "-o", "json").stdout)
    assert {check["about"]: check["verdict"] for check in checks}["store"] == "ok"


@pytest.mark.parametrize("kind", SERVED)
def test_a_copy_tells_apart_the_namespaces_of_a_server(kind, tmp_path, monkeypatch):
    place, other = fresh_place(kind, tmp_path), fresh_place(kind, tmp_path)
    monkeypatch.chdir(tmp_path)
    for full in (place, other):
        with full.opened() as store:
            store.pause_queue("mail", paused=True)
    both = ("copy", "--from", place.url, "--to", "sqlite:///new.db", "-y")
    refused = rota(*both, "--namespace", "misspelt")
    assert (refused.exit_code, (tmp_path / "new.db").exists()) == (6, False)
    assert "namespace misspelt" in refused.stderr
    assert "holds nothing to copy" in refused.stderr
    assert place.namespace in refused.stderr
    assert "misspelt" not in place.make().namespaces()
    first = json.loads(rota(*both, "--namespace", place.namespace, "-o", "json").stdout)
    assert other.namespace in first["still_in_source"]
    second = json.loads(rota(*both, "--namespace", other.namespace, "-o", "json").stdout)
    assert place.namespace not in second["still_in_source"]


def test_doctor_warns_of_a_redis_that_may_drop_jobs():
    with RedisServer(options=("--maxmemory-policy", "allkeys-lru", "--appendonly", "no")) as server:
        where = ("--store", server.url())
        assert rota("migrate", *where).exit_code == 0
        checks = json.loads(rota("doctor", *where, "-o", "json").stdout)
    warned = [(check["finding"], check["todo"]) for check in checks if check["about"] == "server"]
    assert [todo for _, todo in warned] == ["set it to noeviction", "set appendonly yes"]
    assert "a full server drops jobs" in warned[0][0]


@pytest.mark.parametrize("kind", ABSENT)
def test_a_server_that_is_not_there_is_told_once_and_ends_with_4(kind):
    ended = rota("stats", "--store", ABSENT[kind].format(port=free_port()))
    assert ended.exit_code == 4
    assert ended.stdout == ""
    assert "hidden" not in ended.stderr
    assert ended.stderr.startswith("error:")
