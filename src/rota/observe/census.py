"""Counts schedules by state. No store counts them, so they are read: seldom, and a limited number."""

from __future__ import annotations

import threading
import time
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from rota.errors import RotaError
from rota.inspector.reading import all_schedules
from rota.inspector.schedule_state import STATES, schedule_state
from rota.model.micros import SECOND
from rota.model.schedules.firing import start_of
from rota.model.schedules.slots import coming_slot
from rota.observe.families import gauge
from rota.observe.numbers import MOST_SCHEDULES, OTHER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from rota.model.schedules.schedule import Schedule
    from rota.observe.numbers import FirstIds
    from rota.store.contract import Store

MOST_READ = 10_000  # schedules that one census reads
LEAST_AGE = 10.0  # seconds for which a census holds at least, …
SHARE = 20  # … and so many times as long as it took: reading is a twentieth of the time at most


class Seen(Struct, frozen=True):
    """The result of one reading of the schedules."""

    states: dict[tuple[str, ...], float]
    failing: dict[tuple[str, ...], float]
    last_runs: dict[tuple[str, ...], float]
    next_runs: dict[tuple[str, ...], float]
    is_cut: bool


class Census:
    """Reads schedules when its last reading is old; the first 1,000 by id have numbers of their own."""

    def __init__(self, first: FirstIds) -> None:
        self._first = first
        self._lock = threading.Lock()
        self._seen: Seen | None = None
        self._holds_until = 0.0

    def families(self, store: Store, now: int) -> Iterator[Metric]:
        seen = self._current(store, now)
        of = ("schedule_id",)
        yield gauge("scheduler_last_run_timestamp", "When a schedule last made a job.", of, seen.last_runs)
        yield gauge(
            "scheduler_next_run_timestamp", "When a schedule's next job may start, jitter included.", of, seen.next_runs
        )
        yield gauge("rota_schedules", "Schedules by what they are.", ("state",), seen.states)
        yield gauge(
            "rota_schedules_failing",
            "Schedules that are on and fail: a run failed for good, and none has succeeded since.",
            (),
            {(): sum(seen.failing.values())},
        )
        text = "Whether a schedule that is on fails (of other: how many do)."
        yield gauge("rota_schedule_failing", text, of, seen.failing)
        text = f"Whether there are more schedules than the {MOST_READ:,} that these numbers are about."
        yield gauge("rota_schedules_truncated", text, (), {(): float(seen.is_cut)})

    def _current(self, store: Store, now: int) -> Seen:
        with self._lock:
            began = time.monotonic()
            if self._seen is None or began >= self._holds_until:
                self._seen = self._read(store, now)
                ended = time.monotonic()
                self._holds_until = ended + max(LEAST_AGE, SHARE * (ended - began))
            return self._seen

    def _read(self, store: Store, now: int) -> Seen:
        states: dict[tuple[str, ...], float] = {(state,): 0.0 for state in STATES}
        failing: dict[tuple[str, ...], float] = {}
        own: list[str] = []  # those with numbers of their own
        last_runs: dict[tuple[str, ...], float] = {}
        next_runs: dict[tuple[str, ...], float] = {}
        schedules = all_schedules(store)
        for place, schedule in enumerate(islice(schedules, MOST_READ)):
            if place < MOST_SCHEDULES:
                own.append(schedule.id)
            state = schedule_state(schedule, now)
            states[state,] += 1
            label = (schedule.id if place < MOST_SCHEDULES else OTHER,)
            if state == "on":
                failing[label] = failing.get(label, 0.0) + schedule.last.is_failing
            last, coming = schedule.last.enqueued_at, _next_run(schedule, state, now)
            if last is not None:
                last_runs[label] = max(last / SECOND, last_runs.get(label, 0.0))
            if coming is not None:
                next_runs[label] = min(coming / SECOND, next_runs.get(label, coming / SECOND))
        self._first.note(own, is_all=len(own) < MOST_SCHEDULES)
        is_cut = next(schedules, None) is not None
        return Seen(states=states, failing=failing, last_runs=last_runs, next_runs=next_runs, is_cut=is_cut)


def _next_run(schedule: Schedule, state: str, now: int) -> int | None:
    """When its next job may start, created already or not; None if there is none to wait for."""
    if state != "on":
        return None
    try:
        slot = schedule.next_at if not schedule.has_jobs_ahead else coming_slot(schedule, now)
        return None if slot is None else start_of(schedule, slot)
    except RotaError:
        return None  # the stored rule cannot be evaluated; the scheduler reports it
