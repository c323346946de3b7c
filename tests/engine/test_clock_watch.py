"""A store whose clock is set: it is told once, and what the wrong time has left is moved back."""

from __future__ import annotations

import logging
from itertools import count
from typing import Any

import pytest

from engine.stage import NOON, Stage
from rota import every
from rota.engine.store_clock import StoreClock
from rota.engine.upkeep.clock_repairs import LEASE_LEFT
from rota.engine.upkeep.clock_watch import RECORD, SECOND_PASS, TAKE_OVER, ClockWatch
from rota.engine.upkeep.pruner import DOUBT
from rota.model.clock.record import KIND, NAME, ClockStep, unpack_record
from rota.model.jobs.job import State
from rota.model.micros import SECOND
from rota.store.contract import Exchange, Retention
from rota.store.shared.liveness import is_alive
from rota.testing.store_suite.builders import a_job, a_node

MINUTE = 60 * SECOND
HOUR = 3600 * SECOND


class Watched:
    """A stage with a scheduler, a worker that runs at once, and a watch, on one clock as a node has it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.numbers = count(1)
        self.clock = self.a_clock()
        self.watch = self.a_watch("node-1", self.clock)
        self.scheduler = stage.a_scheduler()
        self.scheduler.clock = self.clock
        self.scheduler.turn()
        self.watch.turn()

    def a_clock(self) -> StoreClock:
        """No time passes but what the test lets pass, however busy the machine is."""
        return StoreClock(self.stage.store.now, lambda: self.stage._skipped)

    def a_watch(self, name: str, clock: StoreClock | None = None) -> ClockWatch:
        stage = self.stage
        return ClockWatch(
            stage.store,
            stage.events,
            clock or self.a_clock(),
            lambda: f"note-{next(self.numbers)}",
            node_id=name,
        )

    def set_clock(self, by: int) -> None:
        """Only the store's clock: no time passes."""
        self.stage.still.time += by

    def pass_time(self, seconds: float) -> None:
        """Second by second, as a node lives through it."""
        for _ in range(round(seconds)):
            self.stage.skip(1.0)
            self.turn()

    def turn(self) -> None:
        while self.scheduler.turn() == 0.0:
            pass
        worker = self.stage.workers[0]
        self.stage.work_off(worker)
        self.watch.turn()

    def runs(self) -> list[int]:
        """The nominal times of all jobs, in seconds from noon."""
        page = self.stage.app.jobs.list(limit=200)
        return sorted((job.record.fire_at - NOON) // SECOND for job in page.items if job.record.fire_at)

    def steps(self) -> tuple[ClockStep, ...]:
        (entry,) = self.stage.still.get_entries(KIND, [NAME])
        return unpack_record(entry.data).steps

    def leave_a_lease_ahead(self) -> None:
        """The clock goes an hour ahead, and a node that dies then has a job."""
        self.set_clock(HOUR)
        self.pass_time(1)
        self.stage.still.add_jobs([a_job(id="of-dead", queue="slow")])
        self.stage.still.exchange(Exchange(holder="dead", want=1, queues=("slow",)))

    def expired_after_the_repair(self) -> list[str]:
        """Whose leases run out within what a repaired one has left."""
        now = self.stage.still.time + LEASE_LEFT
        return [job.id for job in self.stage.still.expired_jobs(10, now=now)]


@pytest.fixture
def watched() -> Any:
    stage = Stage()

    @stage.app.task
    def tick() -> None: ...

    stage.app.schedules.put("tick", tick.job(), every("10s"), overlap="allow")
    stage.a_worker()
    yield Watched(stage)
    stage.close()


def test_an_hour_ahead_for_six_seconds_costs_no_run_and_doubles_none(watched: Watched) -> None:
    watched.pass_time(12)
    watched.set_clock(HOUR)
    watched.pass_time(6)
    watched.set_clock(-HOUR)
    watched.pass_time(60)
    runs = watched.runs()
    assert runs == sorted(set(runs))
    assert [at for at in runs if at <= 70] == [10, 20, 30, 40, 50, 60, 70]


def test_what_ran_under_the_wrong_clock_is_not_run_when_its_time_comes(watched: Watched) -> None:
    watched.pass_time(2)
    watched.set_clock(2 * MINUTE)
    watched.pass_time(20)
    ahead = {at for at in watched.runs() if at > 100}
    assert ahead
    watched.set_clock(-2 * MINUTE)
    watched.pass_time(180)
    runs = watched.runs()
    assert runs == sorted(set(runs))
    assert ahead <= set(runs)
    assert set(range(30, 200, 10)) <= set(runs)


def test_a_step_is_told_once_each_way(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    watched.set_clock(HOUR)
    watched.pass_time(3)
    watched.set_clock(-HOUR)
    with caplog.at_level(logging.WARNING, "rota"):
        watched.pass_time(40)
    assert watched.stage.names("store.clock") == ["store.clock_set", "store.clock_set", "store.clock_repaired"]
    steps = [event for event in watched.stage.heard if event.name == "store.clock_set"]
    assert [round(step.data["seconds"], 1) for step in steps] == [3600.0, -3600.0]


def test_the_log_says_how_far(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    watched.set_clock(HOUR)
    watched.pass_time(1)
    watched.set_clock(-HOUR)
    watched.pass_time(2)
    said = [record.getMessage() for record in caplog.records if "clock" in record.getMessage()]
    assert said[0].startswith("the store's clock was set ahead by 1h, from 2026-09-21 ")
    assert said[1].startswith("the store's clock was set back by 1h, from 2026-09-21 ")
    assert said[2] == "1 schedule and 0 jobs were ahead of the store's clock and were moved back"


@pytest.mark.parametrize("by", [SECOND, -SECOND, SECOND + 900_000, -SECOND - 900_000, 25_000, -25_000])
def test_a_small_difference_is_no_step(watched: Watched, by: int) -> None:
    watched.pass_time(3)
    watched.set_clock(by)
    watched.pass_time(3)
    assert watched.stage.names("store.clock") == []


def test_a_slow_reply_is_no_step(watched: Watched) -> None:
    clock = watched.clock
    asked_at = clock.monotonic()
    now = watched.stage.still.time
    watched.stage.skip(30.0)
    clock.sync(now, asked_at)
    clock.sync(watched.stage.still.time, clock.monotonic())
    assert list(clock.steps) == []


def test_a_reply_from_before_the_step_is_not_believed(watched: Watched) -> None:
    clock = watched.clock
    asked_at, now = clock.monotonic(), watched.stage.still.time
    watched.stage.skip(1.0)
    watched.set_clock(-HOUR)
    clock.sync(watched.stage.still.time, clock.monotonic())
    assert len(clock.steps) == 1
    clock.sync(now, asked_at)
    assert len(clock.steps) == 1
    assert abs(clock.now() - watched.stage.still.time) < SECOND


def test_a_host_that_slept_is_no_step() -> None:
    """While it sleeps its monotonic clock stands still, and the store's goes on."""
    slept = [0.0]
    clock = StoreClock(lambda: NOON, lambda: 100.0, asleep=lambda: slept[0])
    clock.sync(NOON, 100.0)
    slept[0] = 3600.0
    clock.sync(NOON + HOUR, 100.0)
    assert list(clock.steps) == []
    clock.sync(NOON + 2 * HOUR, 100.0)
    assert [step.size for step in clock.steps] == [HOUR]


def test_a_node_that_starts_afterwards_finds_out_by_the_record(watched: Watched) -> None:
    watched.set_clock(HOUR)
    watched.pass_time(3)
    watched.set_clock(-HOUR)
    late = watched.a_watch("node-2")
    late.turn()
    (step,) = [event for event in watched.stage.heard if event.name == "store.clock_set"][1:]
    assert step.data["seconds"] == pytest.approx(-3600, abs=RECORD)
    assert watched.stage.still.get_schedules(["tick"])[0].next_at <= watched.stage.still.time + 10 * SECOND


def test_of_two_nodes_one_repairs(watched: Watched) -> None:
    other_clock = watched.a_clock()
    other = watched.a_watch("node-2", other_clock)
    other.turn()
    watched.set_clock(HOUR)
    watched.pass_time(3)
    other_clock.sync(watched.stage.still.time, other_clock.monotonic())
    other.turn()
    watched.set_clock(-HOUR)
    watched.pass_time(1)
    other_clock.sync(watched.stage.still.time, other_clock.monotonic())
    other.turn()
    watched.stage.skip(TAKE_OVER + 1)
    other.turn()
    assert watched.stage.names("store.clock_repaired") == ["store.clock_repaired"]
    assert other._pending == []


def test_a_repair_that_nobody_finished_is_taken_over(watched: Watched) -> None:
    other_clock = watched.a_clock()
    other = watched.a_watch("node-2", other_clock)
    other.turn()
    watched.set_clock(HOUR)
    watched.pass_time(3)
    other_clock.sync(watched.stage.still.time, other_clock.monotonic())
    other.turn()
    watched.set_clock(-HOUR)
    watched.scheduler.turn()
    watched.watch._note(watched.clock.steps.popleft())  # it dies before the repair
    other_clock.sync(watched.stage.still.time, other_clock.monotonic())
    other.turn()
    assert watched.stage.names("store.clock_repaired") == []
    watched.stage.skip(TAKE_OVER + 1)
    other.turn()
    assert watched.stage.names("store.clock_repaired") == ["store.clock_repaired"]


def test_the_record_keeps_the_step_and_what_was_moved(watched: Watched) -> None:
    watched.set_clock(HOUR)
    watched.pass_time(3)
    watched.set_clock(-HOUR)
    watched.pass_time(2)
    ahead, back = watched.steps()
    assert (ahead.is_back, back.is_back) == (False, True)
    assert (back.is_repaired, back.schedules, back.by) == (False, 1, "node-1")
    watched.pass_time(SECOND_PASS + 1)
    _, back = watched.steps()
    assert (back.is_repaired, back.schedules, back.by) == (True, 1, "node-1")


def test_a_repair_that_ended_after_its_first_pass_is_taken_over(watched: Watched) -> None:
    """The leases are left for the last pass."""
    other_clock = watched.a_clock()
    other = watched.a_watch("node-2", other_clock)
    other.turn()
    watched.leave_a_lease_ahead()
    other_clock.sync(watched.stage.still.time, other_clock.monotonic())
    other.turn()
    watched.set_clock(-HOUR)
    watched.pass_time(1)  # the first pass; then the node dies
    other_clock.sync(watched.stage.still.time, other_clock.monotonic())
    other.turn()
    watched.stage.skip(TAKE_OVER + 1)
    other.turn()
    assert watched.expired_after_the_repair() == ["of-dead"]
    assert watched.steps()[-1].is_repaired


def test_a_node_that_starts_later_finishes_a_repair(watched: Watched) -> None:
    """All nodes died, or were replaced, between the two passes."""
    watched.leave_a_lease_ahead()
    watched.set_clock(-HOUR)
    watched.pass_time(1)
    late = watched.a_watch("node-2")
    late.turn()
    assert not watched.steps()[-1].is_repaired
    watched.stage.skip(TAKE_OVER + 1)
    late.turn()
    assert watched.expired_after_the_repair() == ["of-dead"]
    assert watched.steps()[-1].is_repaired


def test_a_node_that_starts_later_leaves_a_finished_repair_alone(watched: Watched) -> None:
    watched.set_clock(HOUR)
    watched.pass_time(3)
    watched.set_clock(-HOUR)
    watched.pass_time(SECOND_PASS + 2)
    late = watched.a_watch("node-2")
    late.turn()
    assert late._pending == []


def test_a_silent_nodes_lease_is_shortened_and_a_live_ones_is_not(watched: Watched) -> None:
    store = watched.stage.still
    watched.set_clock(HOUR)
    watched.pass_time(1)
    store.add_jobs([a_job(id="of-dead", queue="slow"), a_job(id="of-live", queue="slow")])
    for holder in ("dead", "live"):
        store.exchange(Exchange(holder=holder, want=1, queues=("slow",)))
    store.record_heartbeat(a_node("dead"))
    watched.set_clock(-HOUR)
    watched.pass_time(1)
    assert not is_alive(store.list_nodes()[0], store.now())
    for _ in range(round(SECOND_PASS) + 40):
        store.record_heartbeat(a_node("live"))
        watched.pass_time(1)
    assert [job.id for job in store.expired_jobs(10)] == ["of-dead"]


def test_delays_of_the_wrong_time_are_moved_back(watched: Watched) -> None:
    store = watched.stage.still
    watched.set_clock(HOUR)
    watched.pass_time(1)
    store.add_jobs([a_job(id="soon", delay=MINUTE, queue="slow")])
    watched.set_clock(-HOUR)
    watched.pass_time(2)
    (job,) = store.get_jobs(["soon"])
    assert job.state is State.SCHEDULED
    assert job.run_at <= store.now() + MINUTE


def test_no_lease_is_rescued_because_the_clock_went_ahead(watched: Watched) -> None:
    stage = watched.stage
    stage.still.add_jobs([a_job(id="one", queue="slow")])
    stage.still.exchange(Exchange(holder="alive", want=1, queues=("slow",)))
    rescuer = stage.a_rescuer()
    rescuer.clock = watched.clock
    watched.set_clock(HOUR)
    rescuer.turn()
    assert stage.names("job.rescued") == []
    stage.skip(31.0)  # it was not renewed for a whole lease: it is dead
    rescuer.turn()
    assert stage.names("job.rescued") == ["job.rescued"]


def test_nothing_is_pruned_while_the_clock_may_be_wrong(watched: Watched) -> None:
    stage = watched.stage
    watched.pass_time(12)
    pruner = stage.a_pruner()
    pruner.clock = watched.clock
    watched.set_clock(400 * 24 * HOUR)
    kept = len(watched.runs())
    pruner.turn()
    assert len(watched.runs()) == kept > 0
    watched.stage.skip(DOUBT + 1)
    pruner.turn()
    assert watched.runs() == []
    assert Retention().succeeded_for < 400 * 24 * HOUR
