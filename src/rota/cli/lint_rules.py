"""The rules of lint: what it looks for in settings and in an app's code. Nothing here opens a store."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.cli.checks import Check, Verdict
from rota.cli.lint_code import mistakes_from
from rota.cli.lint_schedules import file_timings, schedule_findings, tenant_findings, timing_of
from rota.cli.output import say
from rota.cli.target import BrokenTarget, load_target, make_importable, target_from
from rota.cli.words import count, listed
from rota.config.environment import near_misses
from rota.config.loader import resolve
from rota.config.words import shown_path
from rota.deploy.deploy import Deploy, deploy_of
from rota.engine.executors.sources import task_in
from rota.errors import BadPayload, BadSettings, BadTarget, RotaError, UnknownTask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.app import App
    from rota.config.declared import FileSource
    from rota.config.loader import Resolved
    from rota.tasks.task import Task


SOURCES = ": sources."  # in complaints about what a file declares


def findings(target: str | None, *, must_load: bool = True) -> Iterator[Check]:
    """All that there is to say about the settings here, and about the app that a target or they name.

    Where only a file is asked about, an app that it names and that cannot be loaded here is no problem of the file.
    """
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
    if found is not None:
        yield from _declared(found)
    yield from _target(target or (target_from(found) if found else None), found, must_load=must_load)


def _settings(found: Resolved) -> Check:
    said = sorted({origin.kind for origin in found.origins.values()} - {"default"})
    if found.file is None:
        return Check("settings", "ok", f"no rota.yaml; {'variables and ' if said else ''}defaults count")
    return Check("settings", "ok", f"{found.file} is understood")


def _declared(found: Resolved) -> Iterator[Check]:
    """What can be said of a file's schedules and tenants without its app."""
    parts = {"schedule": found.declared.schedules, "tenant": found.declared.tenants, "source": found.declared.sources}
    said = [count(len(items), noun) for noun, items in parts.items() if items]
    if said and found.file is not None:
        yield Check("declared", "ok", f"{listed(said)} in {shown_path(found.file)}")
    yield from tenant_findings(found.declared)
    for timing in file_timings(found.declared, found.settings.tz):
        yield from schedule_findings(timing)


def _target(text: str | None, found: Resolved | None, *, must_load: bool) -> Iterator[Check]:
    if text is None:
        if found is not None:
            todo = "name one: `rota lint jobs.py`, ROTA_APP, or `app: jobs.py` in rota.yaml"
            yield Check("app", "warning", f"no app is named, so no code was looked at{_unchecked(found)}", todo)
        return
    if found is not None and found.folder is not None:
        make_importable(found.folder)
    try:
        loaded = load_target(text)
    except BadTarget as err:
        if isinstance(err, BrokenTarget):
            say(f"{err.trace}\n")
        verdict: Verdict = "problem" if must_load else "warning"
        yield Check("app", verdict, f"{err}{_unchecked(found)}")
        for mistake in mistakes_from(err.__cause__)[1:]:  # the first is what ended the import
            yield Check("app", verdict, mistake)
        return
    app = loaded.app
    yield Check("app", "ok", f"{loaded.name} is loaded: {count(len(app.registry), 'task')}")
    yield from _tasks(app)
    if found is not None:
        yield from _app(app, found)


def _unchecked(found: Resolved | None) -> str:
    """What is left open about a file whose app is not known."""
    number = len(found.declared.schedules) + len(found.declared.sources) if found is not None else 0
    return f"; the tasks that the file names in {count(number, 'place')} were not checked" if number else ""


def _app(app: App, found: Resolved) -> Iterator[Check]:
    """What follows from code and settings together."""
    yield from _overruled(app)
    yield from _store(app)
    complaints: tuple[str, ...] = ()
    try:
        deploy = deploy_of(app.name, app.version, app.declared, found, app.registry)
    except BadSettings as err:
        complaints = tuple(err.complaints)
        for complaint in complaints:
            if SOURCES not in complaint:  # those are told below
                yield Check("schedules", "problem", complaint)
        deploy = Deploy(app=app.name, version=app.version, code=app.declared)
    yield from _queues(app, deploy)
    yield Check("schedules", "ok", f"{count(len(app.declared), 'schedule')} declared in code")
    for complaint in deploy.strangers.values():
        if SOURCES not in complaint:
            yield Check("schedules", "problem", complaint)
    for source in found.declared.sources:
        yield from _source(app, source, complaints)
    for schedule_id, spec in app.declared.items():
        if app.registry.find(spec.task) is None:
            yield Check("schedules", "problem", f"{schedule_id} runs {spec.task}, a task that this app does not have")
        yield from schedule_findings(timing_of(schedule_id, spec))


def _source(app: App, source: FileSource, complaints: tuple[str, ...]) -> Iterator[Check]:
    """Whether the app has the task that syncs a source, whether it can be called as sources are, and what else is."""
    try:
        app.registry.get(source.task).signature.check((source.name, source.collections[0].name), {})
    except UnknownTask as err:
        yield Check("sources", "problem", f"{source.place}: sources.{source.name}.task: {err}")
    except BadPayload as err:
        todo = "let it take the source's name and the collection's, as in def sync(source, collection)"
        yield Check("sources", "problem", f"{source.place}: sources.{source.name}.task: {err}", todo)
    else:
        head = f"{source.place}: sources.{source.name}: "
        yield from (Check("sources", "problem", complaint) for complaint in complaints if complaint.startswith(head))


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


def _queues(app: App, deploy: Deploy) -> Iterator[Check]:
    """Queues into which jobs go and from which no worker takes them, as far as the settings tell."""
    taken = app.settings.worker.queues
    if taken is None:
        return
    users: dict[str, list[str]] = {}
    for name, queue in [
        *((task.name, task.options.queue) for task in app.registry),
        *((f"schedule {name}", spec.queue) for _, specs in deploy.parts() for name, spec in specs.items()),
    ]:
        if queue not in taken:
            users.setdefault(queue, []).append(name)
    where = app.resolved.origins["worker.queues"].words
    for queue, names in users.items():
        finding = f"{listed(names)} put jobs into queue {queue}, which worker.queues ({where}) leaves out"
        yield Check("queues", "warning", finding, f"add it there, or run a worker with `-q {queue}`")
