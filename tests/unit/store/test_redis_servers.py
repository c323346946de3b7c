"""What a Redis server must be, and what its settings may cost: pure checks."""

from __future__ import annotations

import pytest

from rota.errors import SchemaMismatch, StoreError, StoreUnavailable
from rota.store.redis.schema import check_server, check_version, is_new_enough, warnings_of

DURABLE = {"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "everysec"}


@pytest.mark.parametrize("version", ["6.2.0", "6.2.14", "7.0.0", "7.4.1", "8.0.2", "10.0", "255.255.255"])
def test_a_server_that_is_new_enough_is_taken(version: str):
    assert is_new_enough(version)
    check_server({"redis_version": version, "role": "master"}, "here")


@pytest.mark.parametrize("version", ["6.0.20", "5.0.14", "2.8", "6", "", "next"])
def test_a_server_that_is_too_old_is_one_clear_error(version: str):
    assert not is_new_enough(version)
    with pytest.raises(StoreError, match=r"here is Redis .*6\.2 or newer is needed, or Valkey"):
        check_server({"redis_version": version}, "here")


def test_a_read_only_replica_is_refused_and_its_primary_named():
    info = {"redis_version": "7.2.4", "role": "slave", "master_host": "10.0.0.1", "master_port": 6379}
    with pytest.raises(StoreUnavailable, match=r"name its primary instead \(10\.0\.0\.1:6379\)"):
        check_server(info, "here")


def test_a_replica_that_takes_writes_is_taken():
    check_server({"redis_version": "7.2.4", "role": "slave", "slave_read_only": 0}, "here")


def test_a_store_of_this_schema_version_is_known():
    assert check_version(b"1", "here")
    assert check_version("1", "here")
    assert not check_version(None, "here")


@pytest.mark.parametrize(
    ("found", "words"), [(b"2", "schema version 2"), (b"x", "did not make"), (b"", "did not make")]
)
def test_another_schema_version_is_refused(found: bytes, words: str):
    with pytest.raises(SchemaMismatch, match=words):
        check_version(found, "here")


@pytest.mark.parametrize("sync", ["everysec", "always"])
def test_a_durable_server_needs_no_warning(sync: str):
    assert warnings_of(DURABLE | {"appendfsync": sync}, "here") == []


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("maxmemory-policy", "allkeys-lru", "a full server drops jobs; set it to noeviction"),
        ("appendonly", "no", "a restart loses jobs; set appendonly yes"),
        ("appendfsync", "no", "set it to everysec or always"),
    ],
)
def test_each_setting_that_may_lose_jobs_is_told_with_its_cure(setting: str, value: str, words: str):
    (warning,) = warnings_of(DURABLE | {setting: value}, "here")
    assert words in warning
