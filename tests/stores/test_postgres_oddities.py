"""What only PostgreSQL has: servers that restart, freeze and refuse, rows spoiled by hand, other people's locks."""
# ruff: noqa: S608 - the names in the statements are the tests' own

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from uuid import uuid4

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from rota import App, failpoints
from rota.errors import BadStoreUrl, StoreError, StoreUnavailable
from rota.store.postgres import PostgresStore
from rota.testing.servers.postgres import PASSWORD, shared_server, shared_url
from rota.testing.servers.process import free_port
from rota.testing.store_suite.builders import MINUTE, T0, WORKER, a_job, a_line
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.notify import is_woken, listener_on
from rota.testing.store_suite.rivals import in_threads
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
    planned,
    read,
    read_schedule,
    running_job,
    succeed,
)
from stores.outages import in_the_end
from stores.postgres_stage import *  # noqa: F403 - its fixtures
from stores.postgres_stage import own_server

IMPATIENT = 1.0  # seconds


@contextmanager
def a_place(server, *, has_own_pool):
    """What a store is given: an address, or a pool of the caller's."""
    if not has_own_pool:
        yield server.url()
        return
    with ConnectionPool(server.url(), min_size=1, max_size=8) as pool:
        yield pool


class TestServersThatGoAway:
    @pytest.mark.parametrize("has_own_pool", [False, True])
    def test_a_restart_between_two_calls_costs_nothing(self, namespace, has_own_pool):
        """The old links are found dead before anything is sent on them, however many there are."""
        with (
            own_server() as server,
            a_place(server, has_own_pool=has_own_pool) as place,
            opened(partial(PostgresStore, place, namespace=namespace)) as store,
            ThreadPoolExecutor(4) as callers,
        ):
            made = [*callers.map(lambda _: add_job(store), range(40))]
            server.restart()
            assert sum(map(len, callers.map(lambda job_id: store.get_jobs([job_id]), made))) == len(made)
            assert {job.id for job in claim(store, 50)} == set(made)
            check_store(store)

    def test_what_was_accepted_survives_a_killed_server(self, namespace):
        with own_server() as server, opened(partial(PostgresStore, server.url(), namespace=namespace)) as store:
            made = add(store, *[a_job() for _ in range(50)])
            server.kill()
            with pytest.raises(StoreUnavailable):
                claim(store)
            server.start()
            assert ids(in_the_end(lambda: claim(store, 100))) == made
            check_store(store)

    def test_a_frozen_server_is_given_up_in_time(self, namespace):
        with own_server() as server:
            store = PostgresStore(server.url(), namespace=namespace, timeout=IMPATIENT)
            store.open()
            with closing(store):
                kept = add_job(store)
                server.freeze()
                begun = time.monotonic()
                with pytest.raises(StoreUnavailable, match="did not answer within 1 s"):
                    store.get_jobs([kept])
                with pytest.raises(StoreUnavailable):  # and so is the attempt to reconnect
                    store.get_jobs([kept])
                assert time.monotonic() - begun < 15
                server.thaw()
                assert ids(in_the_end(partial(claim, store))) == [kept]

    def test_a_listener_hears_again_after_a_restart(self, namespace):
        with (
            own_server() as server,
            opened(partial(PostgresStore, server.url(), namespace=namespace)) as store,
            listener_on(store, "jobs") as listener,
        ):
            assert is_woken(listener, lambda: add_job(store))
            server.restart()
            assert listener.wait(20)  # the line is up again: something may have been missed
            in_the_end(lambda: claim(store, 100))
            while listener.wait(0.5):
                pass
            assert is_woken(listener, lambda: in_the_end(lambda: add_job(store)))

    def test_a_worker_goes_on_after_a_restart(self, namespace):
        with own_server() as server:
            app = App(server.url(), namespace=namespace)
            task = app.task(len, name="count")
            with app.running(scheduler=False):
                assert task.enqueue("abc").result("20s") == 3
                server.restart()
                job = in_the_end(lambda: task.enqueue("abcd"))
                assert in_the_end(lambda: job.result("30s")) == 4
            app.close()


