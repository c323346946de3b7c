"""What only the MongoDB store has: servers that go away, no transactions, documents written by hand, clients given."""

from __future__ import annotations

import logging
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pymongo
import pytest
from mongo_servers import FOLDER, documents, emptied, patient, replica_set_url, standalone_url  # noqa: F401

from rota import failpoints
from rota.errors import BadStoreUrl, SchemaMismatch, StoreError, StoreUnavailable
from rota.model.jobs.job import State, history_of
from rota.model.schedules.edit import pause, remove
from rota.model.schedules.firing import plan
from rota.store.contract import Exchange, JobFilter, Retention, Seal
from rota.store.mongo import MongoStore, connection, from_url
from rota.store.mongo.listing import conditions
from rota.store.mongo.outbox import deliver, outbox_of
from rota.store.urls import store_from_url
from rota.testing.servers.mongo import MongoReplicaSet, MongoServer
from rota.testing.store_suite.builders import DAY, HOUR, MINUTE, T0, WORKER, a_job, fresh_id
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.steps import (
    add,
    add_job,
    add_schedule,
    all_jobs,
    claim,
    claim_one,
    fire,
    fire_due,
    ids,
    new_schedule,
    planned,
    queue_info,
    read,
    read_schedule,
    running_job,
    succeed,
)
from stores.outages import in_the_end

KEEP_ALL = Retention(succeeded_for=10_000 * DAY, failed_for=10_000 * DAY, cancelled_for=10_000 * DAY)


class Crash(Exception):
    """A process that dies at a named place."""


@pytest.fixture
def make_store(standalone_url):  # noqa: F811
    return emptied(standalone_url)


@pytest.fixture
def store(make_store):
    with opened(make_store) as handle:
        yield handle


@pytest.fixture
def on_replica_set(replica_set_url):  # noqa: F811
    with opened(emptied(replica_set_url)) as handle:
        yield handle


@pytest.fixture
def crash_at():
    """Die at the first arrival at a place."""

    def install(place: str) -> None:
        def hook(name: str) -> None:
            if name == place:
                failpoints.install(None)
                raise Crash(name)

        failpoints.install(hook)

    yield install
    failpoints.install(None)


@pytest.fixture
def own_server():
    with MongoServer(FOLDER) as server:
        yield server


@pytest.fixture
def impatient(patient, monkeypatch):  # noqa: ARG001, F811 - after it
    monkeypatch.setattr(connection, "DEADLINE", 1.0)
    monkeypatch.setattr(connection, "CONNECT_WITHIN", 1_000)


def freeze(server):
    """Until all of its threads stand still: one of them may answer a last call."""
    server.freeze()
    tasks = Path(f"/proc/{server._process.pid}/task")
    deadline = time.monotonic() + 30
    while any("State:\tT" not in (task / "status").read_text() for task in tasks.iterdir()):
        assert time.monotonic() < deadline


def upkeep(store, *, now):
    """Two rounds, far enough apart."""
    for n in range(2):
        store.prune(KEEP_ALL, 100, now=now + n * HOUR)


class TestServersThatGoAway:
    @pytest.mark.parametrize("end", ["kill", "stop"])
    def test_what_was_acknowledged_is_there_after_the_servers_end(self, own_server, end):
        with opened(lambda: MongoStore(own_server.url())) as store:
            add_schedule(store)
            fire(store, now=T0 + MINUTE)
            done, running = claim_one(store, now=T0 + MINUTE), running_job(store, queue="other")
            succeed(store, done, now=T0 + MINUTE)
            made = add(store, *[a_job() for _ in range(50)])
            before = all_jobs(store), read_schedule(store)
            getattr(own_server, end)()
            own_server.start()
            assert (all_jobs(store), read_schedule(store)) == before
            assert succeed(store, running) == []
            assert ids(claim(store, 100)) == made
            upkeep(store, now=T0 + MINUTE)  # what was counted last may be lost
            check_store(store)

    @pytest.mark.usefixtures("impatient")
    def test_a_server_that_is_away_is_told_and_found_again(self, own_server):
        with opened(lambda: MongoStore(own_server.url())) as store:
            own_server.kill()
            with pytest.raises(StoreUnavailable, match="does not answer"):
                store.now()
            own_server.start()
            assert in_the_end(lambda: store.add_jobs([a_job()]))

    @pytest.mark.usefixtures("impatient")
    def test_a_frozen_server_keeps_nobody_waiting(self, own_server):
        with opened(lambda: MongoStore(own_server.url())) as store:
            freeze(own_server)
            begun = time.monotonic()
            with pytest.raises(StoreUnavailable):
                store.exchange(Exchange(holder=WORKER, want=1))
            assert time.monotonic() - begun < 10
            own_server.thaw()
            in_the_end(store.now)
            assert add_job(store) == claim_one(store).id

    @pytest.mark.usefixtures("impatient")
    def test_a_server_that_is_not_there_is_told_at_once(self):
        store = MongoStore("mongodb://127.0.0.1:1/rota")
        with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1"):
            store.open()

    def test_a_listener_rings_again_after_the_servers_restart(self, own_server):
        with opened(lambda: MongoStore(own_server.url())) as store, ThreadPoolExecutor(1) as pool:
            listener = store.listen("jobs")
            waiting = pool.submit(listener.wait, 60)
            own_server.restart()
            assert waiting.result()  # a notification may have been missed
            waiting = pool.submit(listener.wait, 60)
            add_job(store)
            assert waiting.result()
            listener.close()

    def test_a_primary_that_steps_down_is_away_for_a_moment(self):
        with MongoReplicaSet(FOLDER) as server, opened(lambda: MongoStore(server.url())) as store:
            job = running_job(store)
            server.ask({"replSetStepDown": 1, "force": True})
            for _ in range(20):
                try:
                    assert succeed(store, job) == []
                except StoreUnavailable:
                    continue
                break
            assert read(store, job.id).state is State.SUCCEEDED


