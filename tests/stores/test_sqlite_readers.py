"""Reading from a SQLite store in the middle of another read, as a signal handler may."""

from __future__ import annotations

import itertools
import sys

import pytest

from rota.store.contract import JobFilter
from rota.store.sqlite import SqliteStore
from rota.testing.store_suite.builders import a_job


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "rota.db")
    store.open()
    yield store
    store.close()


def in_the_middle_of(read, act, *, statement=1):
    """Call `act` in this thread just before this statement of `read`, while `read` holds its connection."""
    seen, statements = [], itertools.count(1)

    def note(_frame, event, function):
        if event == "c_call" and function.__name__ == "execute" and next(statements) == statement:
            sys.setprofile(None)
            seen.append(act())

    sys.setprofile(note)
    try:
        outer = read()
    finally:
        sys.setprofile(None)
    return outer, seen


def test_a_signal_handler_may_read_while_its_thread_reads(store):
    store.add_jobs([a_job()])
    outer, (inner,) = in_the_middle_of(store.list_queues, store.list_queues)
    assert [info.counts for info in outer] == [info.counts for info in inner] == [{"queued": 1}]


def test_a_signal_handler_may_list_jobs_while_its_thread_lists_them(store):
    (job_id,) = (added.id for added in store.add_jobs([a_job()]))

    def shown():
        return [job.id for job in store.list_jobs(JobFilter()).items]

    assert in_the_middle_of(shown, shown, statement=2) == ([job_id], [[job_id]])


def test_a_handler_that_closes_the_store_leaves_the_read_of_its_thread_alone(store):
    store.add_jobs([a_job()])
    outer, _ = in_the_middle_of(store.list_queues, store.close)
    assert [info.counts for info in outer] == [{"queued": 1}]
    assert [info.counts for info in store.list_queues()] == [{"queued": 1}] if store.open() is None else False
