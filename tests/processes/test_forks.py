"""An app that was used before a fork opens its store again by itself in the child, and the parent's goes on."""

from __future__ import annotations

import os
import threading
import traceback

import pytest

from every_store import DURABLE, fresh_place
from rota import App
from rota.store.urls import store_from_url


@pytest.fixture(params=DURABLE)
def app(request, tmp_path):
    place = fresh_place(request.param, tmp_path)
    app = App(store_from_url(place.url, namespace=place.namespace))
    app.task(name="note")(print)
    yield app
    app.close()


def enqueue(app, word):
    return app.registry.get("note").enqueue(word).id


def in_child(work):
    """Do this in a forked process; its exit code."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:  # noqa: BLE001 - nothing of the test may go on in the child
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


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
    bell = app.open().listen("jobs")

    def work():
        with app.running(scheduler=False) as node:
            app.registry.get("note").enqueue("in the child").result("60s")
            assert node.worker.is_idle.wait(60)

    assert in_child(work) == 0
    bell.close()
    assert [job.state for job in app.open().get_jobs([enqueue(app, "after")])] == ["queued"]


def test_a_fork_in_the_middle_of_a_write_of_another_thread(app):
    """The lock that the other thread holds is not held in the child."""
    enqueue(app, "before")
    stop = threading.Event()

    def write():
        while not stop.is_set():
            enqueue(app, "beside")

    other = threading.Thread(target=write)
    other.start()
    try:
        codes = [in_child(lambda: enqueue(app, "in the child")) for _ in range(3)]
    finally:
        stop.set()
        other.join()
    assert codes == [0, 0, 0]
