"""Several schedulers share what is due: each takes its own first, and what others leave undone after a moment."""

from __future__ import annotations

import pytest

from engine.stage import NOON
from rota import every
from rota.engine.scheduling.partition import PATIENCE, Share, share_of
from rota.engine.scheduling.scheduler import Scheduler
from rota.engine.store_clock import StoreClock
from rota.model.micros import SECOND
from rota.store.contract import Node

NAMES = [f"s{number}" for number in range(40)]


def a_node(name: str, *, roles: tuple[str, ...] = ("scheduler",), beat_at: int = NOON) -> Node:
    return Node(id=name, host="here", pid=1, roles=roles, beat_at=beat_at)


@pytest.fixture
def crowd(stage):
    """Forty schedules that are due."""

    @stage.app.task(name="engine.tick")
    def tick() -> None: ...

    stage.app.schedules.put_many([(name, tick.job(), every("10s")) for name in NAMES])
    stage.skip(10)
    return stage


def sharing(stage, share: Share) -> Scheduler:
    ids = (f"{share.index}-{number}" for number in range(1000))
    return Scheduler(stage.store, stage.events, StoreClock(stage.store.now), lambda: next(ids), share=lambda: share)


def fired(stage) -> set[str]:
    return {job.schedule_id for job in stage.app.jobs.list(limit=200).items}


def test_the_shares_of_all_are_the_whole_and_none_is_in_two(crowd):
    schedules = crowd.store.get_schedules(NAMES)
    parts = [{schedule.id for schedule in schedules if Share(index, 3).has(schedule)} for index in range(3)]
    assert sum(map(len, parts)) == len(NAMES)
    assert set().union(*parts) == set(NAMES)
    assert all(parts)


def test_each_fires_its_own_share(crowd):
    first, second = sharing(crowd, Share(0, 2)), sharing(crowd, Share(1, 2))
    assert first.turn() == 0.0
    mine = fired(crowd)
    assert 0 < len(mine) < len(NAMES)
    assert second.turn() == 0.0
    assert fired(crowd) == set(NAMES)
    assert "schedule.refused" not in [event.name for event in crowd.heard]


def test_what_another_leaves_undone_is_fired_after_a_moment(crowd):
    scheduler = sharing(crowd, Share(0, 2))
    scheduler.turn()
    assert scheduler.turn() == PATIENCE / SECOND
    assert len(fired(crowd)) < len(NAMES)
    crowd.skip(PATIENCE / SECOND)
    assert scheduler.turn() == 0.0
    assert fired(crowd) == set(NAMES)


def test_one_alone_has_all(crowd):
    sharing(crowd, Share()).turn()
    assert fired(crowd) == set(NAMES)


def test_shares_go_to_the_schedulers_that_are_alive():
    nodes = [a_node("c"), a_node("a", beat_at=NOON - 60 * SECOND), a_node("w", roles=("worker",)), a_node("d")]
    assert share_of("b", nodes, NOON) == Share(0, 3)
    assert share_of("c", nodes, NOON) == Share(0, 2)
    assert share_of("d", nodes, NOON) == Share(1, 2)
    assert share_of("d", [], NOON) == Share(0, 1)
