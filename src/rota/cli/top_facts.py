"""Reads what `top` shows, by few reads of bounded size, and computes how fast the queues move."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from rota.cli.job_page import call_of
from rota.cli.schedule_page import read_schedules
from rota.cli.words import first_line
from rota.inspector.facts.node import NodeFacts, node_facts
from rota.inspector.facts.queue import QueueFacts, queues_facts
from rota.inspector.facts.values import filled
from rota.model.jobs.job import State
from rota.model.micros import SECOND, datetime_of, optional_datetime
from rota.store.contract import JobFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.cli.schedule_page import ShownSchedule
    from rota.model.jobs.job import Job
    from rota.model.secrets.redaction import Redaction
    from rota.store.contract import QueueInfo, Store

MOST_RUNNING = 50
MOST_FAILURES = 20
MOST_SCHEDULES = 1_000  # that are looked through for those which fire next
NEXT_SHOWN = 20
WINDOW = 10 * SECOND  # over which a rate is measured: one second alone makes slow queues flicker


class TopQueue(QueueFacts, kw_only=True):
    """A queue in numbers, and how many of its jobs end in a second (None: not known yet)."""

    per_second: float | None


class TopJob(Struct, kw_only=True):
    """A job that runs."""

    id: str
    call: str
    queue: str
    seconds: float  # since its attempt began
    progress: str | None


class TopFailure(Struct, kw_only=True):
    """A job that failed for good."""

    id: str
    call: str
    at: datetime
    error: str


class TopSchedule(Struct, kw_only=True):
    """A schedule that will fire."""

    id: str
    sentence: str
    next_run: datetime


class TopFacts(Struct, kw_only=True):
    """A store at one moment; lists are cut, and a total says how much there is."""

    store: str
    at: datetime
    nodes: list[NodeFacts]
    queues: list[TopQueue]
    running: list[TopJob]
    running_total: int
    failures: list[TopFailure]
    schedules: list[TopSchedule]
    schedules_seen: int
    schedules_cut: bool  # there are more than were looked through


class Pace:
    """Computes how fast queues move, from the totals of ended jobs over the last few seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, dict[str, int]]] = deque()

    def note(self, now: int, queues: Sequence[QueueInfo]) -> dict[str, float]:
        """Remember these numbers; return the jobs per second by queue, empty at the first call."""
        ended = {queue.name: sum(queue.totals.values()) for queue in queues}
        self._seen.append((now, ended))
        while len(self._seen) > 2 and self._seen[1][0] <= now - WINDOW:
            self._seen.popleft()
        begun, before = self._seen[0]
        if now <= begun:
            return {}
        return {name: max(0, number - before.get(name, 0)) * SECOND / (now - begun) for name, number in ended.items()}


def look(store: Store, pace: Pace, redaction: Redaction) -> TopFacts:
    """Read what one screen shows."""
    now = store.now()
    queues = store.list_queues()
    rates = pace.note(now, queues)
    running = store.list_jobs(JobFilter(states=(State.RUNNING,)), limit=MOST_RUNNING).items
    failed = store.list_jobs(JobFilter(states=(State.FAILED,)), limit=MOST_FAILURES).items
    schedules = list(islice(read_schedules(store), MOST_SCHEDULES + 1))
    return TopFacts(
        store=store.describe(),
        at=datetime_of(now),
        nodes=sorted((node_facts(node, now) for node in store.list_nodes()), key=lambda node: (node.state, node.id)),
        queues=[_queue(queue, rates) for queue in queues_facts(store, queues)],
        running=sorted((_running(job, now, redaction) for job in running), key=lambda job: -job.seconds),
        running_total=sum(queue.counts.get("running", 0) for queue in queues),
        failures=sorted((_failure(job, redaction) for job in failed), key=lambda job: job.at, reverse=True),
        schedules=_next(schedules[:MOST_SCHEDULES]),
        schedules_seen=min(len(schedules), MOST_SCHEDULES),
        schedules_cut=len(schedules) > MOST_SCHEDULES,
    )


def _queue(queue: QueueFacts, rates: dict[str, float]) -> TopQueue:
    return filled(TopQueue, queue, per_second=rates.get(queue.name))


def _running(job: Job, now: int, redaction: Redaction) -> TopJob:
    begun = job.started_at or now
    seconds = max(0, now - begun) / SECOND
    words = call_of(job, redaction)
    return TopJob(id=job.id, call=words, queue=job.queue, seconds=seconds, progress=job.progress)


def _failure(job: Job, redaction: Redaction) -> TopFailure:
    at = optional_datetime(job.finished_at) or datetime_of(job.created_at)
    return TopFailure(id=job.id, call=call_of(job, redaction), at=at, error=first_line(job.error))


def _next(schedules: list[ShownSchedule]) -> list[TopSchedule]:
    """The schedules that fire first. One that is paused, disabled or broken never fires."""
    coming = [
        TopSchedule(id=shown.id, sentence=shown.sentence, next_run=shown.next_run.astimezone(UTC))
        for shown in schedules
        if shown.next_run is not None
    ]
    return sorted(coming, key=lambda schedule: (schedule.next_run, schedule.id))[:NEXT_SHOWN]