class TestUrls:
    def test_a_refused_login_says_what_to_check_and_no_secret(self, own_server):
        url = own_server.url().replace("mongodb://", "mongodb://ann:geheim@")
        with pytest.raises(BadStoreUrl) as told:
            MongoStore(url).open()
        assert "user and the password" in str(told.value)
        assert "geheim" not in f"{told.value!r} {MongoStore(url).describe()}"

    @pytest.mark.parametrize("url", ["mongodb://", "mongodb://h:port/x", "mongodb://u:p:w@h/", "mongodb://h/a b"])
    def test_a_bad_url_is_told_before_anything_is_asked(self, url):
        with pytest.raises(BadStoreUrl):
            store_from_url(url)

    @pytest.mark.parametrize("namespace", ["", "1a", "a-b", "a.b", "a$b", "a" * 32, "ä"])
    def test_an_odd_namespace_is_refused(self, namespace):
        with pytest.raises(BadStoreUrl, match="namespace"):
            from_url("mongodb://127.0.0.1/rota", namespace=namespace)

    def test_the_path_names_the_database(self):
        assert "database jobs at example:27017" in from_url("mongodb://example:27017/jobs", namespace="n").describe()
        assert "database rota at example" in from_url("mongodb://example", namespace="n").describe()

    def test_namespaces_do_not_meet(self, standalone_url):  # noqa: F811
        with opened(emptied(standalone_url, "one")) as one, opened(emptied(standalone_url, "two")) as two:
            add_job(one, key="k")
            assert claim(two) == []
            assert two.add_jobs([a_job(key="k")])[0].existed is False


class TestSchemas:
    def test_what_is_missing_is_told_as_lines_for_the_shell(self, standalone_url):  # noqa: F811
        store = MongoStore(standalone_url, namespace=f"fresh{secrets.token_hex(4)}")
        (script,) = store.pending_migrations()
        assert "createIndex" in script
        with opened(lambda: store):
            pass
        assert store.pending_migrations() == []

    def test_a_newer_schema_is_refused(self, store, make_store):
        documents(store).meta.update_one({"_id": "control"}, {"$set": {"version": 99}})
        try:
            with pytest.raises(SchemaMismatch, match="newer Rota"):
                make_store().open()
        finally:
            documents(store).meta.update_one({"_id": "control"}, {"$set": {"version": 1}})

    def test_a_collection_that_rota_did_not_make_is_left_alone(self, standalone_url):  # noqa: F811
        name = f"other{secrets.token_hex(4)}"
        with pymongo.MongoClient(standalone_url) as client:
            client.get_default_database()[f"{name}_job"].insert_one({"mine": True})
        with pytest.raises(SchemaMismatch, match="another namespace"):
            MongoStore(standalone_url, namespace=name).open()

    def test_a_database_that_was_dropped_is_made_anew_and_that_is_said_loudly(self, standalone_url, caplog):  # noqa: F811
        with opened(lambda: MongoStore(standalone_url, namespace="dropped", database="dropped")) as store:
            add_job(store)
            store._connection.client.drop_database("dropped")
            with caplog.at_level(logging.ERROR, "rota.store"):
                job_id = add_job(store)
                assert ids(all_jobs(store)) == [job_id]
                assert add_job(store, key="k") == add_job(store, key="k")  # the unique index is there again
            assert "has lost all that Rota kept in it" in caplog.text


