"""Reads the declarations of rota.yaml: schedules, tenants, sources, document queues, alerts. Errors name the line.

A declaration with a complaint is kept apart, as far as it could be read; the file as a whole is refused by the code
that reads the complaints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.config.declared import (
    Declarations,
    FileCollection,
    FileDocuments,
    FileSchedule,
    FileSource,
    FileTenant,
    Mistaken,
)
from rota.config.fields import ALERT, CHANNEL, COLLECTION, DOCUMENTS, HEARTBEAT, SCHEDULE, SOURCE, TENANT
from rota.config.json_values import NoValue, json_value
from rota.config.nodes import is_list, is_mapping, is_null, kind_words, said
from rota.config.read_documents import check_source, read_condition, read_paths
from rota.config.read_trigger import TRIGGER_KEYS, read_cron, read_trigger
from rota.config.read_value import read_value
from rota.config.words import misfit, unknown_key
from rota.errors import BadName, RotaError
from rota.model.alerts.channel import make_email, make_heartbeat, make_webhook
from rota.model.alerts.rule import make_rule
from rota.model.collection import check_part
from rota.model.jobs.payload import Call, pack_call
from rota.model.names import check_name, check_schedule_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import date

    from rota.config.fields import Field
    from rota.config.nodes import Walk
    from rota.model.alerts.channel import Channel, HeartbeatUrl
    from rota.model.alerts.rule import AlertRule

PARTS = ("schedules", "tenants", "sources", "documents", "alerts", "channels", "heartbeats")
EXAMPLES = {
    "schedules": '`nightly: {task: cleanup, cron: "0 3 * * *"}`',
    "tenants": "`acme: {tz: Asia/Kolkata}`",
    "sources": "`shop: {task: shop.sync, collections: [orders]}`",
    "documents": "`reminders: {source: mongodb://localhost/shop, collection: orders, handler: shop:remind}`",
    "alerts": "`nightly: {when: fails, schedule: nightly}`",
    "channels": "`ops: {webhook: https://hooks.example.org/rota}`",
    "heartbeats": "`nightly: {url: https://hc-ping.com/…}`",
}


class DeclarationReader:
    """Reads the parts, in any order."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._schedules: list[FileSchedule] = []
        self._tenants: list[FileTenant] = []
        self._sources: list[FileSource] = []
        self._documents: list[FileDocuments] = []
        self._alerts: list[AlertRule] = []
        self._channels: list[Channel] = []
        self._heartbeats: list[HeartbeatUrl] = []
        self._mistaken_schedules: list[FileSchedule] = []
        self._mistaken_tenants: list[str] = []
        self._mistaken_sources: list[FileSource] = []

    def found(self) -> Declarations:
        return Declarations(
            schedules=tuple(self._schedules),
            tenants=tuple(self._tenants),
            sources=tuple(self._sources),
            documents=tuple(self._documents),
            alerts=tuple(self._alerts),
            channels=tuple(self._channels),
            heartbeats=tuple(self._heartbeats),
            mistaken=Mistaken(
                schedules=tuple(self._mistaken_schedules),
                tenants=tuple(self._mistaken_tenants),
                sources=tuple(self._mistaken_sources),
            ),
        )

    def read(self, part: str, node: Any) -> None:
        """One of the parts; a part with nothing below it has no effect."""
        readers: dict[str, tuple[Callable[[str], str], Callable[[str, str, Any, Any], None]]] = {
            "schedules": (check_schedule_id, self._read_schedule),
            "tenants": (lambda name: check_name("tenant", name), self._read_tenant),
            "sources": (lambda name: check_part("source", name), self._read_source),
            "documents": (lambda name: check_name("queue", name), self._read_documents),
            "alerts": (lambda name: check_name("alert", name), self._read_alert),
            "channels": (lambda name: check_name("channel", name), self._read_channel),
            "heartbeats": (check_schedule_id, self._read_heartbeat),
        }
        check, read = readers[part]
        for name, key_node, inner in self._entries(part, node):
            path = f"{part}.{name}"
            try:
                check(name)
            except BadName as err:
                self._walk.complain(key_node, path[:140], str(err))
                continue
            before = len(self._walk.complaints)
            if not is_mapping(inner):
                self._walk.complain(inner, path, misfit(kind_words(inner), f"keys below it, as in {EXAMPLES[part]}"))
            elif len(self._walk.complaints) == before:
                read(name, path, key_node, inner)

    def _entries(self, part: str, node: Any) -> Iterator[tuple[str, Any, Any]]:
        if is_null(node):
            return  # everything in it is commented out
        if not is_mapping(node):
            self._walk.complain(node, part, misfit(kind_words(node), f"names below it, as in {EXAMPLES[part]}"))
            return
        yield from self._walk.pairs(node, f"{part}.", "a name")

    # Schedules.

    def _read_schedule(self, name: str, path: str, key_node: Any, node: Any) -> None:
        before = len(self._walk.complaints)
        nodes = self._nodes(path, node, SCHEDULE)
        special = {*TRIGGER_KEYS, "args", "kwargs"}
        options = self._values(path, nodes, {key: SCHEDULE[key] for key in SCHEDULE if key not in special})
        dialect = options.pop("dialect", None)
        trigger = read_trigger(self._walk, path, key_node, nodes, dialect=dialect, tz=options.get("tz"))
        args, kwargs = self._call(path, nodes)
        self._need(path, key_node, nodes, "task", SCHEDULE)
        self._check_bounds(path, nodes, options)
        if "task" not in options:
            return  # nothing more can be known of it
        is_whole = len(self._walk.complaints) == before
        task = options.pop("task")
        (self._schedules if is_whole else self._mistaken_schedules).append(
            FileSchedule(
                id=name,
                place=self._walk.at(key_node),
                task=task,
                trigger=trigger or "",
                args=args or [],
                kwargs=kwargs or {},
                options=options,
                places={key: self._walk.at(inner) for key, inner in nodes.items()},
                misread=frozenset(self._misread(nodes, {*options, "task", "dialect"}, trigger, args, kwargs)),
            )
        )

    def _misread(
        self, nodes: Mapping[str, Any], read: set[str], trigger: str | None, args: Any, kwargs: Any
    ) -> Iterator[str]:
        """The keys that were given and whose values are not known."""
        known = read | ({*TRIGGER_KEYS} if trigger is not None else set())
        known |= {key for key, value in (("args", args), ("kwargs", kwargs)) if value is not None}
        yield from (key for key, node in nodes.items() if key not in known and not is_null(node))

    def _call(self, path: str, nodes: Mapping[str, Any]) -> tuple[list[Any] | None, dict[str, Any] | None]:
        """The arguments, as JSON can keep them; None if none were given, or they could not be read."""
        args = self._arguments(path, nodes, "args", is_right=is_list)
        kwargs = self._arguments(path, nodes, "kwargs", is_right=is_mapping)
        try:
            pack_call(Call(args or [], kwargs or {}), what="the task")
        except RotaError as err:
            key = "kwargs" if kwargs else "args"
            self._walk.complain(nodes[key], f"{path}.{key}", str(err))
            return None, None
        return args, kwargs

    def _arguments(self, path: str, nodes: Mapping[str, Any], key: str, *, is_right: Callable[[Any], bool]) -> Any:
        node = nodes.get(key)
        if node is None or is_null(node):
            return None
        if not is_right(node):
            self._walk.complain(node, f"{path}.{key}", misfit(kind_words(node), SCHEDULE[key].kind.wanted))
            return None
        try:
            return json_value(self._walk, node, f"{path}.{key}")
        except NoValue:
            return None

    def _check_bounds(self, path: str, nodes: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        """An end before its start is a mistake; a day and an instant are compared once the timezone is known."""
        start: date | None = options.get("start")
        end: date | None = options.get("end")
        if start is not None and end is not None and type(start) is type(end) and end < start:
            self._walk.complain(nodes["end"], f"{path}.end", f"got {said(nodes['end'])}, which lies before the start")

    # Tenants.

    def _read_tenant(self, name: str, path: str, key_node: Any, node: Any) -> None:
        before = len(self._walk.complaints)
        nodes = self._nodes(path, node, TENANT)
        options = self._values(path, nodes, TENANT)
        self._need(path, key_node, nodes, "tz", TENANT)
        if len(self._walk.complaints) == before:
            self._tenants.append(FileTenant(name=name, place=self._walk.at(key_node), options=options))
        else:
            self._mistaken_tenants.append(name)

    # Sources.

    def _read_source(self, name: str, path: str, key_node: Any, node: Any) -> None:
        before = len(self._walk.complaints)
        nodes = self._nodes(path, node, SOURCE)
        options = self._values(path, nodes, {key: SOURCE[key] for key in SOURCE if key != "collections"})
        for key in ("task", "collections"):
            self._need(path, key_node, nodes, key, SOURCE)
        self._check_schedule(path, nodes, options)
        collections = self._collections(f"{path}.collections", nodes["collections"]) if "collections" in nodes else []
        if "task" not in options:
            return  # nothing more can be known of it
        is_whole = len(self._walk.complaints) == before
        place, task = self._walk.at(key_node), options.pop("task")
        (self._sources if is_whole else self._mistaken_sources).append(
            FileSource(name=name, place=place, task=task, options=options, collections=tuple(collections))
        )

    def _collections(self, path: str, node: Any) -> list[FileCollection]:
        if not is_list(node) or not node.value:
            got = kind_words(node) if not is_list(node) else "an empty list"
            self._walk.complain(node, path, misfit(got, SOURCE["collections"].kind.wanted))
            return []
        found: dict[str, FileCollection] = {}
        for index, item in enumerate(self._walk.items(node)):
            collection = self._collection(f"{path}[{index}]", item)
            if collection is not None and collection.name in found:
                first = found[collection.name].place.rpartition(":")[2]
                what = f"got {collection.name!r}, which is said twice, first in line {first}; keep one of them"
                self._walk.complain(item, f"{path}[{index}].name", what)
            elif collection is not None:
                found[collection.name] = collection
        return list(found.values())

    def _collection(self, path: str, node: Any) -> FileCollection | None:
        """A mapping; a bare name is a collection that is synced on demand."""
        if node.id == "scalar" and not is_null(node):
            name = read_value(self._walk, node, path, COLLECTION["name"].kind)
            return None if name is None else FileCollection(name=name.value, place=self._walk.at(node))
        if not is_mapping(node):
            self._walk.complain(node, path, misfit(kind_words(node), "a mapping such as {name: orders}"))
            return None
        before = len(self._walk.complaints)
        nodes = self._nodes(path, node, COLLECTION)
        options = self._values(path, nodes, COLLECTION)
        self._need(path, node, nodes, "name", COLLECTION)
        self._check_schedule(path, nodes, options)
        if len(self._walk.complaints) > before:
            return None
        return FileCollection(place=self._walk.at(node), **options)

    def _check_schedule(self, path: str, nodes: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        if "schedule" in options:
            read_cron(self._walk, f"{path}.schedule", nodes["schedule"], options.get("dialect"))
        elif "dialect" in nodes and "schedule" not in nodes:
            self._walk.complain(nodes["dialect"], f"{path}.dialect", "says how a `schedule` is read, and there is none")

    # Queues of documents.

    def _read_documents(self, name: str, path: str, key_node: Any, node: Any) -> None:
        before = len(self._walk.complaints)
        nodes = self._nodes(path, node, DOCUMENTS)
        plain = {key: field for key, field in DOCUMENTS.items() if key not in {"condition", "fields"}}
        options = self._values(path, nodes, plain)
        for key in ("source", "handler"):
            self._need(path, key_node, nodes, key, DOCUMENTS)
        condition = read_condition(self._walk, f"{path}.condition", nodes.get("condition"))
        fields = read_paths(self._walk, f"{path}.fields", nodes.get("fields"), self._nodes)
        check_source(self._walk, path, key_node, nodes, options.get("source"))
        if len(self._walk.complaints) > before:
            return
        named = {key: options.pop(key) for key in ("source", "handler", "collection") if key in options}
        kind: dict[str, str] = {key: options.pop(key) for key in ("key", "times") if key in options}
        places = {key: self._walk.at(inner) for key, inner in nodes.items()}
        self._documents.append(
            FileDocuments(
                name=name,
                place=self._walk.at(key_node),
                condition=condition,
                kind=kind,
                fields=fields,
                options=options,
                places=places,
                **named,
            )
        )

    # Alerts.

    def _read_alert(self, name: str, path: str, key_node: Any, node: Any) -> None:
        before = len(self._walk.complaints)
        nodes = self._nodes(path, node, ALERT)
        options = self._values(path, nodes, ALERT)
        self._need(path, key_node, nodes, "when", ALERT)
        if len(self._walk.complaints) == before:
            rule = made_rule(self._walk, name, path, key_node, options)
            self._alerts += [] if rule is None else [rule]

    def _read_channel(self, name: str, path: str, key_node: Any, node: Any) -> None:
        before = len(self._walk.complaints)
        nodes = self._nodes(path, node, CHANNEL)
        options = self._values(path, nodes, CHANNEL)
        if len(self._walk.complaints) == before:
            channel = made_channel(self._walk, name, path, key_node, options)
            self._channels += [] if channel is None else [channel]

    def _read_heartbeat(self, name: str, path: str, key_node: Any, node: Any) -> None:
        before = len(self._walk.complaints)
        nodes = self._nodes(path, node, HEARTBEAT)
        options = self._values(path, nodes, HEARTBEAT)
        self._need(path, key_node, nodes, "url", HEARTBEAT)
        if len(self._walk.complaints) == before:
            self._heartbeats.append(make_heartbeat(name, place=self._walk.at(key_node), **options))

    # Shared steps.

    def _nodes(self, path: str, mapping: Any, known: Mapping[str, Field]) -> dict[str, Any]:
        """The keys that there can be, each with its node."""
        found: dict[str, Any] = {}
        for name, key_node, node in self._walk.pairs(mapping, f"{path}.", "the name of a key"):
            if name in known:
                found[name] = node
            else:
                self._walk.complain(key_node, f"{path}.{name}", unknown_key(path, name, known))
        return found

    def _values(self, path: str, nodes: Mapping[str, Any], fields: Mapping[str, Field]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, field in fields.items():
            node = nodes.get(key)
            if node is None:
                continue
            found = read_value(self._walk, node, f"{path}.{key}", field.kind)
            if found is not None:
                values[key] = found.value
        return values

    def _need(self, path: str, key_node: Any, nodes: Mapping[str, Any], key: str, fields: Mapping[str, Field]) -> None:
        if key not in nodes:
            self._walk.complain(key_node, path, f"has no `{key}`; wanted {fields[key].kind.wanted}")


def made_rule(walk: Walk, name: str, path: str, key_node: Any, options: dict[str, Any]) -> AlertRule | None:
    """The rule; None if a complaint was made instead."""
    try:
        return make_rule(name, place=walk.at(key_node), **options)
    except RotaError as err:
        walk.complain(key_node, path, str(err))
    return None


def made_channel(walk: Walk, name: str, path: str, key_node: Any, options: dict[str, Any]) -> Channel | None:
    """The channel; None if a complaint was made instead."""
    if len(options.keys() & {"webhook", "email"}) != 1:
        walk.complain(key_node, path, "has to say one of `webhook` and `email`")
        return None
    place = walk.at(key_node)
    if "webhook" in options:
        return make_webhook(name, options["webhook"], secret=options.get("secret"), place=place)
    if "secret" in options:
        walk.complain(
            key_node, path, "has a `secret`, and only webhooks are signed; the mail server's is smtp.password"
        )
        return None
    return make_email(name, options["email"], place=place)
