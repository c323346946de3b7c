"""The ledger: what became of each expected time of a schedule, read from the store and told in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.liveness import is_alive
from rota.model.firing import coming_slot, count_slots
from rota.model.micros import SECOND
from rota.model.why import Around, Verdict, expected_before, why
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from rota.model.job import Job
    from rota.model.occurrence import Occurrence
    from rota.model.schedule import Schedule
    from rota.store.contract import Node, Store


class Coming:
    """One schedule's runs within a window: the first few, and how many there are."""

    def __init__(self, schedule: Schedule, runs: list[datetime], count: int) -> None:
        self.schedule_id = schedule.id
        self.sentence = schedule.trigger.explain()
        self.runs = runs
        self.count = count


def why_at(store: Store, schedule: Schedule, at: int | None) -> Verdict:
    """Why a schedule did or did not run at an instant; by default at the last time that it was expected to."""
    now = store.now()
    if at is None:
        at = expected_before(schedule, now + 1) or now // SECOND * SECOND
    line = _line_at(store, schedule.id, at)
    job = _job_of(store, line)
    return why(schedule, at, line, job, _around(store, schedule, now))


def coming_runs(schedules: Iterable[Schedule], start: int, end: int, most: int) -> Iterator[Coming]:
    """What is to run in start < t <= end, as things stand; of each schedule at most so many times are listed."""
    for schedule in schedules:
        if not may_run(schedule):
            continue
        silence = schedule.silence
        low = start if silence is None else max(start, (silence.until or end) - 1)
        slots = [slot for slot in coming_slots(schedule, low, most) if slot <= end]
        if slots:
            through = end if schedule.spec.end is None else min(end, schedule.spec.end)
            count = max(len(slots), count_slots(schedule, max(low, schedule.fired_through), through))
            yield Coming(schedule, [local_time(schedule, slot) for slot in slots], _bounded(schedule, count))


def coming_slots(schedule: Schedule, after: int, most: int) -> list[int]:
    """The next times after an instant at which it will run, as things stand."""
    slots: list[int] = []
    slot = coming_slot(schedule, after) if may_run(schedule) else None
    while slot is not None and len(slots) < _bounded(schedule, most):
        slots.append(slot)
        slot = coming_slot(schedule, slot)
    return slots


def may_run(schedule: Schedule) -> bool:
    """Whether a run may come: one that is yet to be made, or the last ones, which were made ahead and wait."""
    is_on = schedule.is_enabled and not schedule.problem and schedule.silence is None
    return schedule.due_at is not None or (is_on and schedule.ahead is not None)


def local_time(schedule: Schedule, slot: int) -> datetime:
    """A slot by its schedule's own clock."""
    return find_zone(schedule.spec.tz).datetime_of(slot // SECOND)


def _bounded(schedule: Schedule, count: int) -> int:
    """What is made already is still to come, and counted as made."""
    most = schedule.spec.max_runs
    made = 0 if schedule.ahead is None else count_slots(schedule, schedule.fired_through, schedule.ahead.through)
    return count if most is None else min(count, max(0, most - schedule.run_count + made))


def _line_at(store: Store, schedule_id: str, at: int) -> Occurrence | None:
    lines = store.list_occurrences(schedule_id, at, at + 1, limit=1).items
    return next((line for line in lines if line.earliest_at <= at <= line.through_at), None)


def _job_of(store: Store, line: Occurrence | None) -> Job | None:
    if line is None or line.job_id is None:
        return None
    found = store.get_jobs([line.job_id])
    return found[0] if found else None


def _around(store: Store, schedule: Schedule, now: int) -> Around:
    alive = [node for node in store.list_nodes() if is_alive(node, now)]
    workers = [node for node in alive if _takes_from(node, schedule.spec.queue)]
    queue = next((queue for queue in store.list_queues() if queue.name == schedule.spec.queue), None)
    return Around(
        now=now,
        has_scheduler=any("scheduler" in node.roles for node in alive),
        has_worker=bool(workers),
        knows_task=any(schedule.spec.task in node.tasks for node in workers),
        is_queue_paused=queue is not None and queue.is_paused,
    )


def _takes_from(node: Node, queue: str) -> bool:
    return "worker" in node.roles and queue in node.queues
