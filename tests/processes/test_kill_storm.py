"""Five schedulers and eight workers that are killed at random while jobs keep coming, on every durable store."""

from __future__ import annotations

import signal
from random import Random

import pytest
from kill_checks import check_all
from kill_harness import wait_until
from killable_app import put_crowd, put_schedules

from amounts import amount
from every_store import DURABLE
from rota.inspector.reading import all_schedules
from rota.model.jobs.job import State
from rota.testing.simulation.checks.occurrences import expected_slots
from rota.testing.simulation.history import all_occurrences

SEED = 20_240_229
KILLS = amount(10, 60)  # on each of five stores
PAUSE = amount(40, 0) / 1_000  # seconds between two jobs that are enqueued
ROLES = ["scheduler"] * 5 + ["worker"] * 8
CROWD = 20  # schedules beside the two that are looked at closely


@pytest.mark.slow_first
@pytest.mark.parametrize("kind", DURABLE)
def test_schedulers_and_workers_killed_at_random_lose_and_double_nothing(make_ground, kind):
    ground = make_ground(lease="3s")
    random = Random(f"{SEED} {kind}")
    put_schedules(ground.app, seconds=10)
    put_crowd(ground.app, CROWD, seconds=10)
    crowd = [ground.start(role) for role in ROLES]
    enqueuer = ground.start("enqueuer", count=10_000, pause=PAUSE)
    for _ in range(KILLS):
        place = random.randrange(len(crowd))
        ground.enqueue("slow", 0.3, count=8)  # so that workers hold something when they die, however fast they are
        goal = len(ground.runs()) + random.randrange(1, 30)
        wait_until(lambda goal=goal: len(ground.runs()) >= goal, "executions")
        victim = crowd[place]
        victim.wait_for("node.started")
        victim.signal(signal.SIGKILL)
        assert victim.end() == -signal.SIGKILL
        crowd[place] = ground.start(ROLES[place])
    kill_who_runs_a_job(ground, crowd)
    ground.open_gate("enough")
    assert enqueuer.end() == 0, enqueuer.output
    for child in crowd:
        child.wait_for("node.started")
        child.signal(signal.SIGTERM)
    assert [child.end() for child in crowd] == [0] * len(crowd)
    ground.finish()

    jobs = check_all(ground, may_park=True)
    assert sum(job.deaths for job in jobs) > 0
    assert sum(job.state is State.SUCCEEDED for job in jobs) > 200
    for schedule in all_schedules(ground.store):
        made = sum(line.count for line in all_occurrences(ground.store, schedule.id))
        assert made == len(expected_slots(schedule, schedule.created_at, schedule.spec.end)) >= 9, schedule.id


def kill_who_runs_a_job(ground, crowd):
    """On a busy machine, none of those that die at random may have a job at that time. This one has."""
    (job_id,) = ground.enqueue("gated", "gate")
    wait_until(lambda: ground.runs_of(job_id), "the job to begin")
    holder = ground.job(job_id).holder
    place = next(place for place, child in enumerate(crowd) if f"-{child.pid}-" in holder)
    crowd[place].signal(signal.SIGKILL)
    assert crowd[place].end() == -signal.SIGKILL
    crowd[place] = ground.start(ROLES[place])
    ground.open_gate()
