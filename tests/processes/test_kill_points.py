"""kill -9 at every named point, on every durable store: others finish the work as if nothing had happened."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from kill_checks import check_all
from kill_harness import wait_until
from killable_app import put_schedules

from every_store import DURABLE
from rota.failpoints import NAMES
from rota.inspector.reading import all_schedules
from rota.model.jobs.payload import unpack_call
from rota.testing.simulation.history import all_jobs


class Kill(NamedTuple):
    """Who dies, where, and at which passage."""

    point: str
    role: str
    nth: int = 1


KILLS = [
    Kill("add.before_commit", "enqueuer", 8),
    Kill("add.after_commit", "enqueuer", 8),
    Kill("exchange.before", "worker"),
    Kill("exchange.before_commit", "worker"),  # the first claims, …
    Kill("exchange.before_commit", "worker", 2),  # … the second also settles
    Kill("exchange.after_commit", "worker"),
    Kill("exchange.after_commit", "worker", 2),
    Kill("run.before", "worker", 2),
    Kill("run.after", "worker", 2),
    Kill("extend.before", "worker"),
    Kill("extend.before_commit", "worker"),
    Kill("extend.after_commit", "worker"),
    Kill("rescue.before", "rescuer"),
    Kill("change.before_commit", "rescuer"),
    Kill("change.after_commit", "rescuer"),
    Kill("rescue.after", "rescuer"),
    Kill("change.before_commit", "canceller", 3),
    Kill("change.after_commit", "canceller", 3),
    Kill("fire.before", "scheduler"),
    Kill("fire.before_commit", "scheduler", 2),
    Kill("fire.after_commit", "scheduler"),
    Kill("fire.after", "scheduler", 2),
    Kill("edit.before_commit", "editor", 2),  # reworded, then paused, …
    Kill("edit.after_commit", "editor", 2),
    Kill("edit.before_commit", "editor", 3),  # … resumed, …
    Kill("edit.after_commit", "editor", 4),  # … and re-timed
    Kill("prune.before_commit", "pruner"),
    Kill("prune.after_commit", "pruner"),
    Kill("delete.before_commit", "deleter", 2),
    Kill("delete.after_commit", "deleter", 2),
]
AT_ONCE = 5
GROUPS = [KILLS[start : start + AT_ONCE] for start in range(0, len(KILLS), AT_ONCE)]


def test_every_point_has_its_kill():
    elsewhere = {"alert.recorded"}  # in tests/alerts/test_killed_node.py
    assert {kill.point for kill in KILLS} == set(NAMES) - elsewhere


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: f"{group[0].point}-and-on")
@pytest.mark.parametrize("kind", DURABLE)
def test_a_kill_at_any_point_loses_and_doubles_nothing(make_ground, kind, group):
    """Several at a time, each in a world of its own: most of their time is waiting for leases and schedules."""
    grounds = [make_ground(lease="2s") for _ in group]  # on a busy machine nobody is held dead who is not
    with ThreadPoolExecutor(len(group)) as pool:
        deaths = [pool.submit(die_and_go_on, ground, kill) for ground, kill in zip(grounds, group, strict=True)]
    errors = [death.exception() for death in deaths]
    for kill, error in zip(group, errors, strict=True):
        if error is not None:
            error.add_note(f"on {kind}, killed at {kill}")
    if any(errors):
        raise next(error for error in errors if error)


def die_and_go_on(ground, kill):
    """Somebody dies at the point; somebody else finishes the work."""
    victim = None
    if kill.role == "scheduler":  # up before the first time has come, however busy the machine is
        victim = ground.start(kill.role, die_at=kill.point, nth=kill.nth)
        victim.wait_for("node.started")
    in_one_second(ground.store)
    put_schedules(ground.app, seconds=3 if kill.nth > 1 else 2)
    ground.enqueue("slow", 2.0 if kill.point.startswith("extend") else 0.3)  # long enough for a lease to be renewed
    ground.enqueue("quick", count=6)
    ground.enqueue("flaky")
    role = kill.role
    if role == "rescuer":
        assert ground.start("worker", die_at="run.before").end() == -signal.SIGKILL
        role = "worker"
    victim = victim or ground.start(role, die_at=kill.point, nth=kill.nth)
    assert victim.end() == -signal.SIGKILL, victim.output
    if has_commits(ground) or not kill.point.endswith("before_commit"):
        check_the_moment(ground, kill)
    ground.finish_here()
    pruned = [job_id for job_id, _ in ground.runs()] if role == "pruner" else []
    check_all(ground, gone=[*ground.noted("deleted"), *pruned])


def has_commits(ground):
    """MongoDB writes one document after the other where it can: some of them may be there before the last."""
    return not ground.place.kind.startswith("mongo")


def in_one_second(store):
    """Wait for the first half of a second: schedules that are put now are due together."""
    wait_until(lambda: store.now() % 1_000_000 < 500_000, "the next second")


def check_the_moment(ground, kill):
    """What a transaction did is there whole after its commit, and not at all before."""
    is_done = kill.point.endswith("after_commit")
    verb = kill.point.partition(".")[0]
    match verb, kill.role:
        case "add", _:
            numbers = [
                unpack_call(job.payload).args for job in all_jobs(ground.store) if job.task == "quick" and job.priority
            ]
            assert ([int(ground.noted("tried")[-1])] in numbers) == is_done
            assert len(ground.noted("tried")) <= kill.nth  # a store that had to try again passes the point again
        case "exchange", _ if kill.nth == 1:
            assert (ground.count("running") > 0) == is_done
            assert ground.runs() == []
        case "change", "rescuer":
            assert any(job.deaths for job in all_jobs(ground.store)) == is_done
        case "change", "canceller":
            assert ground.count("cancelled") == kill.nth - (not is_done)
        case "fire", _:
            counts = {schedule.run_count > 0 for schedule in all_schedules(ground.store)}
            assert counts == {is_done or kill.nth > 1 or kill.point == "fire.after"}
        case "edit", _:
            schedule = ground.app.schedules.get("edited").record
            assert (schedule.pause is not None) == ((kill.nth, is_done) in {(2, True), (3, False)})
            assert schedule.generation == (2 if (kill.nth, is_done) == (4, True) else 1)
        case "delete", _:
            *earlier, last = ground.noted("deleted")
            assert len(earlier) < kill.nth  # a store that had to try again passes the point again
            assert ground.store.get_jobs(earlier) == []
            assert (ground.store.get_jobs([last]) == []) == is_done
        case "prune", _:
            assert (len(ground.store.get_jobs(ground.noted("accepted"))) < len(ground.noted("accepted"))) == is_done
