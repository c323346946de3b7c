"""Signal handlers that raise in the middle of a call to a SQLite store, as Ctrl-C and time limits do, at every step."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from rota.store.contract import JobFilter
from rota.store.sqlite import SqliteStore
from rota.testing.store_suite.builders import a_job
from rota.testing.store_suite.checks import check_store

PATIENCE = 120.0
STEPS = {"call", "c_return"}  # Python runs signal handlers before the first step of a function, and after a call


class Interrupt(BaseException):
    """What the handler raises."""


def interrupted_at(step, act):
    """Raise at this step of `act`; whether it had so many."""
    steps = count()

    def interrupt(_frame, event, _argument):
        if event in STEPS and next(steps) == step:
            sys.setprofile(None)
            raise Interrupt

    sys.setprofile(interrupt)
    try:
        act()
    except Interrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


def interrupted_everywhere(act):
    """Interrupt `act` at each of its steps, one after another."""
    for step in count():
        if not interrupted_at(step, act):
            assert step > 10
            return
        yield step


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
