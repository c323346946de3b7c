"""Links that are cut, closed, slow, deaf or robbed of their answers: work goes on, nothing is lost or doubled."""

from __future__ import annotations

import pytest
from crowd import Crowd
from kill_checks import check_all
from kill_harness import wait_until
from killable_app import put_schedules

from amounts import IS_SOAK
from every_store import SERVED

ROUND = [*["cut"] * 3, "lose_replies", "lose_replies", "delay", "refuse_connections", "black_hole"]
FAULTS = ROUND * (8 if IS_SOAK else 1)


@pytest.mark.slow_first
@pytest.mark.parametrize("kind", SERVED)
def test_a_bad_link_loses_and_doubles_nothing(ground_behind, proxy):
    ground = ground_behind
    put_schedules(ground.app, seconds=12)
    crowd = Crowd(ground)
    for fault in FAULTS:
        crowd.go_on(3)
        break_link(proxy, fault)
        proxy.mend()
    crowd.go_on(30)
    crowd.disperse()
    ground.finish()
    check_all(ground, may_park=True)
    assert proxy.faults > len(FAULTS)


def break_link(proxy, fault):
    """A fault that lasts until somebody has met it."""
    before = proxy.faults
    match fault:
        case "cut":
            proxy.cut()
        case "delay":
            proxy.delay(0.2)
            proxy.cut()  # links anew, and slowly
        case _:
            getattr(proxy, fault)()
            wait_until(lambda: proxy.faults >= before + 5, "links that meet the fault")
