"""A worker is replaced at once, and more slowly if no worker stays."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from rota.supervisor.position import LONGEST_PAUSE, QUICK_END, Position

LONG_AGO = float("-inf")


def lose(position, born_at):
    position.worker = SimpleNamespace(born_at=born_at)
    return position.clear()


def pause_of(position):
    return round(max(0.0, position.start_at - time.monotonic()))


def test_one_that_worked_for_long_is_replaced_at_once():
    position = Position()
    for _ in range(10):
        assert lose(position, LONG_AGO) == "another one replaces it"
        assert (position.worker, position.start_at) == (None, 0.0)


def test_quick_ends_in_a_row_slow_the_next_start_down():
    position = Position()
    pauses = []
    for _ in range(9):
        lose(position, time.monotonic())
        pauses.append(pause_of(position))
    assert pauses == [0, 0, 1, 2, 4, 8, 16, LONGEST_PAUSE, LONGEST_PAUSE]


def test_the_pause_is_reported():
    position = Position()
    said = [lose(position, time.monotonic()) for _ in range(3)]
    assert said[-1] == f"3 in a row ended within {QUICK_END:g} s: the next starts in 1 s"


def test_one_that_stays_makes_up_for_those_before():
    position = Position()
    for _ in range(5):
        lose(position, time.monotonic())
    assert lose(position, LONG_AGO) == "another one replaces it"
    assert lose(position, time.monotonic()) == "another one replaces it"


def test_a_worker_that_cannot_be_started_counts_as_a_quick_end():
    position = Position()
    assert [pause_of(position) for _ in range(4) if position.fail()] == [0, 0, 1, 2]


def test_a_successor_takes_over_when_the_old_worker_is_gone():
    position, successor = Position(), SimpleNamespace(born_at=time.monotonic())
    position.successor = successor
    lose(position, LONG_AGO)
    assert (position.worker, position.successor) == (successor, None)


@pytest.mark.parametrize("quick_ends", [0, 5])
def test_a_position_without_a_worker_can_be_cleared(quick_ends):
    position = Position()
    for _ in range(quick_ends):
        position.fail()
    assert position.clear() == "another one replaces it"
