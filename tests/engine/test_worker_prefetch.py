"""How much a worker takes, how often it asks, and what wakes it."""

from __future__ import annotations

import threading

import pytest

from amounts import PATIENCE
from engine.stage import NOON
from rota.engine.worker.capacity import MOST_HELD, PREFETCH_FOR, WINDOW, PrefetchLimit
from rota.model.jobs.job import history_of
from rota.model.micros import SECOND


class Clock:
    """A clock that stands still until it is moved."""

    at = 100.0

    def __call__(self):
        return self.at


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def held_up(stage, gate):
    """A task that runs until the gate opens, and a count of how many have begun."""
    begun = threading.Semaphore(0)

    @stage.app.task(name="held.up")
    def hold() -> None:
        begun.release()
        gate.wait(PATIENCE)

    hold.begun = begun
    return hold


def test_at_first_a_worker_takes_what_its_slots_hold(clock):
    limit = PrefetchLimit(8, clock)
    assert [limit.room(held, 0) for held in (0, 3, 8)] == [8, 5, 0]
    clock.at += 60
    assert limit.room(0, 0) == 8


def test_a_worker_of_short_jobs_takes_what_ends_in_the_next_moment(clock):
    limit = PrefetchLimit(8, clock)
    for _ in range(100):
        limit.count_ended()
    clock.at += WINDOW
    assert limit.room(0, 0) == 8 + int(100 / WINDOW * PREFETCH_FOR)


def test_a_worker_never_holds_more_than_its_bound(clock):
    limit = PrefetchLimit(8, clock)
    for _ in range(1_000_000):
        limit.count_ended()
    clock.at += WINDOW
    assert limit.room(0, 0) == MOST_HELD


def test_a_worker_of_long_jobs_takes_only_what_its_slots_hold(clock):
    limit = PrefetchLimit(8, clock)
    for _ in range(20):
        clock.at += 5
        limit.count_ended()
        assert limit.room(8, 0) <= 0


def test_a_burst_is_forgotten_once_jobs_become_long(clock):
    limit = PrefetchLimit(8, clock)
    for _ in range(1_000):
        limit.count_ended()
    clock.at += 2 * WINDOW
    assert limit.room(0, 0) > 8
    clock.at += 1
    assert limit.room(8, 0) == 0


def test_stuck_slots_take_nothing(clock):
    limit = PrefetchLimit(3, clock)
    assert [limit.room(0, stuck) for stuck in range(5)] == [3, 2, 1, 0, 0]


def test_long_jobs_are_left_for_other_workers(stage, held_up):
    stage.app.enqueue_many([held_up.job() for _ in range(20)])
    one, other = stage.a_worker(concurrency=4), stage.a_worker(concurrency=4)
    for _ in range(3):
        one.turn()
        other.turn()
    assert (len(one.runs), len(other.runs)) == (4, 4)
    assert stage.states().count("queued") == 12


def test_what_cannot_begin_soon_is_in_excess(clock):
    limit = PrefetchLimit(8, clock)
    assert [limit.excess(waiting) for waiting in (0, 8, 9, 600)] == [0, 0, 1, 592]
    for _ in range(1_000):
        limit.count_ended()
    clock.at += 2 * WINDOW
    assert limit.excess(600) == 0
    clock.at += 1
    assert limit.excess(600) == 592


def test_what_was_claimed_when_jobs_were_short_is_given_back_when_they_are_long(stage, held_up):
    @stage.app.task
    def quick() -> None: ...

    one, other = stage.a_worker(concurrency=4), stage.a_worker(concurrency=4)
    stage.app.enqueue_many([quick.job() for _ in range(400)])
    stage.work_off(one)
    stage.app.enqueue_many([held_up.job() for _ in range(60)])
    stage.work_until(one, lambda: len(one.runs) > 20)
    stage.skip(2)
    stage.work_until(one, lambda: len(one.runs) == 8)
    assert stage.states().count("queued") == 52
    other.turn()
    assert len(other.runs) == 4
    (given, *_) = [job for job in stage.app.jobs.list(limit=200).items if job.state == "queued" and job.record.lease_no]
    assert history_of(given.record)[-1].reason == "the jobs before it take longer than expected"


def test_a_worker_takes_the_best_first_and_older_before_newer(stage):
    ran = []

    @stage.app.task
    def note(name: str) -> None:
        ran.append(name)

    for name, priority in (("a", 0), ("b", 5), ("c", -100), ("d", 5), ("e", 100)):
        note.using(priority=priority).enqueue(name)
    stage.work_off(stage.a_worker(concurrency=1))
    worker = stage.a_worker(concurrency=1)
    stage.work_until(worker, lambda: len(ran) == 5)
    stage.work_off(worker)
    assert ran == ["e", "b", "d", "a", "c"]


def test_a_worker_sees_several_queues_as_one_line(stage):
    ran = []

    @stage.app.task
    def note(name: str) -> None:
        ran.append(name)

    for name, queue, priority in (("a", "slow", 0), ("b", "fast", 0), ("c", "slow", 1), ("d", "other", 9)):
        note.using(queue=queue, priority=priority).enqueue(name)
    worker = stage.a_worker(concurrency=1, queues=("fast", "slow"))
    stage.work_until(worker, lambda: len(ran) == 3)
    stage.work_off(worker)
    assert ran == ["c", "a", "b"]


