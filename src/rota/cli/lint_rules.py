"""Defines the rules of lint: what it looks for in settings and in an app's code. They open no store."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.app import internals
from rota.cli.checks import Check, Verdict
from rota.cli.lint_code import salvaged
from rota.cli.lint_schedules import (
    code_tenant_findings,
    file_timings,
    schedule_findings,
    tenant_findings,
    timing_of,
)
from rota.cli.output import say
from rota.cli.target import BrokenTarget, find_app, load_target, make_importable, target_from
from rota.cli.words import count, listed
from rota.config.environment import near_misses
from rota.config.loader import survey
from rota.config.words import meant, shown_path
from rota.deploy.deploy import further_mistakes, survey_deploy
from rota.engine.executors.sources import task_in
from rota.errors import BadPayload, BadSettings, BadTarget, RotaError, UnknownTask
from rota.model.collection import sync_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from rota.app import App
    from rota.cli.lint_code import Salvage
    from rota.config.declared import Declarations, FileSource
    from rota.config.loader import Resolved
    from rota.deploy.deploy import Deploy
    from rota.tasks.task import Task


SOURCES = ": sources."  # in complaints about what a file declares


def findings(target: str | None, *, must_load: bool = True) -> Iterator[Check]:
    """All that there is to say about the settings here, and about the app that a target or they name.

    If only a file is asked about, an app that it names and that cannot be loaded here is no problem of the file.
    """
    found: Resolved | None = None
    try:
        found, complaints = survey(Path.cwd())
    except BadSettings as err:  # the file that is named is not there
        complaints = list(err.complaints)
    yield from (Check("settings", "problem", complaint) for complaint in complaints)
    if found is not None and not complaints:
        yield _settings(found)
    for name, close in near_misses(os.environ):
        yield Check("settings", "warning", f"{name} is set, and is no setting", f"did you mean {close}?")
    if found is not None:
        yield from _declared(found, is_whole=not complaints)
    yield from _target(target or (target_from(found) if found else None), found, must_load=must_load)


def _settings(found: Resolved) -> Check:
    said = sorted({origin.kind for origin in found.origins.values()} - {"default"})
    if found.file is None:
        return Check("settings", "ok", f"no rota.yaml; {'variables and ' if said else ''}defaults count")
    return Check("settings", "ok", f"{found.file} is understood")


def _declared(found: Resolved, *, is_whole: bool) -> Iterator[Check]:
    """The findings about a file's schedules and tenants that need no app."""
    parts = {
        "schedule": found.declared.schedules,
        "tenant": found.declared.tenants,
        "source": found.declared.sources,
        "document queue": found.declared.documents,
        "alert rule": found.declared.alerts,
    }
    said = [count(len(items), noun) for noun, items in parts.items() if items]
    if said and found.file is not None and is_whole:
        yield Check("declared", "ok", f"{listed(said)} in {shown_path(found.file)}")
    yield from tenant_findings(found.declared, is_whole=is_whole)
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
        with salvaged(err.__cause__) as salvage:
            yield from _broken(text, err, salvage, found, must_load=must_load)
        return
    yield Check("app", "ok", f"{loaded.name} is loaded: {count(len(internals(loaded.app).registry), 'task')}")
    yield from _tasks(loaded.app, found)
    yield from _app(loaded.app, found)


def _broken(
    text: str, err: BadTarget, salvage: Salvage | None, found: Resolved | None, *, must_load: bool
) -> Iterator[Check]:
    """Why an app cannot be loaded, and what else is wrong with the part of its code that can be run."""
    verdict: Verdict = "problem" if must_load else "warning"
    app = None if salvage is None else _salvaged_app(text, salvage)
    mistakes = salvage.mistakes if salvage is not None else []
    first = f"{text} cannot be imported" if mistakes else str(err)
    yield Check("app", verdict, f"{first}{_unchecked(found) if app is None else ''}")
    yield from (Check("app", verdict, mistake) for mistake in mistakes)
    if app is not None and salvage is not None:
        yield from _tasks(app, found) if len(internals(app).registry) else ()
        yield from _app(app, found, missing=frozenset(salvage.missing))


