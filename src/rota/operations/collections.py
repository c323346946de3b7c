"""Checks the declarations of sources in code and rota.yaml, and makes their schedules.

A collection is a schedule whose jobs carry its one key; so it is deployed, retired, paused and explained like any
other.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import msgspec

from rota.errors import BadOption, DuplicateName
from rota.model.collection import KEEP, LOWEST, Sync, check_level, check_part, check_sync
from rota.operations.specs import make_spec
from rota.triggers import Trigger, cron, once

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta

    from rota.model.schedules.schedule import ScheduleSpec
    from rota.tasks.task import Registry, Request, Task

ON_DEMAND = once(datetime(1970, 1, 1, tzinfo=UTC))  # a time in the past: such a collection is only started by hand


class CollectionWords(TypedDict):
    """The options of a collection."""

    name: str
    schedule: NotRequired[str | Trigger | None]  # cron text or a trigger; none: its source's, else only by hand
    dialect: NotRequired[str | None]
    tz: NotRequired[str | None]
    priority: NotRequired[int]
    enabled: NotRequired[bool]
    description: NotRequired[str]


class SourceWords(TypedDict, total=False):
    """The options of a source beside its task and its collections."""

    schedule: str | Trigger | None  # of the collections that have none
    dialect: str | None
    tz: str | None
    keep: int
    retries: int
    timeout: str | timedelta | None
    queue: str | None


_OF_COLLECTION = frozenset(CollectionWords.__annotations__)
_OF_SOURCE = frozenset(SourceWords.__annotations__)


def read_sources(
    said: Mapping[str, Mapping[str, Any]], registry: Registry, default_tz: str = "UTC"
) -> dict[str, ScheduleSpec]:
    """The schedules of all sources of a file, by id: {name: {task, collections: [{name, schedule, …}], …}}.

    Each error names the source, and the collection if it is in one; a task that the app does not have is UnknownTask.
    """
    specs: dict[str, ScheduleSpec] = {}
    for name, words in said.items():
        if not isinstance(words, dict) or not isinstance(words.get("task"), str):
            raise BadOption(f"source {name!r} needs a task: its name")
        options = {key: value for key, value in words.items() if key not in {"task", "collections"}}
        specs |= specs_of(name, registry.get(words["task"]), words.get("collections", ()), default_tz, options)
    return specs


def declare_source(
    declared: dict[str, Callable[[str], ScheduleSpec]],
    source: str,
    task: Task[Any, Any],
    collections: Sequence[str | CollectionWords],
    options: Mapping[str, Any],
) -> None:
    """Add the schedules of a source to those that an app declares; errors are raised at the declaration."""
    for name in specs_of(source, task, collections, "", options):
        if name in declared:
            raise DuplicateName(f"source {source!r} is declared already; give each of them a name of its own")

        def make(tz: str, name: str = name) -> ScheduleSpec:
            return specs_of(source, task, collections, tz, options)[name]

        declared[name] = make


def specs_of(
    source: str,
    task: Task[Any, Any],
    collections: Sequence[str | CollectionWords],
    default_tz: str,
    options: Mapping[str, Any],
) -> dict[str, ScheduleSpec]:
    """The schedules of one source, by id."""
    check_part("source", source)
    _check_words(f"source {source!r}", options, _OF_SOURCE)
    if isinstance(collections, str) or not collections:
        raise BadOption(f"source {source!r} needs a list of collections: names, or such as {{'name': 'orders'}}")
    specs: dict[str, ScheduleSpec] = {}
    for words in collections:
        said: Any = {"name": words} if isinstance(words, str) else words
        name, spec = _spec_of(source, task, said, default_tz, options)
        if name in specs:
            raise BadOption(f"source {source!r} has two collections named {said['name']!r}; keep one")
        specs[name] = spec
    return specs


def _spec_of(
    source: str, task: Task[Any, Any], said: Mapping[str, Any], default_tz: str, options: Mapping[str, Any]
) -> tuple[str, ScheduleSpec]:
    if not isinstance(said, dict) or "name" not in said:
        raise BadOption(f"source {source!r}: a collection is a name, or a mapping with one, not {said!r}")
    what = f"collection {source}/{said['name']}"
    _check_words(what, said, _OF_COLLECTION)
    sync = check_sync(Sync(source, said["name"], options.get("keep", KEEP)))
    spec = make_spec(
        _trigger(said, options),
        _request(task, sync, options),
        default_tz=default_tz,
        priority=check_level(said.get("priority", LOWEST)),
        queue=options.get("queue"),
        tz=said.get("tz") or options.get("tz"),
        enabled=said.get("enabled", True),
        description=said.get("description", ""),
    )
    return sync.schedule_id, msgspec.structs.replace(spec, sync=sync)


def _request(task: Task[Any, Any], sync: Sync, options: Mapping[str, Any]) -> Request:
    """The request of a sync. By default, a sync that fails is not retried: its next occurrence runs instead."""
    configured = task.using(retries=options.get("retries", 0), timeout=options.get("timeout"))
    return configured.declared(sync.source, sync.collection)


def _trigger(said: Mapping[str, Any], options: Mapping[str, Any]) -> Trigger:
    """A collection's own schedule, else its source's, else none."""
    of = said if said.get("schedule") is not None else options
    schedule, dialect = of.get("schedule"), of.get("dialect")
    if schedule is None and (said.get("dialect") or options.get("dialect")):
        raise BadOption("dialect= says how a schedule's text is read, and there is none")
    if isinstance(schedule, str):
        return cron(schedule, dialect=dialect)
    if schedule is None:
        return ON_DEMAND
    if not isinstance(schedule, Trigger) or dialect is not None:
        raise BadOption(f"schedule={schedule!r} must be cron text (with a dialect=, if it needs one) or a trigger")
    return schedule


def _check_words(what: str, said: Mapping[str, Any], known: frozenset[str]) -> None:
    unknown = [str(key) for key in said if key not in known]
    if unknown:
        raise BadOption(f"{what} says {unknown[0]!r}; it may say {', '.join(sorted(known))}")
