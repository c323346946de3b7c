"""Plans the declarations of one version of an app, in code and in rota.yaml, against a store, or applies them.

Both are one deploy: the origin of a schedule is the code or the file, and the schedule may move from one to the other.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec import Struct

from rota.config.declared import FileTenant
from rota.config.words import meant
from rota.errors import BadSettings, RotaError, UnknownTask
from rota.model.collection import Sync
from rota.model.jobs.payload import Call
from rota.model.schedules.schedule import Origin, ScheduleSpec
from rota.model.secrets.redaction import DEFAULT, hidden
from rota.operations.collections import read_sources
from rota.operations.specs import make_spec
from rota.tasks.task import NOTHING_ELSE, Request
from rota.triggers import trigger_from_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rota.client.schedules import Schedules
    from rota.client.tenants import Tenants
    from rota.config.declared import FileSchedule, FileSource
    from rota.config.loader import Resolved
    from rota.deploy.tenants import PlannedTenant
    from rota.model.schedules.planning import Planned
    from rota.store.contract import Store
    from rota.tasks.task import Registry, Task

BATCH = 500
MOST_LOGGED = 3

log = logging.getLogger("rota.app")


class Deploy(Struct, frozen=True, kw_only=True):
    """All declarations of one version of an app."""

    app: str
    version: str
    code: dict[str, ScheduleSpec] = {}
    file: dict[str, ScheduleSpec] | None = None  # None: no rota.yaml was read, so nothing is known about its schedules
    unknown_tasks: dict[str, str] = {}  # schedules of the file whose task this app does not have: id -> complaint
    tenants: tuple[FileTenant, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The ids of all schedules that it declares."""
        return frozenset({*self.code, *(self.file or {}), *self.unknown_tasks})

    @property
    def file_origin(self) -> Origin:
        return Origin("file", self.app, self.version)

    def parts(self) -> Iterator[tuple[Origin, dict[str, ScheduleSpec]]]:
        """The schedules of the code, then those of the file."""
        yield Origin("code", self.app, self.version), self.code
        if self.file is not None:
            yield self.file_origin, self.file


class Target(Protocol):
    """The target of a deploy: an app's store, and the verbs about its content."""

    @property
    def schedules(self) -> Schedules: ...

    @property
    def tenants(self) -> Tenants: ...

    def open(self) -> Store: ...


class DeployPlan(NamedTuple):
    """The changes that a deploy would make: tenants first, because schedules follow them."""

    tenants: list[PlannedTenant]
    schedules: list[tuple[Origin, Planned]]


def deploy_of(app: str, version: str, code: dict[str, ScheduleSpec], resolved: Resolved, registry: Registry) -> Deploy:
    """The declarations of an app, with its file's tasks found and their arguments checked; BadSettings if there are
    mistakes."""
    found, complaints = survey_deploy(app, version, code, resolved, registry)
    if complaints:
        raise BadSettings(*complaints)
    return found


def survey_deploy(
    app: str, version: str, code: dict[str, ScheduleSpec], resolved: Resolved, registry: Registry
) -> tuple[Deploy, list[str]]:
    """The declarations of an app that can be read, and all complaints about the others."""
    if resolved.file is None:
        return Deploy(app=app, version=version, code=code), []
    specs: dict[str, ScheduleSpec] = {}
    unknown_tasks: dict[str, str] = {}
    complaints: list[str] = []
    for one in resolved.declared.schedules:
        try:
            specs[one.id] = _spec_of(one, registry, resolved.settings.tz, code)
        except UnknownTask:
            unknown_tasks[one.id] = _unknown_task(one, registry, app)
        except BadSettings as err:
            complaints += err.complaints
    said = resolved.declared.source_mapping()
    for source in resolved.declared.sources:
        try:
            specs |= _new_of(
                source, read_sources({source.name: said[source.name]}, registry, resolved.settings.tz), code
            )
        except UnknownTask as err:
            unknown_tasks |= dict.fromkeys(_ids_of(source), f"{source.place}: sources.{source.name}.task: {err}")
        except BadSettings as err:
            complaints += err.complaints
        except RotaError as err:
            complaints.append(f"{source.place}: sources.{source.name}: {err}")
    found = Deploy(
        app=app, version=version, code=code, file=specs, unknown_tasks=unknown_tasks, tenants=resolved.declared.tenants
    )
    return found, complaints


def further_mistakes(
    app: str, resolved: Resolved, registry: Registry, code: Mapping[str, ScheduleSpec]
) -> Iterator[tuple[FileSchedule, str]]:
    """Further complaints about the schedules of the file that have a mistake already, so that one run shows all."""
    for one in resolved.declared.mistaken.schedules:
        try:
            task = registry.get(one.task)
            if not one.misread and one.trigger:
                _spec_of(one, registry, resolved.settings.tz, code)
            elif not one.misread & {"args", "kwargs"}:
                yield from ((one, misfit) for misfit in _misfits(one, task))
        except UnknownTask:
            yield one, _unknown_task(one, registry, app)
        except BadSettings as err:
            yield from ((one, complaint) for complaint in err.complaints)


