"""Several schedulers divide what is due: each takes its own first, and what others leave undone after a moment."""

from __future__ import annotations

import pytest

from engine.stage import NOON
from rota import every
from rota.engine.scheduling.partition import TAKE_OVER_AFTER, Partition, partition_of
from rota.engine.scheduling.scheduler import Scheduler
from rota.engine.store_clock import StoreClock
from rota.model.micros import SECOND
from rota.store.contract import Node

NAMES = [f"s{number}" for number in range(40)]


def a_node(name: str, **fields) -> Node:
    return Node(**{"id": name, "host": "here", "pid": 1, "roles": ("scheduler",), "beat_at": NOON, **fields})


@pytest.fixture
def many(stage):
    """Forty schedules that are due."""

    @stage.app.task(name="engine.tick")
    def tick() -> None: ...

    stage.app.schedules.put_many([(name, tick.job(), every("10s")) for name in NAMES])
    stage.skip(10)
    return stage


def partitioned(stage, partition: Partition) -> Scheduler:
    ids = (f"{partition.index}-{number}" for number in range(1000))
    scheduler = Scheduler(stage.store, stage.events, StoreClock(stage.store.now), lambda: next(ids))
    scheduler.partition = partition
    return scheduler


def fired(stage) -> set[str]:
    return {job.schedule_id for job in stage.app.jobs.list(limit=200).items}


def test_the_shares_of_all_are_the_whole_and_none_is_in_two(many):
    schedules = many.store.get_schedules(NAMES)
    parts = [{schedule.id for schedule in schedules if Partition(index, 3).has(schedule)} for index in range(3)]
    assert sum(map(len, parts)) == len(NAMES)
    assert set().union(*parts) == set(NAMES)
    assert all(parts)


def test_each_fires_its_own_share(many):
    first, second = partitioned(many, Partition(0, 2)), partitioned(many, Partition(1, 2))
    assert first.turn() == 0.0
    mine = fired(many)
    assert 0 < len(mine) < len(NAMES)
    assert second.turn() == 0.0
    assert fired(many) == set(NAMES)
    assert "schedule.refused" not in [event.name for event in many.heard]


def test_what_another_leaves_undone_is_fired_after_a_moment(many):
    scheduler = partitioned(many, Partition(0, 2))
    scheduler.turn()
    assert scheduler.turn() == TAKE_OVER_AFTER / SECOND
    assert len(fired(many)) < len(NAMES)
    many.skip(TAKE_OVER_AFTER / SECOND)
    assert scheduler.turn() == 0.0
    assert fired(many) == set(NAMES)


def test_one_alone_has_all(many):
    partitioned(many, Partition()).turn()
    assert fired(many) == set(NAMES)


def test_shares_go_to_the_schedulers_that_are_alive():
    nodes = [a_node("c"), a_node("a", beat_at=NOON - 60 * SECOND), a_node("w", roles=("worker",)), a_node("d")]
    assert partition_of("b", nodes, NOON) == Partition(0, 3)
    assert partition_of("c", nodes, NOON) == Partition(0, 2)
    assert partition_of("d", nodes, NOON) == Partition(1, 2)
    assert partition_of("d", [], NOON) == Partition(0, 1)


def test_a_scheduler_that_drains_has_no_partition():
    nodes = [a_node("a", is_draining=True), a_node("b"), a_node("c")]
    assert partition_of("b", nodes, NOON) == Partition(0, 2)
    assert partition_of("c", nodes, NOON) == Partition(1, 2)
