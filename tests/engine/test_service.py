"""The loop that every service is: it survives outages and surprises, and says so."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from engine.stage import PATIENCE, Stage
from rota.engine import service as service_module
from rota.engine.service import FIRST_PAUSE, LONGEST_PAUSE, Service
from rota.errors import StoreError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable


class Scripted(Service):
    """A service that does what its script says, waits no longer than it must, and stops at the script's end."""

    name = "scripted"

    def __init__(self, stage: Stage, script: Iterable[Exception | float]) -> None:
        super().__init__(stage.events, stage.a_clock())
        self._script = iter(script)
        self.waits: list[float] = []
        self.is_closed = False

    def turn(self) -> float:
        step = next(self._script, None)
        if step is None:
            self.stop()
            return 0.0
        if isinstance(step, Exception):
            raise step
        return step

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)

    def close(self) -> None:
        self.is_closed = True

    def run(self) -> None:
        self.start()
        assert self.join(PATIENCE), "the loop never ended"


def down(times: int) -> list[Exception]:
    return [StoreUnavailable("the link is down") for _ in range(times)]


def test_an_outage_is_waited_out_and_told_once_at_each_end(stage):
    service = Scripted(stage, [*down(6), 0.0, 0.0])
    service.run()
    assert stage.names() == ["store.unavailable", "store.back"]
    assert [event.data["service"] for event in stage.heard] == ["scripted", "scripted"]
    assert stage.heard[0].data["error"] == "the link is down"
    assert service.is_closed


def test_the_waits_of_an_outage_grow_to_a_bound_with_jitter(stage):
    service = Scripted(stage, down(40))
    service.run()
    assert len(service.waits) == 40
    for number, wait in enumerate(service.waits, start=1):
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2**number)
        assert longest / 2 <= wait <= longest
    assert len({round(wait, 6) for wait in service.waits[-20:]}) > 10


def test_after_an_outage_the_waits_begin_small_again(stage):
    service = Scripted(stage, [*down(10), 0.0, *down(1)])
    service.run()
    assert service.waits[-1] <= FIRST_PAUSE * 2
    assert stage.names() == ["store.unavailable", "store.back", "store.unavailable", "store.back"]


@pytest.mark.parametrize("error", [ValueError("odd"), KeyError("gone"), RecursionError(), MemoryError(), OSError(5)])
def test_an_unexpected_error_never_ends_the_loop(stage, caplog, error):
    service = Scripted(stage, [error, error, 0.0])
    service.run()
    assert stage.names("service.") == ["service.failed"] * 2
    assert all(wait > 0 for wait in service.waits)
    assert "scripted failed; it goes on" in caplog.text


def test_an_error_that_comes_again_is_logged_once(stage, caplog):
    Scripted(stage, [*[ValueError("odd")] * 3, ValueError("odder"), 0.0, ValueError("odd")]).run()
    assert [str(record.exc_info[1]) for record in caplog.records] == ["odd", "odder", "odd"]


def test_an_error_of_the_store_is_logged_as_a_sentence(stage, caplog):
    Scripted(stage, [StoreError("the table orders has no column wakeAt")] * 2).run()
    assert [record.getMessage() for record in caplog.records] == [
        "scripted failed; it goes on: the table orders has no column wakeAt"
    ]
    assert caplog.records[0].exc_info is None


def test_an_unexpected_error_is_not_told_as_an_outage_of_the_store(stage):
    Scripted(stage, [ValueError("odd"), 0.0]).run()
    assert stage.names() == ["service.failed"]


def test_an_outage_that_follows_an_unexpected_error_is_told(stage):
    Scripted(stage, [ValueError("odd"), *down(2), 0.0]).run()
    assert stage.names() == ["service.failed", "store.unavailable", "store.back"]


def test_a_turn_that_asks_for_no_pause_is_followed_at_once(stage):
    service = Scripted(stage, [0.0, 0.0, 2.5, 0.0])
    service.run()
    assert service.waits == [2.5]


def test_a_stuck_turn_is_seen_from_outside(stage, monkeypatch, gate):
    monkeypatch.setattr(service_module, "STUCK_AFTER", -1.0)
    begun = threading.Event()

    class Stuck(Scripted):
        def turn(self) -> float:
            begun.set()
            gate.wait(PATIENCE)
            return super().turn()

    service = Stuck(stage, [])
    service.start()
    assert begun.wait(PATIENCE)
    assert time.monotonic() > service.turns_by
    gate.set()
    assert service.join(PATIENCE)


def test_a_service_that_sleeps_long_is_not_taken_for_stuck(stage):
    service = Scripted(stage, [3600.0])
    service.run()
    assert service.turns_by < time.monotonic() + 3600  # the last turn asked for no pause
    asleep = Scripted(stage, [])
    asleep.turn = lambda: asleep.stop() or 3600.0
    asleep.run()
    assert asleep.turns_by > time.monotonic() + 3600


def test_a_sleeping_service_ends_as_soon_as_it_is_told(stage):
    class Sleeper(Service):
        def turn(self) -> float:
            return 3600.0

    sleeper = Sleeper(stage.events, stage.a_clock())
    sleeper.start()
    assert sleeper.started.wait(PATIENCE)
    assert not sleeper.is_stopping
    sleeper.stop()
    assert sleeper.join(PATIENCE)


def test_join_says_when_a_loop_did_not_end_in_time(stage, gate):
    class Stuck(Service):
        def turn(self) -> float:
            gate.wait(PATIENCE)
            return 0.0

    stuck = Stuck(stage.events, stage.a_clock())
    assert stuck.join(0.0)
    stuck.start()
    stuck.stop()
    assert not stuck.join(0.0)
    gate.set()
    assert stuck.join(PATIENCE)


def test_every_service_survives_an_outage(stage):
    @stage.app.task
    def work() -> None: ...

    worker = stage.a_worker()
    services = {
        "exchange": worker,
        "due_schedules": stage.a_scheduler(),
        "expired_jobs": stage.a_rescuer(),
        "prune": stage.a_pruner(),
    }
    for verb in services:
        stage.store.fail(verb, 3)
    for service in services.values():
        assert all(service._guarded_turn() > 0 for _ in range(3))
    for service in services.values():
        service._guarded_turn()
    assert stage.names() == ["store.unavailable"] * 4 + ["store.back"] * 4
    job = work.enqueue()
    stage.work_off(worker)
    assert job.state == "succeeded"
