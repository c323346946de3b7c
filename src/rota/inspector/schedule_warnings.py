"""Finds warnings about the times of a schedule: clock changes, rare dates, and runs that take longer than the time
between two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.inspector.facts.cron import CaveatFacts
from rota.inspector.facts.values import filled
from rota.inspector.occurrences import coming_runs
from rota.model.jobs.job import State
from rota.model.micros import SECOND, datetime_of, micros_of, span_text
from rota.model.schedules.pace import is_too_fast, shortest_gap, usual_duration
from rota.model.schedules.schedule import problem_of
from rota.store.contract import JobFilter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Store

RUNS = 20  # successes that show how long a task usually runs
TIMES = 10  # of a schedule, of which the two closest are compared
FAR = 400 * 24 * 3600 * SECOND


def schedule_warnings(
    store: Store, schedule: Schedule, now: int, runs: Sequence[datetime] | None = None
) -> list[CaveatFacts]:
    """All warnings about a schedule; `runs` are its next ones, if they are known.

    A schedule that cannot be evaluated has no times to warn about. Its problem is shown by itself.
    """
    if problem_of(schedule) is not None:
        return []
    if runs is None:
        coming = coming_runs([schedule], now, now + FAR, TIMES)
        runs = [run for one in coming for run in one.runs]
    caveats = [filled(CaveatFacts, caveat) for caveat in schedule.trigger.warnings(after=datetime_of(now))]
    return [*caveats, *_too_fast(store, schedule, runs)]


def _too_fast(store: Store, schedule: Schedule, runs: Sequence[datetime]) -> Iterator[CaveatFacts]:
    gap = shortest_gap([micros_of(run) for run in runs])
    if gap is None:
        return
    usual = _usual(store, schedule)
    if usual is None or not is_too_fast(usual, gap):
        return
    task = schedule.spec.task
    spans = {"took": span_text(usual // SECOND * SECOND), "apart": span_text(gap // SECOND * SECOND)}
    words = (
        f"a run of {task} usually takes {spans['took']}, and two of its runs are only {spans['apart']} apart: "
        "its overlap policy decides what becomes of the second"
    )
    yield CaveatFacts(kind="slow", message=words, at=None, code="slow", values={"task": task, **spans})


def _usual(store: Store, schedule: Schedule) -> int | None:
    """The usual duration, by the last successes of its task, else by its own last run, which may have failed."""
    where = JobFilter(task=schedule.spec.task, states=(State.SUCCEEDED,))
    found = usual_duration(store.list_jobs(where, limit=RUNS).items)
    return schedule.last.duration if found is None else found
