"""Servers that are stopped, killed and started again under load: nothing accepted is lost, nothing runs twice."""

from __future__ import annotations

import pytest
from crowd import Crowd
from kill_checks import check_all
from kill_harness import wait_until
from killable_app import put_schedules

from every_store import SERVED
from rota.model.jobs.job import State

RESTARTS = ("stop", "kill", "kill")  # four kinds of server make twelve


@pytest.mark.slow_first
@pytest.mark.parametrize("kind", SERVED)
def test_a_server_that_goes_and_comes_back_loses_and_doubles_nothing(ground, server):
    put_schedules(ground.app, seconds=12)
    crowd = Crowd(ground)
    for how in RESTARTS:
        crowd.go_on()
        getattr(server, how)()
        wait_until(lambda: crowd.have_said("store.unavailable"), "a node that misses the server")
        server.start()
    crowd.look_again()
    crowd.go_on(50)  # with those before, more than 60 jobs, although some ran twice
    crowd.disperse()
    ground.finish()
    jobs = check_all(ground, may_park=True)
    assert sum(job.state is State.SUCCEEDED for job in jobs) > 60
    assert crowd.have_said("store.back")
