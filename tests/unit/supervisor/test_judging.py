"""Which workers must go, by what their parent has seen of them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rota.supervisor.judging import Verdict, judge
from rota.supervisor.plan import START_FOR, Plan

PLAN = Plan(command=[], folder="", stuck_after=30.0, most_memory=512 * 1024**2)
WELL = {
    "is_up": True,
    "is_leaving": False,
    "age": 100.0,
    "silent_for": 1.0,
    "unwell_for": 0.0,
    "stuck_for": 0.0,
    "stuck": 0,
    "rss": 100 * 1024**2,
    "state": "S",
}


def verdict_on(plan=PLAN, **seen):
    return judge(SimpleNamespace(**{**WELL, **seen}), plan)


def test_a_worker_that_is_well_stays():
    assert verdict_on() is None


@pytest.mark.parametrize(
    ("state", "doing"), [("R", "busy"), ("S", "asleep"), ("D", "waiting for a disk"), ("T", "stopped")]
)
def test_a_silent_worker_is_killed_with_what_it_does(state, doing):
    told = Verdict(f"sent no heartbeat for 30 s ({doing})", is_unresponsive=True)
    assert verdict_on(silent_for=30.0, state=state) == told
    assert verdict_on(silent_for=29.9, state=state) is None


def test_a_silent_worker_is_killed_even_while_it_drains():
    assert verdict_on(silent_for=30.0, is_leaving=True).is_unresponsive


def test_a_worker_with_a_loop_that_does_not_turn_drains():
    assert verdict_on(unwell_for=30.0) == Verdict("has a loop that has not turned for 30 s", is_unresponsive=False)
    assert verdict_on(unwell_for=29.0) is None


@pytest.mark.parametrize(("slots", "words"), [(1, "1 slot"), (3, "3 slots")])
def test_a_worker_with_slots_that_do_not_come_back_drains(slots, words):
    told = Verdict(f"has {words} held by a run that does not end", is_unresponsive=False)
    assert verdict_on(stuck_for=30.0, stuck=slots) == told
    assert verdict_on(stuck_for=5.0, stuck=slots) is None


def test_a_worker_that_has_grown_drains():
    assert verdict_on(rss=600 * 1024**2) == Verdict("uses 600 MB, more than 512 MB", is_unresponsive=False)
    assert verdict_on(PLAN._replace(most_memory=None), rss=600 * 1024**2) is None


@pytest.mark.parametrize("seen", [{"unwell_for": 99.0}, {"stuck_for": 99.0, "stuck": 1}, {"rss": 2**40}])
def test_a_worker_that_drains_already_is_left_to_it(seen):
    assert verdict_on(is_leaving=True, **seen) is None


def test_a_worker_that_is_not_up_may_take_long_but_not_for_ever():
    assert verdict_on(is_up=False, silent_for=START_FOR - 1, age=START_FOR - 1) is None
    assert verdict_on(is_up=False, age=START_FOR) == Verdict("was not up after 300 s", is_unresponsive=True)