class TestRefusedConnections:
    @pytest.mark.parametrize(
        ("spoil", "error", "words"),
        [
            (lambda url: url.replace(PASSWORD, "not-it"), BadStoreUrl, "refused the login"),
            (lambda url: url.rpartition("/")[0] + "/nowhere", BadStoreUrl, "does not exist"),
            (lambda url: url.replace("rota:", "nobody:"), BadStoreUrl, "refused the login"),
            (lambda _: f"postgresql://rota:{PASSWORD}@127.0.0.1:{free_port()}/rota", StoreUnavailable, "refused"),
            (lambda _: f"postgresql://rota:{PASSWORD}@host.invalid/rota", StoreUnavailable, "out of reach"),
        ],
        ids=["password", "database", "user", "port", "host"],
    )
    def test_a_wrong_address_is_reported_without_its_secret(self, spoil, error, words):
        store = PostgresStore(spoil(shared_server().url()))
        with pytest.raises(error, match=words) as raised:
            store.open()
        assert PASSWORD not in str(raised.value)
        assert PASSWORD not in store.describe()

    def test_a_store_that_failed_to_open_can_be_opened_later(self, namespace):
        with own_server() as server:
            store = PostgresStore(server.url(), namespace=namespace)
            server.stop()
            with pytest.raises(StoreUnavailable):
                store.open()
            server.start()
            in_the_end(store.open)
            add_job(store)
            store.close()

    def test_a_closed_store_says_so(self, make_store):
        store = make_store()
        with pytest.raises(StoreUnavailable, match="closed"):
            store.now()

    def test_a_pool_from_before_a_fork_is_refused(self, store, monkeypatch):
        """A pool of the caller's is not ours to open again."""
        monkeypatch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(StoreError, match="give the child process a pool of its own"):
            store.now()
        monkeypatch.undo()


