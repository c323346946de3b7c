"""What is due in a moment is fired already, so that at its time there is only the claim to do."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from engine.stage import NOON, PATIENCE
from rota import every
from rota.engine.worker import worker as worker_module
from rota.engine.worker.worker import WorkerSettings
from rota.model.micros import SECOND

EARLY_BY = WorkerSettings().early_by  # microseconds
EARLY = EARLY_BY / SECOND
MOMENT = EARLY * 0.9


@pytest.fixture
def stage(stage, monkeypatch):
    """No time passes but what is skipped."""
    monkeypatch.setattr(stage, "monotonic", lambda: stage._skipped)
    return stage


@pytest.fixture
def a_scheduler(stage):
    """A scheduler beside a worker that waits for what it fires, or beside a given one."""

    def make(worker=None):
        return stage.a_scheduler(
            worker or SimpleNamespace(early_by=EARLY_BY, is_idle_for=lambda _: True, wake=lambda: None)
        )

    return make


@pytest.fixture
def ran():
    return []


@pytest.fixture
def tick(stage, ran):
    @stage.app.task(name="engine.tick")
    def tick() -> None:
        ran.append(stage.still.time)

    return tick


@pytest.fixture
def every_ten(stage, tick):
    stage.app.schedules.put("soon", tick.job(), every("10s"))


@pytest.mark.usefixtures("every_ten")
def test_a_moment_before_its_time_the_job_is_there_and_waits(stage, a_scheduler):
    scheduler = a_scheduler()
    stage.skip(10 - MOMENT)
    assert scheduler.turn() == 0.0
    (job,) = stage.app.jobs.list().items
    assert (job.state, job.record.fire_at, job.record.run_at) == (
        "scheduled",
        NOON + 10 * SECOND,
        NOON + 10 * SECOND,
    )
    (fired,) = [event for event in stage.heard if event.name == "schedule.fired"]
    assert (fired.at, fired.data["next_at"]) == (NOON + 10 * SECOND, NOON + 20 * SECOND)


@pytest.mark.usefixtures("every_ten")
def test_a_scheduler_without_a_worker_beside_it_fires_on_time(stage):
    """Nobody may come for the job: it would look as if it still had to wait."""
    scheduler = stage.a_scheduler()
    stage.skip(10 - MOMENT)
    assert scheduler.turn() == pytest.approx(MOMENT)
    stage.skip(MOMENT)
    scheduler.turn()
    assert stage.states() == ["queued"]


@pytest.mark.usefixtures("every_ten")
def test_a_worker_that_is_busy_or_works_for_others_is_no_reason_to_be_early(stage, a_scheduler, gate):
    @stage.app.task
    def long() -> None:
        gate.wait(PATIENCE)

    busy, stranger = stage.a_worker(), stage.a_worker(queues=("mail",))
    long.enqueue()
    busy.turn()
    for _ in range(2):
        stranger.turn()
    stage.skip(10 - MOMENT)
    for worker in (busy, stranger):
        a_scheduler(worker).turn()
    assert stage.states() == ["running"]


@pytest.mark.usefixtures("every_ten")
def test_an_idle_worker_is_a_reason(stage, a_scheduler):
    idle = stage.a_worker()
    for _ in range(2):
        idle.turn()
    stage.skip(10 - MOMENT)
    a_scheduler(idle).turn()
    assert stage.states() == ["scheduled"]


@pytest.mark.usefixtures("every_ten")
def test_nothing_is_fired_before_that(stage, a_scheduler):
    scheduler = a_scheduler()
    stage.skip(10 - 2 * EARLY)
    assert scheduler.turn() == pytest.approx(2 * EARLY)
    assert stage.states() == []


@pytest.mark.usefixtures("every_ten")
def test_it_runs_at_its_time_and_not_earlier(stage, a_scheduler, ran):
    scheduler, worker = a_scheduler(), stage.a_worker(poll=60.0)
    stage.skip(10 - MOMENT)
    scheduler.turn()
    pauses = [worker.turn() for _ in range(3)]
    assert (ran, pauses[-1]) == ([], pytest.approx(MOMENT))
    assert stage.states() == ["running"]
    stage.skip(MOMENT)
    stage.work_off(worker)
    assert ran == [NOON + 10 * SECOND]
    (job,) = stage.app.jobs.list().items
    assert job.record.started_at == job.record.queued_at == NOON + 10 * SECOND


@pytest.mark.usefixtures("every_ten")
def test_the_scheduler_has_nothing_left_to_do_at_that_time(stage, a_scheduler):
    scheduler = a_scheduler()
    stage.skip(10 - MOMENT)
    while scheduler.turn() == 0.0:
        pass
    calls = dict(stage.store.calls)
    stage.skip(MOMENT)
    assert scheduler.turn() == 5.0
    assert stage.store.calls["fire"] == calls["fire"] == 1
    assert stage.states() == ["scheduled"]


@pytest.mark.usefixtures("every_ten")
def test_what_overlaps_a_moment_before_its_time_is_decided_at_its_time(stage, a_scheduler):
    scheduler = a_scheduler()
    stage.skip(10)
    scheduler.turn()
    stage.skip(10 - MOMENT)
    pauses = [scheduler.turn() for _ in range(3)]
    assert pauses == [0.0, pytest.approx(MOMENT), pytest.approx(MOMENT)]
    assert stage.store.calls["fire"] == 2  # one on time, and one try for the second
    assert stage.names("schedule.") == ["schedule.fired"]
    stage.skip(MOMENT)
    scheduler.turn()
    assert stage.names("schedule.") == ["schedule.fired", "schedule.skipped"]


@pytest.mark.usefixtures("every_ten")
def test_a_job_that_ends_just_in_time_makes_way_for_the_next(stage, a_scheduler):
    scheduler, worker = a_scheduler(), stage.a_worker()
    stage.skip(10)
    scheduler.turn()
    stage.skip(10 - MOMENT)
    scheduler.turn()
    stage.work_off(worker)
    stage.skip(MOMENT)
    scheduler.turn()
    assert stage.states() == ["succeeded", "queued"]


@pytest.mark.usefixtures("every_ten")
def test_a_store_that_is_away_then_leaves_it_due(stage, a_scheduler):
    scheduler = a_scheduler()
    stage.skip(10 - MOMENT)
    stage.store.fail("fire")
    assert scheduler._guarded_turn() > 0
    assert stage.states() == []
    stage.skip(MOMENT)
    scheduler._guarded_turn()
    assert stage.states() == ["queued"]


@pytest.mark.usefixtures("every_ten")
def test_an_answer_that_is_lost_makes_no_second_job(stage, a_scheduler):
    scheduler = a_scheduler()
    stage.skip(10 - MOMENT)
    stage.store.fail_after("fire")
    scheduler._guarded_turn()
    stage.skip(MOMENT)
    scheduler._guarded_turn()
    assert stage.states() == ["scheduled"]


def test_one_that_the_store_cannot_digest_is_found_at_its_time(stage, a_scheduler, tick):
    stage.app.schedules.put_many([("odd", tick.job(), every("10s")), ("sound", tick.job(), every("10s"))])
    scheduler = a_scheduler()
    stage.store.choke_on("odd")
    stage.skip(10 - MOMENT)
    scheduler._guarded_turn()
    assert (stage.states(), stage.names("service")) == ([], [])
    stage.skip(MOMENT)
    scheduler._guarded_turn()
    assert [job.schedule_id for job in stage.app.jobs.list().items] == ["sound"]
    (change, *_) = stage.app.schedules.changes("odd").items
    assert (change.verb, change.after) == ("could not fire", {"error": "RuntimeError: cannot write this"})


@pytest.mark.usefixtures("every_ten")
def test_a_run_by_hand_a_moment_before_is_another_run(stage, a_scheduler, ran):
    scheduler, worker = a_scheduler(), stage.a_worker()
    stage.skip(10 - MOMENT)
    scheduler.turn()
    stage.app.schedules.run_now("soon")
    stage.work_until(worker, lambda: len(ran) == 1)
    stage.skip(MOMENT)
    stage.work_off(worker)
    assert ran == [NOON + int((10 - MOMENT) * SECOND), NOON + 10 * SECOND]


@pytest.fixture
def held(stage, tick):
    """A worker with a job in its hands whose time comes in a moment."""
    tick.using(delay="10s").enqueue()
    worker = stage.a_worker(poll=60.0)
    stage.skip(10 - MOMENT)
    worker.turn()
    assert stage.states() == ["running"]
    return worker


def test_a_worker_that_drains_gives_back_what_it_was_to_begin(stage, held, ran):
    held.drain()
    stage.work_until(held, held.drained.is_set)
    assert (stage.states(), ran) == (["queued"], [])
    stage.skip(1)
    held.turn()
    assert ran == []


def test_what_was_given_back_begins_on_time_elsewhere(stage, held, ran):
    held.drain()
    stage.work_until(held, held.drained.is_set)
    other = stage.a_worker()
    other.turn()
    assert ran == []
    stage.skip(MOMENT)
    stage.work_off(other)
    assert ran == [NOON + 10 * SECOND]


def test_a_job_that_is_cancelled_before_its_time_does_not_run(stage, held, ran):
    (job,) = stage.app.jobs.list().items
    stage.app.jobs.cancel(job.id)
    stage.a_keeper(held).turn()
    stage.skip(MOMENT)
    stage.work_off(held)
    assert (stage.states(), ran) == (["cancelled"], [])


def test_a_lease_that_is_lost_before_its_time_ends_it(stage, held, ran):
    (run,) = held.runs.values()
    held.runs.lose(run)
    stage.skip(MOMENT)
    held.turn()
    assert ran == []


def test_a_worker_with_work_at_hand_leaves_it_to_others(stage, tick, gate):
    @stage.app.task
    def long() -> None:
        gate.wait(PATIENCE)

    busy = stage.a_worker()
    long.enqueue()
    busy.turn()
    tick.using(delay="10s").enqueue()
    stage.skip(10 - MOMENT)
    busy.turn()
    assert stage.states() == ["running", "scheduled"]
    stage.a_worker().turn()
    assert stage.states() == ["running", "running"]


def test_a_clock_that_is_set_back_makes_nobody_wait(stage, tick, ran):
    tick.enqueue()
    stage.still.time -= 3600 * SECOND
    worker = stage.a_worker()
    stage.work_until(worker, lambda: len(ran) == 1)


def test_two_of_one_time_begin_in_their_order(stage):
    begun = []

    @stage.app.task
    def note(number: int) -> None:
        begun.append(number)

    for number in range(5):
        note.using(delay="10s").enqueue(number)
    worker = stage.a_worker(concurrency=1)
    stage.skip(10 - MOMENT)
    worker.turn()
    stage.skip(MOMENT)
    stage.work_until(worker, lambda: len(begun) == 5)
    assert begun == list(range(5))


def test_a_worker_whose_bell_is_quiet_waits_for_the_very_moment(any_stage, monkeypatch):
    """Listeners are told to end a little earlier; the rest of the wait needs none."""
    monkeypatch.setattr(worker_module, "NEAR", 0.05)
    worker = any_stage.a_worker(poll=60.0)
    for _ in range(2):
        worker.turn()
    asked = []
    listener = worker._listener
    monkeypatch.setattr(listener, "wait", lambda seconds, wait=listener.wait: asked.append(seconds) or wait(seconds))
    begun = time.monotonic()
    worker.wait(0.08)
    assert time.monotonic() - begun >= 0.08
    assert asked == [pytest.approx(0.03)]


def test_what_ends_meanwhile_is_heard(any_stage, monkeypatch):
    monkeypatch.setattr(worker_module, "NEAR", 2 * PATIENCE)  # no listener is listened to at all
    worker = any_stage.a_worker(poll=60.0)
    for _ in range(2):
        worker.turn()
    waiter = threading.Thread(target=worker.wait, args=(PATIENCE,))
    waiter.start()
    worker.wake()
    waiter.join(PATIENCE / 2)
    assert not waiter.is_alive()
