"""The store's clock as a node knows it: near, and never ahead."""

from __future__ import annotations

from random import Random

import pytest

from rota.engine.store_clock import StoreClock

BEGIN = 1_790_000_000_000_000
AWAY = 300  # microseconds that a message takes each way, at most


class Place:
    """A store and a node whose clocks go on together; replies tell the time in steps."""

    def __init__(self, step: int) -> None:
        self.passed = 0
        self.random = Random(7)
        self.step = step
        self.clock = StoreClock(self.told, lambda: self.passed / 1e6, step=step)

    @property
    def now(self) -> int:
        return BEGIN + self.passed

    def told(self) -> int:
        return self.now // self.step * self.step

    def go(self) -> None:
        self.passed += self.random.randint(0, AWAY)

    def ask(self) -> None:
        asked_at = self.clock.monotonic()
        self.go()
        told = self.told()
        self.go()
        self.clock.sync(told, asked_at)


@pytest.mark.parametrize("step", [1, 1_000])
def test_it_is_never_ahead_and_comes_near(step):
    place = Place(step)
    for _ in range(200):
        place.ask()
        place.passed += place.random.randint(0, 50_000)
        assert place.clock.now() <= place.now + 1
    assert place.now - place.clock.now() < 100


def test_a_clock_that_is_set_back_is_followed():
    place = Place(1_000)
    place.ask()
    before = place.clock.now()
    asked_at = place.clock.monotonic()
    place.clock.sync(before - 3_600_000_000, asked_at)
    assert place.clock.now() - (before - 3_600_000_000) < 2_000


def test_a_slow_first_reply_is_no_step_when_a_fast_one_follows():
    place = Place(1)
    asked_at = place.clock.monotonic()
    told = place.told()
    place.passed += 10_000_000
    place.clock.sync(told, asked_at)
    place.ask()
    assert not place.clock.steps
    assert place.now - place.clock.now() < 100 + 2 * AWAY


def test_a_slow_first_question_sets_back_nothing_that_another_thread_learned():
    place = Place(1)

    def slow() -> int:
        told = place.told()
        place.passed += 10_000_000
        place.ask()  # of another thread, answered first
        return told

    clock = place.clock = StoreClock(slow, lambda: place.passed / 1e6)
    known = clock.now()
    place.ask()
    assert place.now - known < 100 + 4 * AWAY
    assert not clock.steps