class TestReadOnly:
    @pytest.fixture
    def reader(self, sql):
        """A role for which every transaction is read-only."""
        name = f"r{uuid4().hex[:12]}"
        sql(f"CREATE ROLE {name} LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
        sql(f"ALTER ROLE {name} SET default_transaction_read_only = on")
        yield shared_url().replace("rota:", f"{name}:", 1)
        sql(f"DROP ROLE {name}")

    def test_a_read_only_server_cannot_be_migrated(self, reader, namespace):
        with pytest.raises(StoreUnavailable, match=r"read-only.*primary"):
            PostgresStore(reader, namespace=namespace).open()

    def test_a_read_only_server_can_be_read(self, reader, store, namespace):
        job_id = add_job(store)
        with opened(partial(PostgresStore, reader, namespace=namespace)) as other:
            assert ids(all_jobs(other)) == [job_id]
            for write in (lambda: add_job(other), lambda: claim(other), lambda: add_schedule(other)):
                with pytest.raises(StoreUnavailable, match="read-only"):
                    write()


class TestSpoiledRows:
    def test_a_spoiled_schedule_is_shown_and_the_others_fire(self, store, namespace, sql):
        add_schedule(store, "spoiled")
        add_schedule(store, "sound")
        sql(f"UPDATE {namespace}.schedule SET spec = 'garbage' WHERE id = 'spoiled'")
        assert len(fire_due(store, now=T0 + MINUTE)) == 1
        assert "cannot be read" in (read_schedule(store, "spoiled").problem or "")
        assert [schedule.id for schedule in store.list_schedules().items] == ["sound", "spoiled"]
        assert store.due_schedules(9, now=T0 + MINUTE).schedules == []

    def test_a_spoiled_note_on_the_last_run_is_replaced(self, store, namespace, sql):
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        sql(f"UPDATE {namespace}.schedule SET last = '[' WHERE id = 'tick'")
        succeed(store, claim_one(store, now=T0 + MINUTE), now=T0 + MINUTE)
        assert read_schedule(store).last.status == "succeeded"

    def test_a_job_with_a_spoiled_payload_fails_with_the_reason(self, namespace, sql):
        app = App(shared_url(), namespace=namespace)
        task = app.task(len, name="count")
        app.open()
        job = task.enqueue("abc")
        sql(f"UPDATE {namespace}.job SET payload = '\\xff00'::bytea")
        after = task.enqueue("abcd")
        with app.running(scheduler=False):
            assert after.result("20s") == 4
        assert app.jobs.get(job.id).state == "failed"
        app.close()

    def test_a_place_without_a_job_does_not_stop_a_claim(self, make_store, namespace, sql):
        with opened(make_store) as store:
            kept = add_job(store)
            sql(f"INSERT INTO {namespace}.ready (seq, run_at, rank, queue) VALUES (0, 0, -100, 'default')")
            assert ids(claim(store, 9)) == [kept]

    def test_text_with_a_nul_is_kept_with_a_sign_for_it(self, store):
        job = running_job(store)
        store.append_logs([a_line(job.id, "a\x00b")])
        store.record_progress(WORKER, [(job.id, job.lease_no, "1\x002")])
        store.request_cancels([job.id], "c\x00d")
        assert store.list_logs(job.id)[0].text == "a\u2400b"
        assert (read(store, job.id).progress, read(store, job.id).cancel_reason) == ("1\u24002", "c\u2400d")


class TestOtherPeoplesLocks:
    def test_a_process_stopped_in_a_transaction_does_not_stop_the_others(self, make_store):
        """Its transaction is ended by the server, and it learns that when it wakes up."""
        stopped, go_on = threading.Event(), threading.Event()

        def stop(name):
            if name == "fire.before_commit" and threading.current_thread().name == "frozen":
                stopped.set()
                go_on.wait(30)

        def fire_slowly():
            try:
                frozen.fire([firing], now=T0 + 2 * MINUTE)
            except StoreUnavailable as err:
                errors.append(err)

        errors = []
        failpoints.install(stop)
        try:
            with (
                opened(partial(make_store, timeout=IMPATIENT)) as frozen,
                opened(partial(make_store, timeout=20)) as other,
            ):
                add_schedule(other)
                firing = planned(other, now=T0 + 2 * MINUTE)  # of two occurrences, which takes a transaction
                thread = threading.Thread(target=fire_slowly, name="frozen")
                thread.start()
                assert stopped.wait(20)
                assert fire(other, now=T0 + 2 * MINUTE).jobs != []
                go_on.set()
                thread.join()
                assert len(errors) == 1
                assert len(all_jobs(other)) == 1
        finally:
            failpoints.install(None)

    def test_a_claim_passes_over_what_another_has_locked(self, store, namespace):
        first, second = add(store, a_job(), a_job())
        with psycopg.connect(shared_url()) as other:
            other.execute(f"SELECT FROM {namespace}.ready WHERE seq = {read(store, first).seq} FOR UPDATE")
            assert ids(claim(store, 2)) == [second]
            other.rollback()
        assert ids(claim(store, 2)) == [first]

    @pytest.mark.parametrize("queues", [("a",), ("a", "b"), ("b", "c", "a")], ids=str)
    def test_rivals_who_want_less_than_there_is_leave_the_rest_to_each_other(self, store, queues):
        made = add(store, *[a_job(queue=queues[n % len(queues)], priority=n % 3) for n in range(90)])

        def take(handle, number):
            return ids(claim(handle, 10, queues=queues, holder=f"rival-{number}"))

        taken = in_threads(take, [store] * 8)
        assert [len(mine) for mine in taken] == [10] * 8
        assert len({job_id for mine in taken for job_id in mine}) == 80 < len(made)