class TestClientsGiven:
    def test_a_client_of_the_users_is_used_and_not_closed(self, standalone_url):  # noqa: F811
        with pymongo.MongoClient(standalone_url) as client:
            with opened(lambda: MongoStore(client, namespace="given")) as store:
                add_job(store)
            assert client.admin.command("ping")["ok"]

    def test_a_client_without_a_socket_timeout_hears_listeners_too(self, standalone_url):  # noqa: F811
        with (
            pymongo.MongoClient(standalone_url) as client,
            opened(lambda: MongoStore(client, namespace="given")) as store,
            ThreadPoolExecutor(1) as pool,
        ):
            listener = store.listen("jobs")
            waiting = pool.submit(listener.wait, 60)
            add_job(store)
            assert waiting.result()
            listener.close()

    def test_a_closed_store_says_so(self, make_store):
        with opened(make_store) as store:
            pass
        with pytest.raises(StoreUnavailable, match="is closed"):
            store.now()


class TestDocumentsWrittenByHand:
    def test_a_job_that_cannot_be_read_is_failed_with_the_reason_and_the_others_go_on(self, store):
        first, broken, last = add(store, a_job(), a_job(), a_job())
        documents(store).jobs.update_one({"_id": broken}, {"$set": {"payload": {"not": "bytes"}}})
        assert ids(claim(store, 9)) == [first, last]
        job = read(store, broken)
        assert job.state is State.FAILED
        assert "cannot be read" in (job.error or "")
        assert [line.state for line in history_of(job)] == [State.QUEUED, State.RUNNING, State.FAILED]

    def test_a_job_of_nothing_but_its_place_in_line_is_parked_and_listed(self, store):
        documents(store).jobs.insert_one({"_id": "odd", "state": "queued", "queue": "default", "priority": "high"})
        waiting = add_job(store)
        assert ids(claim(store, 9)) == [waiting]
        assert [job.id for job in all_jobs(store, JobFilter(states=(State.FAILED,)))] == ["odd"]

    def test_a_running_job_that_cannot_be_read_is_parked_when_its_lease_runs_out(self, store):
        job = running_job(store)
        documents(store).jobs.update_one({"_id": job.id}, {"$set": {"task": 7}})
        assert store.expired_jobs(10, now=T0 + HOUR) == []
        assert read(store, job.id).state is State.FAILED
        assert store.expired_jobs(10, now=T0 + HOUR) == []

    def test_a_job_that_cannot_be_read_does_not_keep_its_schedule_from_being_paused(self, store):
        add_schedule(store)
        (job_id,) = fire(store, now=T0 + MINUTE).jobs
        documents(store).jobs.update_one({"_id": job_id}, {"$set": {"payload": "text"}})
        edit = pause(read_schedule(store), T0 + MINUTE, reason="", by="", until=None)
        assert store.edit_schedules([edit], now=T0 + MINUTE) == []

    def test_a_schedule_that_cannot_be_read_is_set_aside_with_the_reason(self, store):
        for name in ("good", "broken"):
            add_schedule(store, name)
        documents(store).schedules.update_one({"_id": "broken"}, {"$set": {"spec": "not JSON"}})
        assert [fired.schedule_id for fired in fire_due(store, now=T0 + MINUTE)] == ["good"]
        assert store.due_schedules(9, now=T0 + MINUTE).schedules == []
        assert "cannot be read" in (read_schedule(store, "broken").problem or "")

    def test_an_unreadable_outbox_stops_nobody_else(self, store):
        for name in ("good", "broken"):
            add_schedule(store, name)
        documents(store).schedules.update_one({"_id": "broken"}, {"$set": {"outbox": b"?"}})
        assert [fired.schedule_id for fired in fire_due(store, now=T0 + MINUTE)] == ["good"]
        assert "cannot be read" in (read_schedule(store, "broken").problem or "")