def _salvaged_app(text: str, salvage: Salvage) -> App | None:
    """The app, where the mistakes are in the file that the target names."""
    place, _, attribute = text.partition(":")
    if salvage.module.__name__ not in {place, Path(place).stem}:
        return None
    try:
        return find_app(salvage.module, place, attribute).app
    except BadTarget:
        return None


def _unchecked(found: Resolved | None) -> str:
    """The schedules that were not checked, because the file's app is not known."""
    declared = (found.declared, found.declared.mistaken) if found is not None else ()
    number = sum(len(part.schedules) + len(part.sources) for part in declared)
    return f"; the tasks that the file names in {count(number, 'place')} were not checked" if number else ""


def _app(app: App, found: Resolved | None, missing: frozenset[str] = frozenset()) -> Iterator[Check]:
    """The findings about code and settings together. An error about something `missing` was reported before."""
    if found is None:
        return
    internals(app).configuration.read(lambda folder, said: survey(folder, said)[0])  # the errors were reported already
    yield from _overruled(app)
    yield from _store(app)
    deploy, complaints = survey_deploy(app.name, app.version, internals(app).declared, found, internals(app).registry)
    for complaint in complaints:
        if SOURCES not in complaint:  # those are reported below
            yield Check("schedules", "problem", complaint)
    yield from _queues(app, deploy)
    yield Check("schedules", "ok", f"{count(len(internals(app).declared), 'schedule')} declared in code")
    yield from _file_schedules(app, deploy, found, missing)
    for source in (*found.declared.sources, *found.declared.mistaken.sources):
        if _last(source.task) not in missing:
            yield from _source(app, source, tuple(complaints))
    yield from _document_queues(app, missing)
    yield from _alerts(app)
    yield from _watched(app, deploy, found.declared)
    for schedule_id, spec in internals(app).declared.items():
        if internals(app).registry.find(spec.task) is None:
            yield Check("schedules", "problem", f"{schedule_id} runs {spec.task}, a task that this app does not have")
        yield from code_tenant_findings(schedule_id, spec, found.declared)
        yield from schedule_findings(timing_of(schedule_id, spec))


def _document_queues(app: App, missing: frozenset[str]) -> Iterator[Check]:
    """Handlers and sources of documents that cannot be loaded. No server is asked: `rota documents check` does that."""
    if not internals(app).has_documents:
        return
    known = app.documents.catalogue
    for said in known.declared():
        if said.handler.rpartition(".")[2] not in missing:
            for finding in known.mistakes(said.name):
                yield Check("documents", "problem", finding.message, finding.command)


def _alerts(app: App) -> Iterator[Check]:
    """Rules and channels that do not fit together, and what this machine has no setting or variable for."""
    plan = app.alerts.plan
    yield from (Check("alerts", "problem", complaint) for complaint in plan.mistakes())
    todo = "set it where the nodes run; on this machine it may be missing"
    yield from (Check("alerts", "warning", complaint, todo) for complaint in plan.missing())


def _watched(app: App, deploy: Deploy, declared: Declarations) -> Iterator[Check]:
    """Alert rules about one schedule or queue that nothing declares."""
    schedules = {name: spec for _, specs in deploy.parts() for name, spec in specs.items()}
    queues = {
        *(task.options.queue for task in internals(app).registry),
        *(spec.queue for spec in schedules.values()),
        *(tenant.options["queue"] for tenant in declared.tenants if "queue" in tenant.options),
        *(source.options["queue"] for source in declared.sources if "queue" in source.options),
        *(app.settings.worker.queues or ()),
    }
    known: dict[str, Collection[str]] = {"schedule": schedules, "queue": queues}
    for rule in app.alerts.plan.rules.values():
        if rule.is_exact and rule.selects not in known.get(rule.kind, (rule.selects,)) and not sync_of(rule.selects):
            close = meant(rule.selects, known[rule.kind])
            finding = f"alert rule {rule.name} watches the {rule.kind} {rule.selects}, which the app does not declare"
            todo = f"did you mean {close}?" if close else f"keep it if the {rule.kind} is made at run time"
            yield Check("alerts", "warning", f"{rule.place}: {finding}" if rule.place else finding, todo)


