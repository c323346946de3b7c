"""Leases run by a clock that nobody can set: the wall clock may jump, and no lease lives or dies by it."""

from __future__ import annotations

import sqlite3
import threading

import pytest
from kill_harness import wait_until

from rota.engine.heartbeat import Heartbeat
from rota.model.jobs.settle import rescue
from rota.store.contract import Exchange
from rota.store.sqlite import SqliteStore
from rota.store.sqlite import clock as clock_module
from rota.store.sqlite.clock import lease_now, wall_now
from rota.testing.store_suite.builders import a_job

SECOND = 1_000_000
DAY = 86_400 * SECOND


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "rota.db")
    store.open()
    yield store
    store.close()


@pytest.fixture
def move_wall(monkeypatch):
    """Have the store's wall clock stand so far from the true one."""
    return lambda by: monkeypatch.setattr(clock_module, "wall_now", lambda: wall_now() + by)


@pytest.fixture
def move_leases(monkeypatch):
    def move(by, boot=None):
        def moved(injected):
            at, true_boot = lease_now(injected)
            return at + by, boot or true_boot

        monkeypatch.setattr(clock_module, "lease_now", moved)

    return move


def claimed(store, lease_for):
    store.add_jobs([a_job(id="job")])
    (job,) = store.exchange(Exchange(holder="ann", want=1, lease_for=lease_for)).claimed
    return job


@pytest.mark.parametrize("jump", [DAY, -DAY, 400 * DAY, -400 * DAY])
def test_a_wall_clock_that_jumps_ends_no_lease(store, move_wall, jump):
    job = claimed(store, 60 * SECOND)
    move_wall(jump)
    assert store.expired_jobs(10) == []
    assert [refusal.why for refusal in store.rescue_jobs([rescue(job, store.now())])] == ["lease"]
    assert store.extend_leases("ann", [("job", job.lease_no)], 60 * SECOND).lost == []
    move_wall(0)
    assert store.expired_jobs(10) == []
    assert store.get_jobs(["job"])[0].deaths == 0


@pytest.mark.parametrize("jump", [0, DAY, -DAY])
def test_a_lease_runs_out_by_its_own_clock_wherever_the_wall_clock_stands(store, move_wall, move_leases, jump):
    job = claimed(store, 60 * SECOND)
    move_wall(jump)
    move_leases(59 * SECOND)
    assert store.expired_jobs(10) == []
    move_leases(61 * SECOND)
    assert [expired.id for expired in store.expired_jobs(10)] == ["job"]
    assert store.rescue_jobs([rescue(job, store.now())]) == []
    assert store.extend_leases("ann", [("job", job.lease_no)], 60 * SECOND).lost == ["job"]


def test_an_extension_counts_from_the_lease_clock(store, move_wall, move_leases):
    job = claimed(store, 60 * SECOND)
    move_wall(-DAY)
    move_leases(50 * SECOND)
    assert store.extend_leases("ann", [("job", job.lease_no)], 60 * SECOND).lost == []
    move_wall(DAY)
    move_leases(109 * SECOND)
    assert store.expired_jobs(10) == []
    move_leases(111 * SECOND)
    assert [expired.id for expired in store.expired_jobs(10)] == ["job"]


def test_a_lease_of_an_earlier_boot_is_void(store, move_leases):
    job = claimed(store, 60 * SECOND)
    move_leases(-10_000 * SECOND, boot="another boot")
    assert [expired.id for expired in store.expired_jobs(10)] == ["job"]
    assert store.rescue_jobs([rescue(job, store.now())]) == []


def test_a_lease_runs_out_while_the_wall_clock_stands_still(store, monkeypatch):
    stopped_at = wall_now()
    monkeypatch.setattr(clock_module, "wall_now", lambda: stopped_at)
    claimed(store, SECOND // 10)
    wait_until(lambda: store.expired_jobs(10), "the end of the lease")
    assert store.now() == stopped_at


def test_a_beat_that_had_to_wait_does_not_set_its_nodes_clock_back(ground):
    store = ground.store
    with ground.app.running(worker=False, scheduler=False) as node:
        heartbeat = next(one for one in node.services if isinstance(one, Heartbeat))
        heartbeat.turn()
        other = sqlite3.connect(store.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        begun_at = store.now()
        beat = threading.Thread(target=heartbeat.turn)
        beat.start()
        wait_until(lambda: store.now() > begun_at + SECOND, "the lock to have been held for a while")
        other.execute("COMMIT")
        other.close()
        beat.join()
        assert store.now() - node.clock.now() < SECOND // 2