class TestCrashesWithoutTransactions:
    """Each process dies at one place; what it left half done is finished by the next process."""

    def test_a_firing_that_was_cut_short_makes_its_one_job(self, store, make_store, crash_at):
        add_schedule(store)
        crash_at("fire.before_commit")
        with pytest.raises(Crash):
            fire(store, now=T0 + MINUTE)
        assert all_jobs(store) == []
        with opened(make_store) as other:
            assert fire_due(other, now=T0 + MINUTE) == []
            (job,) = all_jobs(other)
            assert (job.fire_at, read_schedule(other).run_count) == (T0 + MINUTE, 1)
            assert read_schedule(other).next_at == T0 + 2 * MINUTE
        upkeep(store, now=T0 + HOUR)
        check_store(store)

    def test_the_rescuer_delivers_where_no_scheduler_runs(self, store, crash_at):
        add_schedule(store)
        crash_at("fire.before_commit")
        with pytest.raises(Crash):
            fire(store, now=T0 + MINUTE)
        store.expired_jobs(10, now=T0 + MINUTE)
        assert len(claim(store, now=T0 + MINUTE)) == 1

    def test_another_scheduler_with_the_same_view_fires_nothing_more(self, store, crash_at):
        add_schedule(store)
        theirs = planned(store, now=T0 + MINUTE)
        crash_at("fire.before_commit")
        with pytest.raises(Crash):
            fire(store, now=T0 + MINUTE)
        (answer,) = store.fire([theirs], now=T0 + MINUTE)
        assert not answer.is_accepted
        assert len(all_jobs(store)) == 1

    def test_a_pause_that_was_cut_short_is_whole_to_whoever_sees_it(self, store, make_store, crash_at):
        add_schedule(store)
        (job_id,) = fire(store, now=T0 + MINUTE).jobs
        edit = pause(read_schedule(store), T0 + MINUTE, reason="rest", by="ann", until=None)
        crash_at("edit.before_commit")
        with pytest.raises(Crash):
            store.edit_schedules([edit], now=T0 + MINUTE)
        with opened(make_store) as other:
            assert read_schedule(other).pause is not None
            assert read(other, job_id).state is State.CANCELLED

    def test_a_removal_that_was_cut_short_is_finished(self, store, crash_at):
        schedule = add_schedule(store)
        crash_at("edit.before_commit")
        with pytest.raises(Crash):
            store.edit_schedules([remove(schedule, T0 + 1)], now=T0 + 1)
        assert store.get_schedules(["tick"]) == []
        assert store.edit_schedules([new_schedule("tick", now=T0 + 2)], now=T0 + 2) == []

    def test_a_delivery_that_comes_a_job_too_late_makes_nothing(self, store, crash_at):
        """A process stood still with an outbox in its hands, while others delivered it, ran the job and removed it."""
        add_schedule(store)
        crash_at("fire.before_commit")
        with pytest.raises(Crash):
            fire(store, now=T0 + MINUTE)
        stale = outbox_of(documents(store).schedules.find_one({"_id": "tick"}))
        read_schedule(store)
        succeed(store, claim_one(store, now=T0 + MINUTE), now=T0 + MINUTE, keep=False)
        assert all_jobs(store) == []
        store._steps.run("fire", lambda step: deliver(step, [stale]))
        assert all_jobs(store) == []
        assert [line.count for line in store.list_occurrences("tick", 0, T0 + DAY).items] == [1]

    def test_counters_that_a_crash_left_off_are_set_right(self, store, crash_at):
        add_job(store)
        crash_at("add.before_commit")
        with pytest.raises(Crash):
            add(store, a_job(key="a"), a_job(key="b"))
        assert store.recount() == {"default/queued": -2}
        upkeep(store, now=T0)
        assert store.recount() == {}
        assert queue_info(store).counts == {"queued": 3}

    def test_a_difference_that_was_seen_once_is_left_alone(self, store, crash_at):
        crash_at("add.before_commit")
        with pytest.raises(Crash):
            add_job(store, key="a")
        store.prune(KEEP_ALL, 100, now=T0)
        assert store.recount() == {"default/queued": -1}

    def test_a_held_job_whose_predecessor_is_over_is_released_by_upkeep(self, store):
        first = running_job(store)
        held = add_job(store, waits_for=first.id)
        documents(store).jobs.update_one(  # its worker died between the end of the job and what follows from it
            {"_id": first.id}, {"$set": {"state": "succeeded", "finished_at": T0}, "$unset": {"lease_until": ""}}
        )
        store.expired_jobs(10, now=T0)
        assert read(store, held).state is State.QUEUED

    def test_whoever_seals_does_not_wait_for_the_dead(self, store):
        documents(store).meta.update_one(
            {"_id": "control"}, {"$set": {"busy.dead": {"at": store.now() - 60 * 1_000_000, "session": None}}}
        )
        store.seal(Seal(target="there"))
        assert store.sealed() is not None


class TestOneStepWithTransactions:
    def test_a_firing_that_was_cut_short_left_nothing(self, on_replica_set, crash_at):
        store = on_replica_set
        before = add_schedule(store)
        crash_at("fire.before_commit")
        with pytest.raises(Crash):
            fire(store, now=T0 + MINUTE)
        assert (all_jobs(store), read_schedule(store)) == ([], before)
        assert documents(store).schedules.find_one({"outbox": {"$exists": True}}) is None

    def test_a_removed_job_leaves_no_tombstone(self, on_replica_set):
        store = on_replica_set
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        succeed(store, claim_one(store, now=T0 + MINUTE), now=T0 + MINUTE, keep=False)
        assert documents(store).jobs.count_documents({}) == 0