def _file_schedules(app: App, deploy: Deploy, found: Resolved, missing: frozenset[str]) -> Iterator[Check]:
    """Schedules of the file whose task or arguments are wrong, those with another mistake among them."""
    tasks = {one.id: one.task for one in found.declared.schedules}
    for schedule_id, complaint in deploy.unknown_tasks.items():
        if SOURCES not in complaint and _last(tasks[schedule_id]) not in missing:
            yield Check("schedules", "problem", complaint)
    for one, complaint in further_mistakes(app.name, found, internals(app).registry, internals(app).declared):
        if _last(one.task) not in missing:
            yield Check("schedules", "problem", complaint)


def _last(task: str) -> str:
    return task.rpartition(".")[2]


def _source(app: App, source: FileSource, complaints: tuple[str, ...]) -> Iterator[Check]:
    """Whether the app has the task that syncs a source, whether it can be called as sources are, and what else is."""
    try:
        internals(app).registry.get(source.task).signature.check((source.name, "collection"), {})
    except UnknownTask as err:
        yield Check("sources", "problem", f"{source.place}: sources.{source.name}.task: {err}")
    except BadPayload as err:
        todo = "let it take the source's name and the collection's, as in def sync(source, collection)"
        yield Check("sources", "problem", f"{source.place}: sources.{source.name}.task: {err}", todo)
    else:
        head = f"{source.place}: sources.{source.name}: "
        yield from (Check("sources", "problem", complaint) for complaint in complaints if complaint.startswith(head))


def _tasks(app: App, found: Resolved | None) -> Iterator[Check]:
    # The file may be unreadable, so the app cannot be asked for all of its queues.
    has_queues = internals(app).document_queues or (found is not None and found.declared.documents)
    if not len(internals(app).registry) and not has_queues:
        todo = "decorate a function with @app.task, and import the modules that hold tasks where the app is made"
        yield Check("tasks", "problem", "the app has no task, so there is nothing to run", todo)
    for task in internals(app).registry:
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
    for overruled in internals(app).resolved.overruled:
        yield Check(
            "settings",
            "warning",
            f"{overruled.origin.words} says {overruled.path}, and so does the code, which counts",
            f"leave {overruled.path.partition('.')[0]} out of App(…), or out of the settings",
        )


def _store(app: App) -> Iterator[Check]:
    try:
        store = internals(app).store.find()
    except RotaError as err:
        yield Check("store", "problem", str(err))
        return
    yield Check("store", "ok", f"{store.describe()} would be used; it was not opened")
    processes = app.settings.worker.processes
    if not store.features.is_shared and processes > 1:
        todo = "use a store that processes share, such as sqlite:///jobs.db"
        yield Check("store", "problem", f"{processes} worker processes cannot share it (worker.processes)", todo)


def _queues(app: App, deploy: Deploy) -> Iterator[Check]:
    """Queues into which jobs go and from which no worker takes them, as far as the settings say."""
    taken = app.settings.worker.queues
    if taken is None:
        return
    users: dict[str, list[str]] = {}
    for name, queue in [
        *((task.name, task.options.queue) for task in internals(app).registry),
        *((f"schedule {name}", spec.queue) for _, specs in deploy.parts() for name, spec in specs.items()),
    ]:
        if queue not in taken:
            users.setdefault(queue, []).append(name)
    where = internals(app).resolved.origins["worker.queues"].words
    for queue, names in users.items():
        finding = f"{listed(names)} put jobs into queue {queue}, which worker.queues ({where}) leaves out"
        yield Check("queues", "warning", finding, f"add it there, or run a worker with `-q {queue}`")
