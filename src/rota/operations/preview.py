"""Computes the times that a schedule would have, by the rule that saving it would apply, and writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.inspector.facts.cron import run_facts
from rota.inspector.facts.preview import PreviewFacts, TimesFacts
from rota.inspector.occurrences import coming_runs
from rota.inspector.schedule_warnings import schedule_warnings
from rota.model.micros import SECOND
from rota.model.schedules import edit as edits
from rota.model.schedules.never import check_new
from rota.model.schedules.schedule import Origin, problem_of
from rota.model.tenant import followed
from rota.operations.tenant_changes import check_tenants

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.schedules.schedule import Schedule, ScheduleSpec
    from rota.store.contract import Store

WEEK = 7 * 24 * 3600 * SECOND
FAR = 400 * 366 * 24 * 3600 * SECOND  # how far ahead the next runs are searched for
TIMING = ("trigger", "tz", "start", "end", "jitter", "max_runs", "tenant", "follows", "day_bounds")
NEW = "preview"  # the id for a schedule that does not exist


def preview_times(
    store: Store, spec: ScheduleSpec, before: Schedule | None, number: int, new_id: Callable[[], str]
) -> PreviewFacts:
    """The times that this definition would give to a schedule, or to the one that exists."""
    now = store.now()
    said = spec if before is None else _retimed(before.spec, spec)
    said = followed(said, check_tenants(store, {NEW: said}).get(said.tenant))
    after = _after(before, said, now, new_id)
    if before is None:
        check_new(after, now)
    times = _times(after, now, number)
    asked = msgspec.structs.replace(after, spec=msgspec.structs.replace(after.spec, task=spec.task or after.spec.task))
    return PreviewFacts(
        sentence=times.sentence,
        rule=times.rule,
        tz=times.tz,
        runs=times.runs,
        week=times.week,
        trigger=said.trigger,
        warnings=schedule_warnings(store, asked, now, [run.utc for run in times.runs]),
        before=None if before is None or problem_of(before) is not None else _times(before, now, number),
    )


def _retimed(spec: ScheduleSpec, times: ScheduleSpec) -> ScheduleSpec:
    return msgspec.structs.replace(spec, **{name: getattr(times, name) for name in TIMING})


def _after(before: Schedule | None, spec: ScheduleSpec, now: int, new_id: Callable[[], str]) -> Schedule:
    origin = Origin() if before is None else msgspec.structs.replace(before.origin, is_retired=False)
    name = NEW if before is None else before.id
    edit = edits.register(before, name, spec, origin, now, new_id)
    return edit.after if edit is not None or before is None else before  # type: ignore[union-attr]  # a new one has an edit


def _times(schedule: Schedule, now: int, number: int) -> TimesFacts:
    """The times of a schedule as if it were on: a pause does not affect its rule."""
    on = msgspec.structs.replace(schedule, pause=None, tenant_pause=None, is_enabled=True)
    runs = [run for coming in coming_runs([on], now, now + FAR, number) for run in coming.runs]
    week = sum(coming.count for coming in coming_runs([on], now, now + WEEK, 1))
    return TimesFacts(
        sentence=on.trigger.explain(),
        rule=str(on.trigger),
        tz=on.spec.tz,
        runs=[run_facts(run) for run in runs[:number]],
        week=week,
    )
