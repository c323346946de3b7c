"""app.lock: one owner at a time, token-checked and fenced."""

from __future__ import annotations

import logging
import threading

import pytest

from app.steps import PATIENCE
from rota import BadDuration, BadName, LockHeld, LockLost, Refused


def test_a_lock_has_one_owner_at_a_time(app):
    with app.lock("reindex"):
        with pytest.raises(LockHeld, match="lock 'reindex' is held by somebody else; wait="):
            app.lock("reindex").__enter__()
        assert app.lock("reindex").acquire() is False
        with app.lock("another"):
            pass
    with app.lock("reindex"):
        pass


def test_a_lock_holds_across_apps_on_one_store(make_app):
    one, two = make_app(name="one"), make_app(name="two")
    with one.lock("reindex"):
        assert two.lock("reindex").acquire() is False
    assert two.lock("reindex").acquire() is True


def test_the_fence_rises_with_every_owner(app, clock):
    fences = []
    for _ in range(3):
        with app.lock("reindex") as lock:
            fences.append(lock.fence)
    lost = app.lock("reindex", ttl="10s")
    assert lost.acquire()
    fences.append(lost.fence)
    clock.skip(11)
    with app.lock("reindex") as lock:
        fences.append(lock.fence)
    assert fences == sorted(set(fences))
    assert fences[0] > 0


def test_a_lock_that_is_extended_is_kept(app, clock):
    with app.lock("reindex", ttl="10s") as lock:
        for _ in range(5):
            clock.skip(9)
            lock.extend()
        clock.skip(9)
        assert app.lock("reindex").acquire() is False


def test_a_lock_that_was_not_extended_in_time_is_lost_and_that_is_told(app, clock, caplog):
    lock = app.lock("reindex", ttl="10s")
    assert lock.acquire()
    clock.skip(11)
    thief = app.lock("reindex")
    assert thief.acquire()
    with pytest.raises(LockLost, match="was not extended in time and may belong to somebody else now; stop"):
        lock.extend()
    with caplog.at_level(logging.WARNING, "rota.lock"):
        assert lock.release() is False
    assert "lost before it was released" in caplog.text
    assert app.lock("reindex").acquire() is False  # the thief still has it
    assert thief.release() is True


def test_a_expired_lock_cannot_be_extended_though_nobody_took_it(app, clock):
    lock = app.lock("reindex", ttl="10s")
    assert lock.acquire()
    clock.skip(11)
    with pytest.raises(LockLost):
        lock.extend()


def test_an_error_inside_gives_the_lock_back(app):
    with pytest.raises(ZeroDivisionError), app.lock("reindex"):
        raise ZeroDivisionError
    assert app.lock("reindex").acquire()


def test_a_lock_may_be_waited_for(app):
    holder = app.lock("reindex")
    assert holder.acquire()
    got = threading.Event()
    waiting = threading.Event()

    def wait() -> None:
        lock = app.lock("reindex", wait="10s")
        waiting.set()
        with lock:
            got.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert waiting.wait(PATIENCE)
    assert not got.is_set()
    holder.release()
    assert got.wait(PATIENCE)
    waiter.join()


def test_many_threads_enter_one_after_the_other(app):
    inside, most, done = [], [], []

    def enter(number: int) -> None:
        with app.lock("reindex", wait="30s"):
            inside.append(number)
            most.append(len(inside))
            inside.remove(number)
        done.append(number)

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (sorted(done), set(most)) == (list(range(8)), {1})


def test_a_held_lock_is_a_refusal():
    assert issubclass(LockHeld, Refused)


@pytest.mark.parametrize("name", ["", "x" * 256, 5, None, "a\x00b", "\ud800"])
def test_a_lock_needs_a_name_of_text(app, name):
    with pytest.raises(BadName, match="use 1 to 255 characters"):
        app.lock(name)


@pytest.mark.parametrize("ttl", [60, "soon", "0s", None])
def test_a_lock_needs_a_time_to_live_with_a_unit(app, ttl):
    with pytest.raises(BadDuration, match="duration"):
        app.lock("reindex", ttl=ttl)