def bring(deploy: Deploy, target: Target) -> int:
    """Update a store to the declarations of a deploy. Returns how many schedules and tenants changed."""
    schedules = target.schedules
    changed = _bring_tenants(deploy, target)
    for origin, specs in deploy.parts():
        changed += sum(schedules.register(batch, origin) for batch in _batches(specs.items()))
    if deploy.version:
        changed += sum(schedules.retire_gone(deploy.names, origin) for origin, _ in deploy.parts())
    return changed


def plan(deploy: Deploy, target: Target) -> DeployPlan:
    """The changes that `bring` would make, and the schedules that would be retired. Nothing is changed."""
    from rota.deploy.tenants import plan_tenants, tenants_of  # noqa: PLC0415 - not needed to run

    coming = plan_tenants(target.open(), deploy.tenants, deploy.file_origin)
    found = [
        (origin, planned)
        for origin, specs in deploy.parts()
        for planned in target.schedules.plan(specs, origin, kept=deploy.names, tenants=tenants_of(coming))
    ]
    return DeployPlan(coming, found)


def apply(deploy: Deploy, target: Target, *, by: str = "") -> int:
    """Update the store to the declarations, and retire schedules of any version that they no longer have. Returns
    how many changed."""
    changed = _bring_tenants(deploy, target, by)
    planned = plan(deploy, target)  # now, because schedules have followed their tenants
    return changed + target.schedules.apply([one for _, one in planned.schedules], by=by)


def _bring_tenants(deploy: Deploy, target: Target, by: str = "") -> int:
    if not deploy.tenants:
        return 0
    from rota.deploy.tenants import bring_tenants  # noqa: PLC0415 - not needed without tenants

    return bring_tenants(target.open(), target.tenants, deploy.tenants, deploy.file_origin, by=by)


def warn_of_overruled(app: str, resolved: Resolved) -> None:
    """Warn of variables that have no effect, because the code sets another value."""
    for overruled in resolved.overruled:
        if overruled.origin.kind == "environment":
            words, path = overruled.origin.words, overruled.path
            log.warning("%s has no effect: the code of app %r gives its own %s", words, app, path)


def warn_of_unknown_tasks(deploy: Deploy) -> None:
    """Warn of schedules of the file that are ignored, because another app of the project may have their tasks."""
    complaints = list(deploy.unknown_tasks.values())
    for complaint in complaints[:MOST_LOGGED]:
        log.warning("%s; the schedule is left alone", complaint)
    if len(complaints) > MOST_LOGGED:
        log.warning("%d more schedules are left alone likewise; `rota lint` lists them", len(complaints) - MOST_LOGGED)


def _spec_of(one: FileSchedule, registry: Registry, tz: str, code: Mapping[str, ScheduleSpec]) -> ScheduleSpec:
    task = registry.get(one.task)
    if one.id in code:
        raise BadSettings(f"{one.place}: schedules.{one.id}: the code declares a schedule of this id too; keep one")
    misfits = list(_misfits(one, task))
    try:
        request = (
            Request(task.name, b"[]", task.options)  # for the other options of the schedule alone
            if misfits
            else task.request(tuple(one.args), one.kwargs, NOTHING_ELSE)
        )
        spec = make_spec(trigger_from_text(one.trigger), request, default_tz=tz, **one.options)
    except RotaError as err:
        raise BadSettings(*misfits, f"{one.place}: schedules.{one.id}: {err}") from err
    if misfits:
        raise BadSettings(*misfits)
    return spec


def _misfits(one: FileSchedule, task: Task[Any, Any]) -> Iterator[str]:
    """Each reason for which the task does not take the arguments that the file gives it."""
    key = "kwargs" if one.kwargs else "args"
    extra = task.sender.redaction.extra
    call = Call(one.args, one.kwargs, secrets=task.signature.secrets(tuple(one.args), one.kwargs, extra))
    texts = DEFAULT.texts_of(call)
    for misfit in task.signature.misfits(call, is_written=True):
        yield f"{one.at(key)}: schedules.{one.id}.{key}: do not fit the task ({hidden(misfit, texts)})"


def _new_of(
    source: FileSource, specs: dict[str, ScheduleSpec], code: Mapping[str, ScheduleSpec]
) -> dict[str, ScheduleSpec]:
    if any(name in code for name in specs):
        raise BadSettings(
            f"{source.place}: sources.{source.name}: the code declares a source of this name too; keep one"
        )
    return specs


def _ids_of(source: FileSource) -> list[str]:
    return [Sync(source.name, collection.name).schedule_id for collection in source.collections]


def _unknown_task(one: FileSchedule, registry: Registry, app: str) -> str:
    endings = [name for name in registry.names() if name.endswith(f".{one.task}")]
    close = meant(one.task, [*registry.names(), *(name.rpartition(".")[2] for name in registry.names())])
    fix = f"; say which: {' or '.join(endings)}" if endings else f"; did you mean {close}?" if close else ""
    return f"{one.at('task')}: schedules.{one.id}.task: got {one.task!r}, wanted a task of app {app!r}{fix}"


def _batches(specs: Iterable[tuple[str, ScheduleSpec]]) -> Iterator[list[tuple[str, ScheduleSpec]]]:
    listed = list(specs)
    return (listed[start : start + BATCH] for start in range(0, len(listed), BATCH))
