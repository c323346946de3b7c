"""Signal handlers that raise in the middle of a call to a SQLite store."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from rota.store.contract import Added, JobFilter
from rota.store.sqlite import SqliteStore
from rota.store.sqlite.adding import GroupAdder
from rota.testing.store_suite.builders import a_job
from rota.testing.store_suite.checks import check_store
from stores.interrupts import interrupted_at, interrupted_everywhere

PATIENCE = 120.0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rota.db"


@pytest.fixture
def store(path):
    store = SqliteStore(path)
    store.open()
    yield store
    store.close()


def in_another_thread(act):
    """As a thread that waits for no lock of this one would do it."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(act).result(PATIENCE)


@pytest.mark.parametrize("number", [1, 2])
def test_a_write_that_is_interrupted_locks_nobody_out(store, path, number):
    store.add_jobs([a_job()])
    neighbour = SqliteStore(path)  # as another process has it
    neighbour.open()
    for _ in interrupted_everywhere(lambda: store.add_jobs([a_job() for _ in range(number)])):
        in_another_thread(lambda: store.add_jobs([a_job()]))
        neighbour.add_jobs([a_job()])
        store.add_jobs([a_job()])
    neighbour.close()
    check_store(store)


def test_a_read_that_is_interrupted_leaves_no_old_state_to_later_ones(store):
    for _ in interrupted_everywhere(store.list_queues):
        in_another_thread(lambda: store.add_jobs([a_job()]))
        (info,) = store.list_queues()
        assert info.counts == {"queued": store.count_jobs(JobFilter())}
    in_another_thread(store.close)
    store.open()
    assert len(store.list_queues()) == 1


def test_a_caller_that_is_interrupted_leaves_no_other_waiting():
    """Two others wait while it writes. One of them writes for both, whatever step of the first is interrupted."""
    with ThreadPoolExecutor(2) as pool:
        for step in count():
            adder, others = GroupAdder(write_nothing), []
            is_left = interrupted_at(step, lambda adder=adder, others=others: add_first(adder, pool, others))
            assert [len(other.result(PATIENCE)) for other in others] in ([], [1, 1])
            adder._add_jobs = write_nothing
            adder.add(a_job())
            assert (adder._writer, adder._waiting) == (None, [])
            if not is_left:
                break
    assert step > 10


def write_nothing(jobs):
    return [Added(job.id) for job in jobs]


def add_first(adder, pool, others):
    """Add a job; while it is written, two threads come that add one each."""

    def write(jobs):
        interrupt = sys.getprofile()
        sys.setprofile(None)
        adder._add_jobs = write_nothing
        others.extend(pool.submit(adder.add, a_job()) for _ in range(2))
        while len(adder._waiting) < len(others):
            pause.wait(0.001)
        sys.setprofile(interrupt)
        return write_nothing(jobs)

    pause = threading.Event()
    adder._add_jobs = write
    adder.add(a_job())