def test_a_slot_that_came_free_is_filled_in_the_same_call(any_stage):
    """What has ended needs no slot: a worker that reports an ending takes the next job with it."""
    ended = threading.Semaphore(0)

    @any_stage.app.task
    def work() -> None: ...

    worker = any_stage.a_worker(concurrency=1, poll=3600.0)
    report = worker.report

    def report_and_tell(run, outcome):
        report(run, outcome)
        ended.release()

    worker._host = worker._host._replace(done=report_and_tell)
    any_stage.app.enqueue_many([work.job() for _ in range(5)])
    worker.turn()
    for _ in range(5):
        worker.capacity.prefetch = PrefetchLimit(1)  # which has seen no short jobs
        assert ended.acquire(timeout=PATIENCE)
        worker.turn()
    assert any_stage.states() == ["succeeded"] * 5
    assert any_stage.store.calls["exchange"] == 6


# Idle.


def turned_for(stage, service, seconds):
    """Turn a service for a stretch of time, as its loop would: once, then after each pause. Counts the turns."""
    turns, passed = 0, 0.0
    while passed < seconds:
        pause = service.turn()
        turns += 1
        assert turns < 10_000, "it spins"
        stage.skip(pause)
        passed += pause
    return turns


def test_an_idle_worker_asks_only_as_often_as_it_polls(stage):
    worker = stage.a_worker()
    turned_for(stage, worker, 600)
    assert stage.store.calls["exchange"] <= 600 / 2 + 5
    assert worker.is_idle.is_set()


@pytest.mark.parametrize("early_by", [25_000, 625_000])
def test_an_idle_worker_wakes_a_moment_before_the_next_job_is_due(stage, monkeypatch, early_by):
    monkeypatch.setattr(stage, "monotonic", lambda: stage._skipped)  # no time passes but what is skipped
    ran = []

    @stage.app.task
    def note() -> None:
        ran.append(stage.still.time)

    worker = stage.a_worker(poll=60.0, early_by=early_by)
    note.using(delay="10s").enqueue()
    pauses = [worker.turn() for _ in range(3)]
    assert pauses[-1] == pytest.approx(10 - early_by * 0.9 / SECOND)
    stage.skip(pauses[-1])
    worker.turn()
    assert (stage.states(), ran) == (["running"], [])
    stage.skip(10 - pauses[-1])
    stage.work_off(worker)
    assert ran == [NOON + 10 * SECOND]


def test_a_worker_without_room_does_not_spin_while_jobs_are_overdue(stage, held_up):
    """Every slot is busy and more is due: only an ending changes anything, and that wakes the worker."""
    worker = stage.a_worker(concurrency=1)
    held_up.enqueue()
    held_up.using(delay="1s").enqueue()
    worker.turn()
    assert held_up.begun.acquire(timeout=PATIENCE)
    stage.skip(5)
    assert turned_for(stage, worker, 60) < 100


def test_an_idle_lease_keeper_asks_the_store_nothing(stage):
    keeper = stage.a_keeper(stage.a_worker())
    assert turned_for(stage, keeper, 600) <= 700
    assert stage.store.calls["extend_leases"] == 0


def test_a_busy_lease_keeper_looks_once_a_second_and_renews_every_ten(stage, held_up):
    worker = stage.a_worker()
    held_up.enqueue()
    worker.turn()
    assert held_up.begun.acquire(timeout=PATIENCE)
    turned_for(stage, stage.a_keeper(worker), 120)
    assert 100 <= stage.store.calls["extend_leases"] <= 125


def test_idle_upkeep_is_rare(stage):
    turned_for(stage, stage.a_rescuer(), 600)
    turned_for(stage, stage.a_pruner(), 600)
    assert stage.store.calls["expired_jobs"] <= 60
    assert stage.store.calls["prune"] <= 12


# Bells.


def test_a_new_job_wakes_a_waiting_worker(any_stage):
    @any_stage.app.task
    def work() -> None: ...

    worker = any_stage.a_worker()
    while worker.turn() == 0:
        pass
    woken = threading.Event()

    def wait() -> None:
        worker.wait(PATIENCE)
        woken.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    work.enqueue()
    assert woken.wait(PATIENCE / 2)
    waiter.join()
    any_stage.work_off(worker)
    assert any_stage.states() == ["succeeded"]


def test_an_ending_wakes_a_worker_that_waits_for_room(any_stage, gate):
    begun = threading.Event()

    @any_stage.app.task
    def hold() -> None:
        begun.set()
        gate.wait(PATIENCE)

    worker = any_stage.a_worker(concurrency=1, poll=PATIENCE)
    first, second = hold.enqueue(), hold.enqueue()
    while worker.turn() == 0:
        pass
    assert begun.wait(PATIENCE)
    gate.set()
    worker.wait(PATIENCE)
    any_stage.work_until(worker, lambda: second.refresh().state == "succeeded")
    assert first.refresh().state == "succeeded"


def test_a_job_that_came_just_before_the_bell_was_hung_is_not_overlooked(any_stage):
    @any_stage.app.task
    def work() -> None: ...

    worker = any_stage.a_worker(poll=3600.0)
    listen = any_stage.store.store.listen

    def enqueue_then_listen(channel):
        work.enqueue()
        return listen(channel)

    any_stage.store.store.listen = enqueue_then_listen
    assert worker.turn() == 0.0
    any_stage.store.store.listen = listen
    any_stage.work_off(worker)
    assert any_stage.states() == ["succeeded"]
