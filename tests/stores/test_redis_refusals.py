"""What a server refuses from within a script is recognised on Redis and on Valkey, whose words differ."""

from __future__ import annotations

import shutil
from contextlib import contextmanager, suppress
from uuid import uuid4

import pytest
import redis

from rota.errors import BadStoreUrl, StoreUnavailable
from rota.model.audit_record import AuditRecord
from rota.store.contract import Retention
from rota.store.redis import RedisStore
from rota.testing.servers.redis import RedisServer, ValkeyServer
from rota.testing.store_suite.builders import DAY, T0
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.furnished import furnish
from rota.testing.store_suite.steps import add_job, all_jobs, ids, running_job, succeed


@pytest.fixture(scope="module", params=[RedisServer, ValkeyServer], ids=["redis", "valkey"])
def server(request):
    options = ("--enable-protected-configs", "yes") if request.param is ValkeyServer else ()  # it has dir among them
    with request.param(options=options) as server:
        yield server


@pytest.fixture
def raw(server):
    with redis.Redis(port=server.port) as client:
        yield client


@pytest.fixture
def store(server):
    with opened(server.url(), f"t{uuid4().hex[:12]}") as store:
        yield store


@contextmanager
def opened(url, namespace):
    store = RedisStore(url, namespace=namespace)
    store.open()
    try:
        yield store
    finally:
        store.close()


@contextmanager
def full_disk(server, raw):
    """A server that may not write while its snapshots fail."""
    nowhere = server.folder / "nowhere"
    nowhere.mkdir()
    raw.config_set("dir", str(nowhere))
    shutil.rmtree(nowhere)
    raw.config_set("save", "3600 1")
    while raw.info("persistence")["rdb_last_bgsave_status"] != "err":
        with suppress(redis.ResponseError):  # one is under way
            raw.bgsave()
    try:
        yield
    finally:
        raw.config_set("save", "")
        raw.config_set("dir", str(server.folder))
        while raw.info("persistence")["rdb_last_bgsave_status"] != "ok":
            with suppress(redis.ResponseError):
                raw.bgsave()


@contextmanager
def no_memory(_server, raw):
    raw.config_set("maxmemory", 1)
    try:
        yield
    finally:
        raw.config_set("maxmemory", 0)


@contextmanager
def no_replicas(_server, raw):
    raw.config_set("min-replicas-to-write", 1)
    try:
        yield
    finally:
        raw.config_set("min-replicas-to-write", 0)


@contextmanager
def read_only(_server, raw):
    raw.replicaof("127.0.0.1", 1)
    try:
        yield
    finally:
        raw.replicaof("NO", "ONE")


REFUSALS = [
    (full_disk, "cannot save its data and takes no writes"),
    (no_memory, "no memory left"),
    (no_replicas, "NOREPLICAS"),
    (read_only, "read-only replica|MASTERDOWN"),
]


@pytest.mark.parametrize(("refusal", "words"), REFUSALS, ids=[refusal.__name__ for refusal, _ in REFUSALS])
def test_a_refusal_is_an_outage_for_every_verb_that_writes(server, raw, store, refusal, words):
    job = running_job(store)
    writes = [lambda: add_job(store), lambda: succeed(store, job), lambda: store.pause_queue("q", paused=True)]
    with refusal(server, raw):
        for write in writes[:1] if refusal is no_memory else writes:  # what needs no more memory may go through
            with pytest.raises(StoreUnavailable, match=words):
                write()
    assert ids(all_jobs(store)) == [job.id]
    assert succeed(store, job) == []
    check_store(store)


def test_a_user_without_rights_is_no_outage(server, raw, store):
    raw.execute_command("ACL", "SETUSER", "guest", "on", ">secret", "~*", "+@all", "-zadd")
    url = server.url().replace("127.0.0.1", "guest:secret@127.0.0.1")
    with opened(url, store.namespace) as guest, pytest.raises(BadStoreUrl, match="server's ACL"):
        add_job(guest)


def test_audit_records_of_jobs_leave_no_key_behind(raw, store):
    """Each subject has an index of its own; those of jobs that are long gone would add up for ever."""
    furnish(store)
    for job in all_jobs(store):
        store.add_audit_records(
            [AuditRecord(id=f"n-{job.id}", at=T0, subject=f"job:{job.id}", verb="cancelled", by="ann")]
        )
    assert _keys(raw, store)
    while store.prune(Retention(audit_for=0), 100, now=T0 + DAY).audit_records:
        pass
    assert _keys(raw, store) == []


def _keys(raw, store):
    return sorted(key for key in raw.scan_iter(match=f"{{{store.namespace}}}:audit*"))
