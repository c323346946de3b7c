"""Defines what rota.yaml may declare beside settings: schedules, tenants, sources, document queues and alerts.

Each declaration has its line. Tasks are names here: the code that has the app checks that it has them, and that the
arguments fit.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from rota.model.alerts.channel import Channel, HeartbeatUrl
from rota.model.alerts.rule import AlertRule


class FileSchedule(Struct, frozen=True, kw_only=True):
    """One schedule. Its options are those of @app.schedule, as values."""

    id: str
    place: str  # rota.yaml:7
    task: str
    trigger: str  # its compact text form
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    options: dict[str, Any] = {}
    places: dict[str, str] = {}  # the line of each key
    misread: frozenset[str] = frozenset()  # keys whose values could not be read; the file was refused because of them

    def at(self, key: str) -> str:
        """The line of a key, or else that of the schedule."""
        return self.places.get(key, self.place)


class FileTenant(Struct, frozen=True, kw_only=True):
    """One tenant. Its options are those of app.tenants.put."""

    name: str
    place: str
    options: dict[str, Any] = {}


class FileCollection(Struct, frozen=True, kw_only=True):
    """One collection of a source; None leaves a value to the defaults of the sync."""

    name: str
    place: str
    schedule: str | None = None  # cron text, checked
    dialect: str | None = None
    tz: str | None = None
    priority: int | None = None
    enabled: bool | None = None
    description: str | None = None


class FileSource(Struct, frozen=True, kw_only=True):
    """One source and its collections. Its options are those of @app.sources.declare."""

    name: str
    place: str
    task: str
    options: dict[str, Any] = {}
    collections: tuple[FileCollection, ...] = ()


class FileDocuments(Struct, frozen=True, kw_only=True):
    """One queue of documents. Its options are those of DocumentQueue."""

    name: str
    place: str
    source: str
    handler: str
    collection: str | None = None
    condition: dict[str, Any] | None = None
    kind: dict[str, str] = {}  # options of some kinds of sources only: key, times
    fields: dict[str, str | None] = {}  # paths by the names of Fields
    options: dict[str, Any] = {}
    places: dict[str, str] = {}  # the line of each key

    def at(self, key: str) -> str:
        """The line of a key, and the key, to begin an error with: `rota.yaml:3: documents.reminders.source`."""
        return f"{self.places.get(key, self.place)}: documents.{self.name}.{key}"


class Mistaken(Struct, frozen=True, kw_only=True):
    """Declarations with a mistake, as far as they could be read: `rota lint` looks for further mistakes in them."""

    schedules: tuple[FileSchedule, ...] = ()  # those that name a task; a trigger that could not be read is ""
    tenants: tuple[str, ...] = ()  # names
    sources: tuple[FileSource, ...] = ()  # those that name a task; with the collections that could be read


class Declarations(Struct, frozen=True, kw_only=True):
    """All declarations of a file."""

    schedules: tuple[FileSchedule, ...] = ()
    tenants: tuple[FileTenant, ...] = ()
    sources: tuple[FileSource, ...] = ()
    documents: tuple[FileDocuments, ...] = ()
    alerts: tuple[AlertRule, ...] = ()
    channels: tuple[Channel, ...] = ()
    heartbeats: tuple[HeartbeatUrl, ...] = ()
    mistaken: Mistaken = Mistaken()

    def source_mapping(self) -> dict[str, dict[str, Any]]:
        """The sources as plain values: {name: {task, keep, …, collections: [{name, schedule, …}]}}."""
        return {
            source.name: {
                "task": source.task,
                **source.options,
                "collections": [_said(one) for one in source.collections],
            }
            for source in self.sources
        }


NOTHING = Declarations()


def _said(collection: FileCollection) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.structs.asdict(collection)
    return {name: value for name, value in fields.items() if value is not None and name != "place"}
