"""What only the Redis store has: scripts that go, servers that restart, freeze or are emptied, clusters, replicas."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from uuid import uuid4

import pytest
import redis
from redis.cluster import ClusterNode, RedisCluster

from amounts import PATIENCE
from rota.clock import utc_micros
from rota.errors import BadStoreUrl, SchemaMismatch, StoreError, StoreUnavailable
from rota.model.audit_record import AuditRecord
from rota.model.entry import EntryEdit
from rota.model.jobs.job import State
from rota.model.jobs.outcome import Succeeded
from rota.model.jobs.settle import settle
from rota.model.micros import SECOND
from rota.model.schedules.firing import plan
from rota.store.contract import AuditFilter, Exchange, JobFilter, Retention, ScheduleFilter
from rota.store.redis import RedisStore, from_url
from rota.store.redis.changing import Changer
from rota.testing.servers.redis import RedisServer, ValkeyServer
from rota.testing.store_suite.builders import DAY, LEASE, MINUTE, T0, WORKER, a_job, a_line, a_node, a_policy, fresh_id
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.furnished import copy_all, everything, furnish
from rota.testing.store_suite.notify import is_woken
from rota.testing.store_suite.steps import (
    add,
    add_job,
    add_schedule,
    all_jobs,
    claim,
    claim_one,
    fire,
    ids,
    ledger,
    queue_info,
    read,
    read_schedule,
    running_job,
    succeed,
)
from stores.outages import in_the_end
from stores.redis_stage import *  # noqa: F403 - its fixtures

PASSWORD = "open-sesame"  # noqa: S105 - of a server that lives as long as its test


@pytest.fixture
def namespace():
    return f"t{uuid4().hex[:24]}"


@pytest.fixture
def store(server, namespace):
    with opened(server.url(), namespace) as handle:
        yield handle


@contextmanager
def opened(url, namespace="rota"):
    handle = RedisStore(url, namespace=namespace)
    handle.open()
    try:
        yield handle
    finally:
        handle.close()


def impatient(server):
    return f"{server.url()}?socket_timeout=0.5&socket_connect_timeout=0.5"


def until_some(look):
    """What is found in the end: the server does some things in its own time."""
    until = time.monotonic() + PATIENCE
    while not (found := look()) and time.monotonic() < until:
        time.sleep(0.005)  # the server sends no signal
    return found


def live_a_life(store):
    """Every verb once."""
    schedule = add_schedule(store, overlap="queue")
    fired = store.fire([plan(schedule, T0 + MINUTE, fresh_id)], now=T0 + MINUTE)[0]
    add(store, a_job(key="k"), a_job(delay=MINUTE), now=T0 + MINUTE)
    jobs = claim(store, 5, now=T0 + 3 * MINUTE)
    held = add_job(store, waits_for=jobs[0].id, now=T0 + 3 * MINUTE)
    store.append_logs([a_line(jobs[0].id, "hello")])
    store.record_progress(WORKER, [(jobs[0].id, 1, "1/2")])
    store.extend_leases(WORKER, [(job.id, job.lease_no) for job in jobs], LEASE, now=T0 + 3 * MINUTE)
    store.request_cancels([jobs[1].id], "enough", now=T0 + 3 * MINUTE)
    for job in jobs:
        assert succeed(store, job, now=T0 + 3 * MINUTE, keep=job.id != fired.jobs[0]) == []
    assert claim_one(store, now=T0 + 4 * MINUTE).id == held
    assert [line.outcome for line in ledger(store)] == ["succeeded"]
    assert ids(store.expired_jobs(9, now=T0 + DAY)) == [held]
    store.record_heartbeat(a_node(), now=T0)
    assert store.change_lock("a", "acquire", "mine", MINUTE, now=T0) == 1
    assert len(store.list_queues()) == 1
    assert store.prune(Retention(succeeded_for=0), 10, now=T0 + DAY).jobs == 2
    assert len(fire_ahead(store).jobs) == 3
    assert claim_one(store, now=T0 + DAY + MINUTE).schedule_id == "ahead"
    assert len(store.list_schedules(ScheduleFilter(tenant="acme", origin="api:")).items) == 1
    note = AuditRecord(id="n", at=T0, by="ann", verb="made", subject="tenant:a")
    assert store.edit_entries([EntryEdit(kind="tenant", name="a", expect_version=0, data="{}", audit=note)]) == []
    assert [entry.name for entry in store.list_entries("tenant").items] == ["a"]
    assert store.list_audit_records(AuditFilter(subject="tenant:a")).items == [note]
    check_store(store)


def fire_ahead(store):
    add_schedule(store, "ahead", now=T0 + DAY, tenant="acme", lookahead=3 * MINUTE + 1)
    return fire(store, "ahead", now=T0 + DAY)


class TestScripts:
    def test_scripts_that_the_server_forgot_are_told_again(self, store, raw):
        for _ in range(3):
            raw.script_flush()
            job_id = add_job(store)
            raw.script_flush()
            job = claim_one(store)
            raw.script_flush()
            assert (job.id, succeed(store, job)) == (job_id, [])

    def test_every_script_is_in_the_package(self, store):
        live_a_life(store)

    def test_names_are_data(self, store):
        """Whatever a name holds, it is a name."""
        odd = "'); redis.call('FLUSHALL') -- \n{x}|:*?\\"
        job_id = add_job(store, queue=odd, task=odd, key=odd)
        job = claim_one(store, queues=(odd,), holder=odd)
        assert (job.id, job.queue, job.task, job.key, job.holder) == (job_id, odd, odd, odd, odd)
        assert succeed(store, job, holder=odd) == []
        assert ids(all_jobs(store, JobFilter(task=odd))) == [job_id]
        assert [info.name for info in store.list_queues()] == [odd]
        assert store.recount() == {}


class TestRestarts:
    def test_a_restart_keeps_everything(self):
        with RedisServer() as server, opened(server.url()) as store:
            furnish(store)
            before = everything(store)
            server.restart()
            assert everything(store) == before
            check_store(store)

    def test_a_kill_loses_no_more_than_the_last_second(self):
        with RedisServer(options=("--appendfsync", "always")) as server, opened(server.url()) as store:
            furnish(store)
            before = everything(store)
            server.kill()
            with pytest.raises(StoreUnavailable, match="cannot reach redis at 127"):
                store.now()
            server.start()
            assert everything(store) == before

    def test_a_listener_hears_again_after_a_restart(self):
        with RedisServer() as server, opened(server.url()) as store, opened(server.url()) as other:
            listener = store.listen("jobs")
            try:
                server.restart()
                assert listener.wait(PATIENCE)  # the connection broke: a listener that waits looks for itself
                assert listener.wait(PATIENCE)  # it listens again, and what came meanwhile was not heard
                assert is_woken(listener, lambda: add_job(other))
            finally:
                listener.close()

    def test_while_the_server_is_away_a_listener_waits_and_can_be_rung(self):
        server = RedisServer().start()
        try:
            with opened(server.url()) as store:
                listener = store.listen("jobs")
                server.kill()
                assert listener.wait(PATIENCE)
                begun = time.monotonic()
                assert not listener.wait(0.2)  # it does not spin
                assert time.monotonic() - begun >= 0.2
                assert is_woken(listener, listener.wake)
                listener.close()
        finally:
            server.close()


class TestListeners:
    def test_a_listener_outlasts_the_sockets_deadline(self, server, namespace):
        """The driver gives up reading after a while; a listener must not."""
        with opened(impatient(server), namespace) as store:
            listener = store.listen("jobs")
            try:
                assert not listener.wait(0.7)
                add_job(store)
                assert listener.wait(PATIENCE)
            finally:
                listener.close()

    def test_it_rings_only_when_the_line_was_empty(self, store):
        listener = store.listen("jobs")
        try:
            add_job(store)
            assert listener.wait(PATIENCE)
            add_job(store)
            assert not listener.wait(0.05)
        finally:
            listener.close()

    def test_a_job_that_is_due_earlier_than_all_others_rings(self, store):
        add_job(store, delay=DAY)
        listener = store.listen("jobs")
        try:
            add_job(store, delay=2 * DAY)
            assert not listener.wait(0.05)
            add_job(store, delay=MINUTE)
            assert listener.wait(PATIENCE)
        finally:
            listener.close()

    def test_a_closed_listener_leaves_no_connection(self, store, raw):
        before = len(raw.client_list(_type="pubsub"))
        listeners = [store.listen("jobs") for _ in range(3)]
        assert len(raw.client_list(_type="pubsub")) == before + 3
        for listener in listeners:
            listener.close()
        assert until_some(lambda: len(raw.client_list(_type="pubsub")) == before)

    def test_ringing_a_closed_listener_is_harmless(self, store):
        listener = store.listen("jobs")
        listener.close()
        listener.wake()


class TestEmptied:
    def test_a_flushed_server_is_told_loudly_and_used_again(self, caplog):
        with RedisServer() as server, opened(server.url()) as store, redis.Redis(port=server.port) as raw:
            job = running_job(store)
            add_schedule(store)
            raw.flushall()
            with caplog.at_level(logging.ERROR, logger="rota.store.redis"):
                assert [refusal.id for refusal in succeed(store, job)] == [job.id]
            assert "was emptied while it was in use" in caplog.text
            caplog.clear()
            assert store.extend_leases(WORKER, [(job.id, 1)], LEASE, now=T0).lost == [job.id]
            assert store.due_schedules(9, now=T0 + DAY).schedules == []
            assert caplog.text == ""  # once
            assert claim_one(store).id if add_job(store) else None
            check_store(store)

    def test_flushing_under_load_crashes_nobody(self):
        with RedisServer() as server, opened(server.url()) as store, redis.Redis(port=server.port) as raw:
            problems = []
            done = threading.Event()

            def work():
                try:
                    while not done.is_set():
                        store.add_jobs([a_job(key=f"k{n}") for n in range(20)])
                        for job in store.exchange(Exchange(holder=WORKER, want=10)).claimed:
                            succeed(store, job, now=store.now())
                except Exception as err:  # noqa: BLE001 - whatever it is, the test must tell it
                    problems.append(err)

            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            for _ in range(30):
                raw.flushall()
            done.set()
            for thread in threads:
                thread.join(PATIENCE)
            assert problems == []
            raw.flushall()
            add_job(store)
            check_store(store)


class TestFrozen:
    def test_calls_end_in_time_and_go_on_after(self):
        with RedisServer() as server, opened(server.url()) as patient, opened(impatient(server)) as store:
            job_id = add_job(patient)
            server.freeze()
            try:
                begun = time.monotonic()
                for call in (store.now, lambda: claim(store), lambda: store.listen("jobs")):
                    with pytest.raises(StoreUnavailable, match="did not answer in time"):
                        call()
                assert time.monotonic() - begun < PATIENCE
            finally:
                server.thaw()
            assert in_the_end(lambda: read(store, job_id)).id == job_id
            check_store(patient)

    def test_the_reply_that_was_lost_harms_nothing(self):
        """The claim happens when the server wakes, and nobody is_woken of it: its lease runs out."""
        with RedisServer() as server, opened(server.url()) as patient, opened(impatient(server)) as store:
            assert claim(patient) == []  # from here on the server knows the script
            patient.add_jobs([a_job()])
            server.freeze()
            with pytest.raises(StoreUnavailable):
                store.exchange(Exchange(holder=WORKER, want=1, lease_for=0))
            server.thaw()
            (expired,) = until_some(lambda: patient.expired_jobs(9))
            assert (expired.state, expired.holder) == (State.RUNNING, WORKER)


class TestLeases:
    def test_a_claim_whose_reply_was_lost_lapses_while_its_holder_lives(self, store):
        """The holder renews what it knows of, again and again."""
        add(store, a_job(), a_job())
        known, unknown = claim(store, 2)
        for beat in range(1, 5):
            store.extend_leases(WORKER, [(known.id, 1)], LEASE, now=T0 + beat * LEASE // 2)
        assert ids(store.expired_jobs(9, now=T0 + LEASE)) == [unknown.id]

    def test_while_all_is_well_nothing_is_looked_through(self, store, raw, namespace):
        job = running_job(store)
        for beat in range(1, 5):
            store.extend_leases(WORKER, [(job.id, 1)], LEASE, now=T0 + beat * LEASE // 2)
        bound = raw.zscore(f"{{{namespace}}}:holders", WORKER)
        assert bound == T0 + 3 * LEASE
        succeed(store, job)
        assert raw.exists(f"{{{namespace}}}:holders", f"{{{namespace}}}:holding") == 0


@pytest.fixture(scope="module")
def cluster():
    with RedisServer(is_cluster=True) as running:
        yield running


class TestCluster:
    def test_a_plain_client_can_do_everything(self, cluster, namespace):
        with opened(cluster.url(), namespace) as store:
            live_a_life(store)
        with opened(cluster.url(), f"{namespace}b") as store:
            furnish(store)
            with opened(cluster.url(), f"{namespace}c") as other:
                copy_all(store, other)
                assert len(all_jobs(other)) == len(all_jobs(store))

    def test_a_cluster_client_can_do_everything(self, cluster, namespace):
        client = RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", cluster.port)])
        with opened(client, namespace) as store:
            live_a_life(store)
            assert "redis cluster at 127.0.0.1" in store.describe()
            listener = store.listen("jobs")
            add_job(store)
            assert listener.wait(PATIENCE)
            listener.close()
        assert client.ping()
        client.close()

    def test_all_keys_of_a_namespace_share_a_slot(self, cluster, namespace):
        with opened(cluster.url(), namespace) as store, redis.Redis(port=cluster.port) as raw:
            furnish(store)
            keys = [key for key in raw.scan_iter() if namespace.encode() in key]
            assert len(keys) > 20
            assert len({raw.cluster("KEYSLOT", key.decode()) for key in keys}) == 1


class TestGivenClients:
    @pytest.mark.parametrize("options", [{}, {"decode_responses": True}, {"protocol": 2}, {"protocol": 3}], ids=str)
    def test_a_client_is_used_as_it_is_and_never_closed(self, server, namespace, options):
        client = redis.Redis(port=server.port, **options)
        with opened(client, namespace) as store:
            furnish(store)
            check_store(store)
            listener = store.listen("jobs")
            add_job(store, queue="fresh")
            assert listener.wait(PATIENCE)
            listener.close()
        assert client.ping()
        client.close()

    def test_a_blocking_pool_of_two_is_enough(self, server, namespace):
        pool = redis.BlockingConnectionPool(port=server.port, max_connections=2, timeout=1)
        client = redis.Redis(connection_pool=pool)
        with opened(client, namespace) as store:
            live_a_life(store)
        client.close()

    def test_a_closed_store_says_so(self, store):
        store.close()
        with pytest.raises(StoreUnavailable, match="is closed"):
            store.now()


class TestRefusedServers:
    def test_a_wrong_password_is_one_clear_error_without_the_password(self):
        with RedisServer(password=PASSWORD) as server:
            with opened(server.url()) as store:
                add_job(store)
            for wrong in (server.url().replace(PASSWORD, "wrong-secret"), f"redis://127.0.0.1:{server.port}/0"):
                with pytest.raises(BadStoreUrl, match="refused the login") as told:
                    RedisStore(wrong).open()
                assert "wrong-secret" not in str(told.value)

    def test_a_read_only_replica_is_one_clear_error(self):
        words = "read-only replica; name its primary instead"
        with RedisServer() as primary, RedisServer(replica_of=primary) as replica:
            store = RedisStore(replica.url())
            with pytest.raises(StoreUnavailable, match=f"{words} .127.0.0.1:{primary.port}"):
                store.open()

    def test_a_primary_that_becomes_a_replica_is_told_as_such(self):
        with RedisServer() as primary, RedisServer() as other, opened(other.url()) as store:
            with redis.Redis(port=other.port) as raw:
                raw.replicaof("127.0.0.1", primary.port)
            with pytest.raises(StoreUnavailable, match="read-only replica"):
                add_job(store)

    def test_a_server_that_is_not_there_is_one_clear_error(self):
        server = RedisServer()
        with pytest.raises(StoreUnavailable, match=r"cannot reach redis at .*Check that it runs"):
            RedisStore(server.url()).open()
        server.close()

    def test_a_full_server_takes_nothing_and_goes_on_when_there_is_room(self):
        with RedisServer() as server, opened(server.url()) as store, redis.Redis(port=server.port) as raw:
            job_id = add_job(store)
            raw.config_set("maxmemory", 1)
            with pytest.raises(StoreUnavailable, match="no memory left; nothing was written"):
                add_job(store)
            raw.config_set("maxmemory", 0)
            assert ids(all_jobs(store)) == [job_id]
            check_store(store)

    def test_a_database_that_does_not_exist_is_one_clear_error(self, server):
        with pytest.raises(StoreError, match="DB index"):
            RedisStore(f"redis://127.0.0.1:{server.port}/99").open()


class TestVersions:
    def test_a_newer_schema_version_is_refused(self, raw, server, namespace):
        raw.hset(f"{{{namespace}}}:meta", "version", "2")
        with pytest.raises(SchemaMismatch, match="schema version 2, this Rota knows up to 1"):
            RedisStore(server.url(), namespace=namespace).open()

    def test_keys_of_somebody_else_are_refused(self, raw, server, namespace):
        raw.hset(f"{{{namespace}}}:meta", "version", "theirs")
        with pytest.raises(SchemaMismatch, match="that Rota did not make; choose another namespace"):
            RedisStore(server.url(), namespace=namespace).open()

    def test_what_open_would_do_can_be_asked(self, server, namespace):
        fresh = RedisStore(server.url(), namespace=namespace)
        assert len(fresh.pending_migrations()) == 1
        assert len(fresh.pending_migrations()) == 1  # asking changes nothing
        fresh.open()
        assert fresh.pending_migrations() == []
        fresh.close()

    def test_opening_twice_is_harmless(self, store):
        add_job(store)
        store.open()
        assert len(all_jobs(store)) == 1


class TestSettings:
    def test_a_durable_server_needs_no_warning(self, store):
        assert store.warnings() == []

    def test_what_may_lose_jobs_is_told_once(self, caplog):
        options = ("--appendonly", "no", "--maxmemory-policy", "allkeys-lru")
        with RedisServer(options=options) as server, caplog.at_level(logging.WARNING, logger="rota.store.redis"):
            store = RedisStore(server.url())
            store.open()
            store.open()
            store.close()
            told = [record.message for record in caplog.records]
        assert len(told) == 2
        assert "maxmemory-policy is allkeys-lru" in told[0]
        assert "appendonly is off" in told[1]

    def test_where_settings_cannot_be_read_that_is_told(self):
        with RedisServer(options=("--rename-command", "CONFIG", "")) as server, opened(server.url()) as store:
            (warning,) = store.warnings()
            assert "could not be checked" in warning
            add_job(store)


class TestSpoiltData:
    def test_a_job_that_cannot_be_read_is_failed_and_the_others_go_on(self, store, raw, namespace):
        spoilt, whole = add(store, a_job(), a_job())
        place = raw.hget(f"{{{namespace}}}:job", spoilt).partition(b"|")[0]
        raw.hset(f"{{{namespace}}}:job", spoilt, place + b"|0|not a record")
        assert "cannot be read" in (read(store, spoilt).error or "")
        assert ids(claim(store, 5)) == [whole]
        job = read(store, spoilt)
        assert (job.state, job.task, job.payload.endswith(b"not a record")) == (State.FAILED, "unreadable", True)
        assert queue_info(store).counts == {"failed": 1, "running": 1}
        check_store(store)
        assert store.delete_jobs([spoilt], now=T0) == [spoilt]
        check_store(store)

    def test_a_job_that_is_gone_from_the_line_stops_nobody(self, store, raw, namespace):
        lost, whole = add(store, a_job(), a_job())
        raw.hdel(f"{{{namespace}}}:job", lost)
        assert ids(claim(store, 5)) == [whole]
        assert read(store, lost).state is State.FAILED

    def test_a_scheduled_job_that_cannot_be_read_stops_nobody(self, store, raw, namespace):
        spoilt, whole = add(store, a_job(delay=MINUTE), a_job(delay=MINUTE))
        raw.hset(f"{{{namespace}}}:job", spoilt, b"nonsense")
        assert ids(claim(store, 5, now=T0 + DAY)) == [whole]
        assert read(store, spoilt).state is State.FAILED

    def test_a_running_job_that_was_spoilt_does_not_stop_the_rescuer(self, store, raw, namespace):
        add(store, a_job(), a_job())
        spoilt, whole = claim(store, 2)
        raw.hset(f"{{{namespace}}}:job", spoilt.id, b"1|0|nonsense")
        assert ids(store.expired_jobs(9, now=T0 + DAY)) == [whole.id]
        assert ids(store.expired_jobs(9, now=T0 + DAY)) == [whole.id]
        assert read(store, spoilt.id).state is State.FAILED

    @pytest.mark.parametrize("head", [b"first|0|", b"|0|", b"1||", b"1|0.5|"])
    def test_a_record_with_a_head_that_cannot_be_read_is_of_no_time(self, store, raw, namespace, head):
        spoilt, whole = add(store, a_job(), a_job())
        record = raw.hget(f"{{{namespace}}}:job", spoilt)
        raw.hset(f"{{{namespace}}}:job", spoilt, head + record.split(b"|", 2)[2])
        assert "cannot be read" in (read(store, spoilt).error or "")
        of_now = JobFilter(since=T0, until=T0 + 1)
        assert ids(store.list_jobs(of_now, limit=9).items) == [whole]
        assert store.count_jobs(of_now) == 1

    def test_a_schedule_that_cannot_be_read_is_shown_and_never_due(self, store, raw, namespace):
        add_schedule(store, "spoilt")
        add_schedule(store, "whole")
        packed = raw.hget(f"{{{namespace}}}:schedule", "spoilt")
        raw.hset(f"{{{namespace}}}:schedule", "spoilt", packed[:40])
        due = store.due_schedules(9, now=T0 + MINUTE)
        assert [schedule.id for schedule in due.schedules] == ["whole"]
        assert "cannot be read" in (read_schedule(store, "spoilt").problem or "")
        assert store.due_schedules(9, now=T0 + MINUTE).next_due_at is None
        assert fire(store, "whole", now=T0 + MINUTE).is_accepted


class TestAddresses:
    @pytest.mark.parametrize(
        ("url", "words"),
        [
            ("redis://", "host is missing"),
            ("redis://host:port/0", "Port could not be cast"),
            ("redis://host/jobs", "database must be a number"),
            ("redis://host?socket_timeout=soon", "socket_timeout"),
            ("redis://host?colour=red", "unexpected keyword argument 'colour'"),
            ("unix://", "path is missing"),
            ("http://host", "no such kind of address"),
        ],
    )
    def test_a_url_that_names_no_server_is_one_clear_error(self, url, words):
        with pytest.raises(BadStoreUrl, match=words):
            from_url(url, namespace="rota")

    def test_an_error_shows_no_password(self):
        for url in ("redis://me:secret@host/jobs", "redis://host/jobs?password=secret"):
            with pytest.raises(BadStoreUrl) as told:
                from_url(url, namespace="rota")
            assert "secret" not in str(told.value)

    @pytest.mark.parametrize("namespace", ["", "0a", "a b", "a{b}", "a:b", "ü", "a" * 32, None, "a\n"])
    def test_an_odd_namespace_is_one_clear_error(self, namespace):
        with pytest.raises(BadStoreUrl, match="namespace"):
            from_url("redis://host", namespace=namespace)

    def test_valkey_and_sockets_have_their_own_schemes(self, tmp_path):
        path = tmp_path / "valkey.sock"
        with ValkeyServer(options=("--unixsocket", str(path))) as server:
            urls = (f"valkey://127.0.0.1:{server.port}/0", f"unix://{path}", f"unix://{path}?db=1")
            for number, url in enumerate(urls):
                with opened(url, f"n{number}") as store:
                    live_a_life(store)

    def test_namespaces_do_not_meet(self, server, namespace):
        with opened(server.url(), namespace) as one, opened(server.url(), f"{namespace}2") as other:
            add_job(one)
            assert all_jobs(other) == []
            assert claim(other) == []


def test_jobs_are_added_over_a_link_on_which_each_date_is_old_when_it_arrives(store, monkeypatch):
    """The script refuses dates that are more than a second old."""
    clock = store._connection.clock
    monkeypatch.setattr(clock, "now", lambda: utc_micros() - 5 * SECOND)
    (single,) = add_now(store, a_job())
    several = add_now(store, a_job(), a_job())
    for job in store.get_jobs([single, *several]):
        assert abs(job.created_at - utc_micros()) < 4 * SECOND
    assert ids(claim_now(store, 3)) == [single, *several]


def add_now(store, *jobs):
    return [added.id for added in store.add_jobs(jobs)]


def claim_now(store, want):
    return store.exchange(Exchange(holder=WORKER, queues=("default",), want=want, lease_for=LEASE)).claimed


def test_runs_are_counted_though_the_rest_of_their_exchange_fails(store, monkeypatch):
    """Another end of the same call releases a job, by a step of its own. The worker reports both again."""
    waited_for = add_job(store)
    add_job(store, waits_for=waited_for)
    add_job(store)
    request = Exchange(
        holder=WORKER, settled=[settle(job, Succeeded(b"1"), a_policy(), T0, 0.0) for job in claim(store, 2)]
    )
    with monkeypatch.context() as patch:
        patch.setattr(Changer, "apply", out_of_reach)
        with pytest.raises(StoreUnavailable):
            store.exchange(request, now=T0)
    assert [refusal.why for refusal in store.exchange(request, now=T0).refused] == ["lease"]
    assert [bucket.succeeded for bucket in store.read_series(0, 2 * T0)] == [2]


def out_of_reach(*_, **__):
    raise StoreUnavailable("the link is down")
