"""Summarizes the system in one word and the numbers behind it, for the first page."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from rota.inspector.coming import overdue_schedules
from rota.inspector.facts.alert import open_alerts
from rota.inspector.facts.queue import jobs_by_state
from rota.inspector.reading import all_schedules
from rota.inspector.schedule_state import schedule_state
from rota.inspector.silent_jobs import jobs_of_silent_nodes
from rota.model.micros import SECOND, datetime_of, optional_datetime
from rota.store.shared.liveness import live_nodes

if TYPE_CHECKING:
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Node, QueueInfo, Store

MOST_NAMED = 3  # failing schedules that are named
MOST_READ = 10_000  # schedules that are read
MOST_LATE = 100

Standing = Literal["empty", "sealed", "no_scheduler", "no_worker", "broken", "failing", "late", "alerting", "well"]


class FailingFacts(Struct, kw_only=True):
    """A schedule that fails: a run failed for good, and none has succeeded since."""

    schedule_id: str
    since: datetime | None  # of its last success, if it had one
    error: str
    job_id: str | None


class SchedulesFacts(Struct, kw_only=True):
    """The schedules in numbers, and those that fail."""

    total: int
    on: int  # that are to run
    paused: int
    broken: list[str]
    failing: list[FailingFacts]  # all of them
    is_truncated: bool  # there are more schedules than were read


class StandingFacts(Struct, kw_only=True):
    """The state of the system."""

    standing: Standing
    at: datetime
    schedules: SchedulesFacts
    jobs: dict[str, int]  # that are kept, by state
    running: int  # jobs in this state, as everywhere
    silent_running: int  # of these, those whose node is silent
    free: int  # more jobs that live workers have slots for
    slots: int  # jobs that all live workers can run at once
    workers: int
    schedulers: int
    nodes: int
    last_worker_at: datetime | None  # the last heartbeat of a worker, if there ever was one
    last_scheduler_at: datetime | None
    oldest_seconds: float | None  # how long the first waiting job has been waiting
    oldest_queue: str | None
    on_time: int  # schedules that are to run, and neither fail nor are late
    late: int
    worst_seconds: float
    alerts: int  # that are open


def read_schedules(store: Store) -> SchedulesFacts:
    """All schedules, read once; frequent callers keep the answer for a while."""
    now, total, on, paused = store.now(), 0, 0, 0
    broken: list[str] = []
    failing: list[FailingFacts] = []
    for schedule in all_schedules(store):
        total += 1
        if total > MOST_READ:
            break
        state = schedule_state(schedule, now)
        on += state == "on"
        paused += state == "paused"
        if state == "broken":
            broken.append(schedule.id)
        elif state == "on" and schedule.last.is_failing:
            failing.append(_failing(schedule))
    return SchedulesFacts(
        total=min(total, MOST_READ),
        on=on,
        paused=paused,
        broken=broken,
        failing=failing,
        is_truncated=total > MOST_READ,
    )


def read_standing(store: Store, schedules: SchedulesFacts) -> StandingFacts:
    now, queues, nodes = store.now(), store.list_queues(), store.list_nodes()
    alive, late = live_nodes(nodes, now), overdue_schedules(store, MOST_LATE)
    jobs = jobs_by_state(queues)
    workers = [node for node in alive if "worker" in node.roles]
    slots, silent_running = sum(node.concurrency for node in workers), len(jobs_of_silent_nodes(store, nodes, now))
    oldest = min((queue for queue in queues if queue.oldest_at is not None), key=_oldest_at, default=None)
    facts = StandingFacts(
        standing="well",
        at=datetime_of(now),
        schedules=schedules,
        jobs=jobs,
        running=jobs["running"],
        silent_running=silent_running,
        free=max(0, slots - (jobs["running"] - silent_running)),
        slots=slots,
        workers=len(workers),
        schedulers=sum("scheduler" in node.roles for node in alive),
        nodes=len(alive),
        last_worker_at=_last_beat(nodes, "worker"),
        last_scheduler_at=_last_beat(nodes, "scheduler"),
        oldest_seconds=None if oldest is None else max(0, now - _oldest_at(oldest)) / SECOND,
        oldest_queue=None if oldest is None else oldest.name,
        on_time=max(0, schedules.on - len({one.schedule_id for one in schedules.failing} | {one.id for one in late})),
        late=len(late),
        worst_seconds=max((now - (schedule.due_at or now) for schedule in late), default=0) / SECOND,
        alerts=len(open_alerts(store, now)),
    )
    facts.standing = standing_of(facts, nodes, is_sealed=store.sealed() is not None)
    return facts


def standing_of(facts: StandingFacts, nodes: list[Node], *, is_sealed: bool) -> Standing:
    """The worst that holds, in one word."""
    if is_sealed:
        return "sealed"
    if not nodes and not facts.schedules.total and not any(facts.jobs.values()):
        return "empty"
    if facts.schedules.on and not facts.schedulers:
        return "no_scheduler"
    if not facts.workers and (facts.jobs["queued"] or facts.schedules.on):
        return "no_worker"
    if facts.schedules.failing:
        return "failing"
    if facts.schedules.broken:
        return "broken"
    if facts.late:
        return "late"
    return "alerting" if facts.alerts else "well"


def _last_beat(nodes: list[Node], role: str) -> datetime | None:
    return optional_datetime(max((node.beat_at for node in nodes if role in node.roles), default=None))


def _failing(schedule: Schedule) -> FailingFacts:
    return FailingFacts(
        schedule_id=schedule.id,
        since=optional_datetime(schedule.last.success_at),
        error=(schedule.last_error or "").partition("\n")[0],
        job_id=schedule.last.job_id,
    )


def _oldest_at(queue: QueueInfo) -> int:
    return queue.oldest_at or 0