class TestPlans:
    """What is asked often goes by an index, and looks at little more than it gives."""

    @pytest.fixture(autouse=True)
    def _many(self, store):
        store.add_jobs([a_job(queue="many", priority=n % 3) for n in range(1_000)], now=T0)
        store.add_jobs([a_job(queue="other", delay=DAY) for n in range(500)], now=T0)
        store.edit_schedules([new_schedule(f"s{n}", trigger=f"every {n + 1}m") for n in range(200)], now=T0)

    @pytest.mark.parametrize("queues", [["many"], ["many", "other", "none"]])
    def test_a_claim_reads_what_it_takes(self, store, queues):
        space = documents(store)
        these = {"$in": queues} if len(queues) > 1 else queues[0]
        found = space.jobs.find({"state": "queued", "queue": these}).sort([("priority", -1), ("seq", 1)]).limit(10)
        self._is_cheap(found.explain(), 10, "ready")

    def test_what_is_due_is_found_by_its_time(self, store):
        found = documents(store).schedules.find({"due_at": {"$lte": T0 + 5 * MINUTE}}).sort([("due_at", 1), ("_id", 1)])
        self._is_cheap(found.explain(), 5, "due")

    def test_a_list_by_schedule_reads_what_it_shows(self, store):
        fire(store, "s0", now=T0 + MINUTE)
        where = JobFilter(schedule_id="s0")
        self._is_cheap(self._listed(store, where).explain(), 1, "made")

    def test_a_list_by_key_reads_what_it_shows(self, store):
        add_job(store, key="k")
        self._is_cheap(self._listed(store, JobFilter(key="k")).explain(), 1, "key")

    def _listed(self, store, where):
        return documents(store).jobs.find(conditions(where, None)).sort("seq", -1)

    def _is_cheap(self, explained, expected, index):
        stats = explained["executionStats"]
        assert index in str(explained["queryPlanner"]["winningPlan"])
        assert "COLLSCAN" not in str(explained["queryPlanner"]["winningPlan"])
        assert stats["nReturned"] == expected
        assert stats["totalDocsExamined"] <= expected + 5


def test_a_client_from_before_a_fork_is_refused(store, monkeypatch):
    """A client of the caller's is not ours to open again."""
    monkeypatch.setattr(store._connection, "_pid", -1)
    with pytest.raises(StoreError, match="give the child process one of its own"):
        store.now()


class TestAfterAFork:
    @pytest.mark.usefixtures("impatient")
    def test_a_server_that_was_away_at_the_first_call_is_found_by_the_next(self, own_server):
        with opened(lambda: MongoStore(own_server.url())) as store:
            own_server.kill()
            store.after_fork()
            for _ in range(2):
                with pytest.raises(StoreUnavailable, match="does not answer"):
                    store.now()
            own_server.start()
            assert in_the_end(lambda: store.add_jobs([a_job()]))

    def test_threads_that_make_the_first_call_at_once_open_it_once(self, store):
        store.after_fork()
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda _: store._connection.client, range(8)))
        assert len({id(client) for client in found}) == 1

    def test_a_store_that_was_closed_stays_closed(self, store):
        store.after_fork()
        store.close()
        with pytest.raises(StoreUnavailable, match="is closed"):
            store.now()


def test_firing_many_schedules_is_a_handful_of_writes(store):
    """However many are due, they are looked up, written and delivered together."""
    store.edit_schedules([new_schedule(f"s{n}") for n in range(100)], now=T0)
    seen: list[str] = []
    due = store.due_schedules(100, now=T0 + MINUTE)
    firings = [plan(schedule, due.now, fresh_id) for schedule in due.schedules]

    class Counting(pymongo.monitoring.CommandListener):
        def started(self, event):
            seen.append(event.command_name)

        def succeeded(self, event):
            pass

        def failed(self, event):
            pass

    with (
        pymongo.MongoClient(store._connection._url, event_listeners=[Counting()], socketTimeoutMS=8_000) as client,
        opened(lambda: MongoStore(client, namespace=store.namespace)) as counted,
    ):
        seen.clear()
        fired = counted.fire(firings, now=T0 + MINUTE)
    assert all(answer.is_accepted and len(answer.jobs) == 1 for answer in fired)
    assert len(seen) < 15, seen
