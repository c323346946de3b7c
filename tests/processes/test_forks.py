"""An app that was used before a fork opens its store again by itself in the child, and the parent's goes on."""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import threading
from concurrent.futures import ThreadPoolExecutor
from threading import get_ident
from weakref import WeakKeyDictionary

import pytest
from forking import Turns, exit_code, fork, in_child

from every_store import DURABLE, fresh_place
from rota import App
from rota.app import internals
from rota.errors import StoreError, StoreReplaced
from rota.store.shared import forks
from rota.store.sqlite import SqliteStore, connection, file_identity
from rota.store.urls import store_from_url


@pytest.fixture(params=DURABLE)
def place(request, tmp_path):
    return fresh_place(request.param, tmp_path)


@pytest.fixture
def app(place):
    app = App(store_from_url(place.url, namespace=place.namespace))
    app.task(name="note")(print)
    yield app
    app.close()


def enqueue(app, word):
    return internals(app).registry.get("note").enqueue(word).id


def test_both_go_on_after_a_fork(app):
    before = enqueue(app, "before")

    def work():
        job = enqueue(app, "in the child")
        assert [app.jobs.get(known).task for known in (before, job)] == ["note", "note"]
        app.close()

    assert [in_child(work), in_child(work)] == [0, 0]
    enqueue(app, "after")
    counts = [queue.counts for queue in app.open().list_queues()]
    assert sum(number for states in counts for number in states.values()) == 4


def test_a_child_runs_jobs_and_hears_of_new_ones(app):
    enqueue(app, "before")
    listener = app.open().listen("jobs")

    def work():
        with app.running(scheduler=False) as node:
            internals(app).registry.get("note").enqueue("in the child").result("60s")
            assert node.worker.is_idle.wait(60)

    assert in_child(work) == 0
    listener.close()
    assert [job.state for job in app.open().get_jobs([enqueue(app, "after")])] == ["queued"]


def test_coroutines_enqueue_in_a_child_as_they_did_before_the_fork():
    """The threads that call the store for them are not in the child."""
    app = App("memory://")
    app.task(name="note")(print)

    async def enqueue_twice():
        for _ in range(2):
            await internals(app).registry.get("note").aenqueue("a")

    asyncio.run(enqueue_twice())
    assert in_child(lambda: asyncio.run(enqueue_twice())) == 0
    asyncio.run(enqueue_twice())
    app.close()


def test_services_that_run_in_the_parent_can_be_started_in_a_child(tmp_path):
    app = App(f"sqlite:///{tmp_path}/rota.db")
    note = app.task(name="note")(print)

    def work():
        with app.running(scheduler=False):
            note.enqueue("in the child").result("60s")

    with app.running(scheduler=False):
        assert in_child(work) == 0
        note.enqueue("in the parent").result("60s")
    app.close()


def test_a_fork_that_python_does_not_know_of_is_refused_with_what_to_do(tmp_path):
    """uWSGI forks like this. An app that is opened afterwards works.

    It is tried in a child without other threads. If one waited for the interpreter, the raw fork would wait for ever.
    """

    def of_uwsgi():
        faulthandler.cancel_dump_traceback_later()  # its thread would be missing in the next child
        used, unused = (App(f"sqlite:///{tmp_path}/{name}.db") for name in ("used", "unused"))
        for app in (used, unused):
            app.task(name="note")(print)
        enqueue(used, "before")

        def work():
            for call in (lambda: enqueue(used, "refused"), used.jobs.list):
                with pytest.raises(StoreError, match="py-call-uwsgi-fork-hooks"):
                    call()
            enqueue(unused, "in the child")

        assert exit_code(fork(work, forking=ctypes.PyDLL(None).fork)) == 0
        assert [len(app.jobs.list().items) for app in (used, unused)] == [1, 1]
        used.close()
        unused.close()

    assert in_child(of_uwsgi) == 0


def write(app):
    enqueue(app, "beside")


def read(app):
    app.jobs.list(limit=20)


