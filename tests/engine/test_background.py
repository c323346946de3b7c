"""BackgroundThread: a thread beside its owner's own work."""

from __future__ import annotations

import threading

import pytest

from rota.background import BackgroundThread


def test_the_owner_goes_on_while_the_call_waits():
    gate = threading.Event()
    with BackgroundThread() as background:
        future = background.begin(lambda: gate.wait(30))
        assert not future.is_done  # it has begun, and the owner is here
        gate.set()
        assert future.result() is True


def test_a_call_has_begun_when_begin_comes_back():
    seen = []
    gate = threading.Event()

    def call():
        seen.append(threading.current_thread().name)
        gate.wait(30)

    with BackgroundThread() as background:
        for _ in range(20):
            gate.clear()
            future = background.begin(call)
            gate.set()
            future.result()
    assert set(seen) == {"rota-background"}


def test_its_errors_are_the_owners():
    def fail():
        raise ValueError("no")

    with BackgroundThread() as background:
        future = background.begin(fail)
        with pytest.raises(ValueError, match="no"):
            future.result()


def test_what_was_begun_is_done_when_it_is_left():
    done = []
    gate = threading.Event()

    def call():
        gate.wait(30)
        done.append(1)

    with BackgroundThread() as background:
        background.begin(call)
        gate.set()
    assert done == [1]
