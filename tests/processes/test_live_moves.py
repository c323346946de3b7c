"""Moves of a live system: nodes work on both stores, others enqueue, movers are killed; all of it is done once."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from itertools import cycle, pairwise

import pytest
from kill_checks import check_all
from kill_harness import HERE, Child, Ground, wait_until
from killable_app import put_schedules

from every_store import SERVED, fresh_place
from rota.errors import StoreSealed
from rota.model.jobs.job import history_of

SERVERS = tuple(kind for kind in ("redis", "postgres", "mongo") if kind in SERVED)
RING = list(pairwise(("sqlite", *SERVERS, "sqlite")))  # each store is once left and once filled
LEASE = "10s"  # so long that none runs out on a crowded machine: then a job that ran twice is a job done twice

KILLS = [  # each on another pair of stores
    ("target.sealing", 1),
    ("wait", 1),
    ("copy", 1),
    ("copy", 9),
    ("check", 3),
    ("target.opening", 1),
]
KILLS_IN_SQLITE = [("load.before_commit", 3), ("load.after_commit", 3)]


class Move:
    """Two stores, one folder for the notes of all who work on them, and the process that moves one to the other."""

    def __init__(self, folder, kinds):
        places = []
        for number, kind in enumerate(kinds):
            home = folder / f"store-{number}"
            home.mkdir()
            places.append(fresh_place(kind, home))
        self.source, self.target = (Ground(folder, place, LEASE) for place in places)
        self._words = [word for place in places for word in (place.url, place.namespace)]
        self._movers = []

    def start(self, *words):
        self._movers.append(Child([str(HERE / "moving_child.py"), *self._words, *map(str, words)], HERE, LEASE))
        return self._movers[-1]

    def check(self):
        """Everything was done once: in the target, whatever was begun in the source."""
        assert self.source.store.sealed().is_done
        jobs = check_all(self.target)
        runs = Counter(job_id for job_id, _ in self.target.runs())
        assert [history_of(job) for job in jobs if job.deaths and job.task != "gated"] == []
        assert [history_of(job) for job in jobs if runs[job.id] > job.attempts + job.deaths] == []
        return jobs

    def close(self):
        for process in (*self._movers, self.source, self.target):
            process.close()


@pytest.fixture
def live(request, tmp_path):
    made = Move(tmp_path, getattr(request, "param", RING[0]))
    yield made
    made.close()


on_every_store = pytest.mark.parametrize("live", RING, ids=" to ".join, indirect=True)


class Enqueuer(threading.Thread):
    """Brings jobs until the store says that it was moved."""

    def __init__(self, ground):
        super().__init__(daemon=True)
        self._ground = ground
        self.told = ""

    def run(self):
        try:
            while True:
                self._ground.enqueue("quick", count=3)
                self._ground.enqueue("flaky")
        except StoreSealed as err:
            self.told = str(err)


def end(*children):
    for child in children:
        child.signal(signal.SIGTERM)
    for child in children:
        assert child.end() == 0, child.output


@on_every_store
def test_a_live_system_is_moved_and_everything_is_done_once(live):
    put_schedules(live.source.app, seconds=6)
    live.source.enqueue("slow", 1.0, count=3)
    nodes = [live.source.start("node", concurrency=4) for _ in range(2)]
    early = live.target.start("node", concurrency=4)  # started too soon: it waits until all is there
    early.wait_for("node.started")
    enqueuer = Enqueuer(live.source)
    enqueuer.start()
    wait_until(lambda: len(live.source.runs()) > 50, "some work")
    assert live.start().end() == 0
    enqueuer.join(60)
    assert "is being copied to" in enqueuer.told
    live.target.enqueue("quick", count=5)
    wait_until(live.target.is_done, "the end of all work")
    end(*nodes, early)
    jobs = live.check()
    assert len(jobs) > 60
    assert [node.has_said("store.moved") for node in nodes] == [True, True]


@pytest.mark.parametrize(
    ("kill", "live"),
    list(zip(KILLS, cycle(RING), strict=False)),
    ids=lambda words: " ".join(map(str, words)),
    indirect=["live"],
)
def test_a_mover_that_is_killed_anywhere_goes_on(live, kill):
    kill_and_go_on(live, *kill)


@pytest.mark.parametrize("kill", KILLS_IN_SQLITE, ids=lambda kill: f"{kill[0]}-{kill[1]}")
def test_a_mover_that_is_killed_in_a_transaction_goes_on(tmp_path, kill):
    live = Move(tmp_path, ("sqlite", "sqlite"))
    try:
        kill_and_go_on(live, *kill)
    finally:
        live.close()


def kill_and_go_on(live, point, nth):
    put_schedules(live.source.app, seconds=2)
    live.source.enqueue("slow", 1.0, count=2)
    node = live.source.start("node", concurrency=2)
    node.wait_for("node.started")
    live.source.enqueue("quick", count=40)
    live.source.enqueue("flaky", count=5)
    wait_until(lambda: len(live.source.runs()) > 5, "some work")
    victim = live.start(point, nth)
    assert victim.end() == -signal.SIGKILL, victim.output
    with pytest.raises(StoreSealed):
        live.source.enqueue("quick")
    if point != "target.sealing":
        with pytest.raises(StoreSealed):
            live.target.enqueue("quick")
    mover = live.start()
    assert mover.end() == 0, mover.output
    end(node)
    live.target.finish()
    live.check()


def test_a_job_that_outlives_the_wait_starts_anew_in_the_other_store(live):
    """Its first worker goes on for a while, and what it reports is refused."""
    (long,) = live.source.enqueue("gated", "gate")
    node = live.source.start("node", concurrency=2)
    wait_until(lambda: live.source.runs_of(long) == [1], "the job to begin")
    mover = live.start("wait", 10**9)
    live.source.freeze(node)  # it says nothing any more, and its lease runs out
    assert mover.end() == 0, mover.output
    assert live.target.job(long).deaths == 1
    node.signal(signal.SIGCONT)
    live.source.open_gate()
    live.target.finish()
    end(node)
    assert live.target.runs_of(long) == [1, 2]
    assert live.source.job(long).state == "queued"
    live.check()