@pytest.mark.parametrize("use", [write, read])
def test_a_fork_while_another_thread_uses_the_store(app, use):
    """The lock that the other thread holds is not held in the child, and the other thread notices nothing."""
    enqueue(app, "before")
    stop, errors = threading.Event(), []

    def go_on():
        try:
            while not stop.is_set():
                use(app)
        except Exception as err:  # noqa: BLE001 - whatever it is, the test shows it
            errors.append(err)

    other = threading.Thread(target=go_on)
    other.start()
    try:
        codes = [in_child(lambda: enqueue(app, "in the child")) for _ in range(3)]
    finally:
        stop.set()
        other.join()
    assert (codes, errors) == ([0, 0, 0], [])


def test_processes_that_write_in_turn_do_not_take_each_other_for_a_restored_backup(app, monkeypatch):
    monkeypatch.setattr(file_identity, "RENEW", 0.0)
    enqueue(app, "before")

    def work():
        for word in ("one", "two", "three"):
            enqueue(app, word)

    for _ in range(2):
        assert in_child(work) == 0
        work()


def test_a_child_keeps_what_it_accepts_after_its_parent_has_closed(app, place):
    """Also while others come and go: SQLite deletes the -wal file when it believes that nobody else has it open."""
    enqueue(app, "before")
    child, parent = Turns(), Turns()

    def work():
        for word in ("one", "two", "three"):
            enqueue(app, word)
            parent.give()
            child.wait()

    pid = fork(work)
    parent.wait()
    app.close()
    found = []
    for _ in range(2):
        child.give()
        parent.wait()
        with place.opened() as store:
            found.append(sum(sum(queue.counts.values()) for queue in store.list_queues()))
    child.give()
    assert (exit_code(pid), found) == (0, [3, 4])


def test_a_parent_notices_that_its_file_was_replaced_during_a_fork(tmp_path):
    app = App(store_from_url(f"sqlite:///{tmp_path}/rota.db"))
    app.task(name="note")(print)
    enqueue(app, "before")
    assert in_child(lambda: None) == 0
    (tmp_path / "backup.db").write_bytes((tmp_path / "rota.db").read_bytes())
    (tmp_path / "backup.db").replace(tmp_path / "rota.db")
    with pytest.raises(StoreReplaced):
        enqueue(app, "refused")
    enqueue(app, "kept")
    assert len(app.jobs.list().items) == 2
    app.close()


def test_a_fork_during_a_read_that_does_not_end(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(connection, "LOCK_PATIENCE", 0.2)
    store = SqliteStore(tmp_path / "rota.db")
    store.open()
    with ThreadPoolExecutor(1) as other:
        for read in (store.list_queues, other.submit(store.list_queues).result):
            assert read() == []
        with store._database.read() as reading:
            assert in_child(store.list_queues) == 0
            assert reading.execute("SELECT 1").fetchone() == (1,)
        assert "was being read: close the store before a fork" in caplog.text
        for read in (store.list_queues, other.submit(store.list_queues).result):
            assert read() == []
    store.close()


class Holder(forks.Forked):
    """Hands out locks that note which thread took them and which released them."""

    def __init__(self):
        self.released = []

    def before_fork(self):
        return HeldLock(self, get_ident())

    def after_fork(self):
        pass


class HeldLock:
    def __init__(self, holder, taker):
        self._holder, self._taker = holder, taker

    def release(self):
        self._holder.released.append((self._taker, get_ident()))


def test_threads_that_fork_at_once_release_their_own_locks(monkeypatch):
    monkeypatch.setattr(forks, "_known", WeakKeyDictionary())
    holder = Holder()
    forks.register(holder)
    forks._before()
    with ThreadPoolExecutor(1) as other:
        other.submit(forks._before).result(60)
        forks._after_in_parent()
        assert holder.released == [(get_ident(), get_ident())]
        other.submit(forks._after_in_parent).result(60)
    (_, (taker, releaser)) = holder.released
    assert taker == releaser != get_ident()
