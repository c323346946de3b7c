"""A post is filled again at once, and more slowly where no worker stays."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from rota.supervisor.post import LONGEST_PAUSE, QUICK, Post

LONG_AGO = float("-inf")


def lose(post, born_at):
    post.worker = SimpleNamespace(born_at=born_at)
    return post.vacate()


def pause_of(post):
    return round(max(0.0, post.start_at - time.monotonic()))


def test_one_that_worked_for_long_is_replaced_at_once():
    post = Post()
    for _ in range(10):
        assert lose(post, LONG_AGO) == "another takes its place"
        assert (post.worker, post.start_at) == (None, 0.0)


def test_quick_ends_in_a_row_slow_the_next_start_down():
    post = Post()
    pauses = []
    for _ in range(9):
        lose(post, time.monotonic())
        pauses.append(pause_of(post))
    assert pauses == [0, 0, 1, 2, 4, 8, 16, LONGEST_PAUSE, LONGEST_PAUSE]


def test_the_slowing_down_is_told():
    post = Post()
    said = [lose(post, time.monotonic()) for _ in range(3)]
    assert said[-1] == f"3 in a row were gone within {QUICK:g} s: the next starts in 1 s"


def test_one_that_stays_makes_up_for_those_before():
    post = Post()
    for _ in range(5):
        lose(post, time.monotonic())
    assert lose(post, LONG_AGO) == "another takes its place"
    assert lose(post, time.monotonic()) == "another takes its place"


def test_a_worker_that_cannot_be_started_counts_as_a_quick_end():
    post = Post()
    assert [pause_of(post) for _ in range(4) if post.fail()] == [0, 0, 1, 2]


def test_a_successor_takes_over_when_the_old_worker_is_gone():
    post, successor = Post(), SimpleNamespace(born_at=time.monotonic())
    post.successor = successor
    lose(post, LONG_AGO)
    assert (post.worker, post.successor) == (successor, None)


@pytest.mark.parametrize("quick_ends", [0, 5])
def test_a_post_without_a_worker_can_be_vacated(quick_ends):
    post = Post()
    for _ in range(quick_ends):
        post.fail()
    assert post.vacate() == "another takes its place"
