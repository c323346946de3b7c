"""The rules of lint: what it looks for in settings and in an app's code. Nothing here opens a store."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.cli.checks import Check
from rota.cli.output import say
from rota.cli.target import BrokenTarget, load_target, make_importable, target_from
from rota.cli.words import count, first_line, listed
from rota.clock import utc_now
from rota.config.environment import near_misses
from rota.config.loader import resolve
from rota.engine.executors.sources import task_in
from rota.errors import BadSettings, BadTarget, RotaError
from rota.model.micros import SECOND, datetime_of, micros_of, span_of
from rota.model.schedule import bound_trigger
from rota.triggers.duration import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rota.app import App
    from rota.config.loader import Resolved
    from rota.model.schedule import ScheduleSpec
    from rota.tasks import Task
    from rota.triggers import Trigger

HOUR = span_of("1h")
CLOCK_CHANGES = {"gap", "repeat"}


def findings(target: str | None) -> Iterator[Check]:
    """All that there is to say about the settings here, and about the app that a target or they name."""
    found: Resolved | None = None
    try:
        found = resolve(Path.cwd())
    except BadSettings as err:
        for complaint in err.complaints:
            yield Check("settings", "problem", complaint)
    else:
        yield _settings(found)
    for name, meant in near_misses(os.environ):
        yield Check("settings", "warning", f"{name} is set, and is no setting", f"did you mean {meant}?")
    yield from _target(target or (target_from(found) if found else None), found)


def _settings(found: Resolved) -> Check:
    said = sorted({origin.kind for origin in found.origins.values()} - {"default"})
    if found.file is None:
        return Check("settings", "ok", f"no rota.yaml; {'variables and ' if said else ''}defaults count")
    return Check("settings", "ok", f"{found.file} is understood")


def _target(text: str | None, found: Resolved | None) -> Iterator[Check]:
    if text is None:
        if found is not None:
            todo = "name one: `rota lint jobs.py`, ROTA_APP, or `app: jobs.py` in rota.yaml"
            yield Check("app", "warning", "no app is named, so no code was looked at", todo)
        return
    if found is not None and found.folder is not None:
        make_importable(found.folder)
    try:
        loaded = load_target(text)
    except BadTarget as err:
        if isinstance(err, BrokenTarget):
            say(f"{err.trace}\n")
        yield Check("app", "problem", str(err))
        return
    app = loaded.app
    yield Check("app", "ok", f"{loaded.name} is loaded: {count(len(app.registry), 'task')}")
    yield from _tasks(app)
    if found is not None:
        yield from _app(app)


def _app(app: App) -> Iterator[Check]:
    """What follows from code and settings together."""
    yield from _overruled(app)
    yield from _store(app)
    yield from _queues(app)
    yield Check("schedules", "ok", f"{count(len(app.declared), 'schedule')} declared in code")
    for schedule_id, spec in app.declared.items():
        yield from _schedule(app, schedule_id, spec)


def _tasks(app: App) -> Iterator[Check]:
    if not len(app.registry):
        todo = "decorate a function with @app.task, and import the modules that hold tasks where the app is made"
        yield Check("tasks", "problem", "the app has no task, so there is nothing to run", todo)
    for task in app.registry:
        if task.options.executor == "process" and not _is_findable(task):
            module = task.function.__module__
            yield Check(
                "tasks",
                "problem",
                f"{task.name} has executor='process', and a process that imports {module} does not find it there",
                f"declare it in {module} itself, with @app.task above the function",
            )


def _is_findable(task: Task[Any, Any]) -> bool:
    """Whether a process that imports the function's module has the task."""
    module = sys.modules.get(task.function.__module__)
    return module is not None and task_in(module, task.name, task.function.__qualname__) is task


def _overruled(app: App) -> Iterator[Check]:
    for overruled in app.resolved.overruled:
        yield Check(
            "settings",
            "warning",
            f"{overruled.origin.words} says {overruled.path}, and so does the code, which counts",
            f"leave {overruled.path.partition('.')[0]} out of App(…), or out of the settings",
        )


def _store(app: App) -> Iterator[Check]:
    try:
        store = app.find_store()
    except RotaError as err:
        yield Check("store", "problem", str(err))
        return
    yield Check("store", "ok", f"{store.describe()} would be used; it was not opened")
    processes = app.settings.worker.processes
    if not store.features.is_shared and processes > 1:
        todo = "use a store that processes share, such as sqlite:///jobs.db"
        yield Check("store", "problem", f"{processes} worker processes cannot share it (worker.processes)", todo)


def _queues(app: App) -> Iterator[Check]:
    """Queues into which jobs go and from which no worker takes them, as far as the settings tell."""
    taken = app.settings.worker.queues
    if taken is None:
        return
    users: dict[str, list[str]] = {}
    for name, queue in [
        *((task.name, task.options.queue) for task in app.registry),
        *((f"schedule {schedule_id}", spec.queue) for schedule_id, spec in app.declared.items()),
    ]:
        if queue not in taken:
            users.setdefault(queue, []).append(name)
    where = app.resolved.origins["worker.queues"].words
    for queue, names in users.items():
        finding = f"{listed(names)} put jobs into queue {queue}, which worker.queues ({where}) leaves out"
        yield Check("queues", "warning", finding, f"add it there, or run a worker with `-q {queue}`")


def _schedule(app: App, schedule_id: str, spec: ScheduleSpec) -> Iterator[Check]:
    about = "schedules"
    if app.registry.find(spec.task) is None:
        yield Check(about, "problem", f"{schedule_id} runs {spec.task}, a task that this app does not have")
    now = utc_now()
    try:
        trigger = bound_trigger(spec.trigger, spec.tz, spec.start or micros_of(now) // SECOND * SECOND)
    except RotaError as err:
        yield Check(about, "problem", f"{schedule_id}: {err}")
        return
    runs = _runs(trigger, spec, now)
    if not runs:
        yield Check(
            about, "warning", f"{schedule_id} has no run ahead ({trigger.explain()})", "take it out, or mend it"
        )
    gap = micros_of(runs[1]) - micros_of(runs[0]) if len(runs) > 1 else None
    if gap is not None and spec.jitter >= gap:
        jitter, interval = text_of(spec.jitter // SECOND), text_of(gap // SECOND)
        todo = "choose less jitter, so that runs keep their order"
        yield Check(about, "warning", f"{schedule_id} has a jitter of {jitter} and runs every {interval}", todo)
    for caveat in trigger.warnings(after=now):
        if gap is None or gap >= HOUR or caveat.kind not in CLOCK_CHANGES:  # what runs all the time loses little
            yield Check(about, "warning", f"{schedule_id}: {first_line(caveat.message)}")


def _runs(trigger: Trigger, spec: ScheduleSpec, now: datetime) -> list[datetime]:
    start = datetime_of(spec.start) if spec.start is not None else now
    runs = trigger.next_runs(2, after=max(now, start))
    return [run for run in runs if spec.end is None or micros_of(run) <= spec.end]
