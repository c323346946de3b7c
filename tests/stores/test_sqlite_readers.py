"""Reading from a SQLite store in the middle of another read, as a signal handler may."""

from __future__ import annotations

import sys

import pytest

from rota.store.sqlite import SqliteStore
from rota.testing.store_suite.builders import a_job


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "rota.db")
    store.open()
    yield store
    store.close()


def in_the_middle_of(read, act):
    """Call `act` in this thread just before the first statement of `read`, while `read` holds its connection."""
    seen = []

    def note(_frame, event, function):
        if event == "c_call" and function.__name__ == "execute":
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
