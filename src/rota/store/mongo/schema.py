"""The schema: collections, indexes and the head document; made when missing, refused when newer than this code."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from pymongo import ASCENDING, DESCENDING, IndexModel
from pymongo.errors import CollectionInvalid, DuplicateKeyError, OperationFailure

from rota.errors import SchemaMismatch
from rota.store.mongo.removing import OWING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.mongo.space import Space

VERSION = 4  # 1 had places in line that were reserved, see places.py; 2 listed jobs by their place in line alone;
# 3 kept a schedule's slot among the users' keys
OLDEST_SERVER = (5, 0)
TOMBSTONES_FOR = 24 * 3600  # seconds: how long a removed job of a schedule still holds its place, see outbox.py
NOTIFICATIONS_SIZE = 64 * 1024  # bytes: a capped collection, which drops its oldest documents
NAMESPACE_EXISTS = 48
PLAIN = ("count", "lock", "log")  # collections that need no index but their own; a transaction cannot always make them


class Index(NamedTuple):
    """An index of one collection; `only` is what a document must have to be in it."""

    collection: str
    name: str
    keys: dict[str, int]
    only: dict[str, Any] | None = None
    is_unique: bool = False
    expires_after: int | None = None

    def model(self) -> IndexModel:
        options: dict[str, Any] = {"name": self.name}
        if self.only is not None:
            options["partialFilterExpression"] = self.only
        if self.is_unique:
            options["unique"] = True
        if self.expires_after is not None:
            options["expireAfterSeconds"] = self.expires_after
        return IndexModel(list(self.keys.items()), **options)


_UP, _DOWN = ASCENDING, DESCENDING
_EXISTS = {"$exists": True}
# Each index of jobs is looked at whenever a job changes, whether it is in it or not: there are as few as will do.
INDEXES = (
    Index("job", "kind", {"queue": _UP, "task": _UP, "seq": _UP}, {"queue": _EXISTS}),  # new ones come last of theirs
    Index("job", "ready", {"queue": _UP, "priority": _DOWN, "seq": _UP}, {"state": "queued"}),
    Index("job", "due", {"queue": _UP, "run_at": _UP}, {"state": "scheduled"}),
    # Lists by state: what a server of any version takes as a condition is a range, and these are ranges of names.
    Index("job", "late", {"state": _UP, "seq": _UP}, {"state": {"$gt": "running"}}),  # scheduled, succeeded
    Index("job", "rest", {"state": _UP, "seq": _UP}, {"state": {"$lt": "queued"}}),  # cancelled, failed, held
    Index("job", "leased", {"lease_until": _UP}, {"state": "running"}),
    Index("job", "asked", {"holder": _UP}, {"state": "running", "cancel_reason": _EXISTS}),
    Index("job", "held", {"waits_for": _UP}, {"state": "held"}),
    Index("job", "ended", {"state": _UP, "finished_at": _UP}, {"finished_at": _EXISTS}),
    Index("job", "key", {"key": _UP}, {"key": _EXISTS}, is_unique=True),
    Index("job", "slot", {"slot": _UP}, {"slot": _EXISTS}, is_unique=True),
    Index("job", "made", {"schedule_id": _UP, "seq": _DOWN}, {"schedule_id": _EXISTS}),
    # The last word on "each occurrence makes exactly one job", whatever the code above it does.
    Index("job", "occurrence", {"schedule_id": _UP, "fire_at": _UP}, {"fire_at": _EXISTS}, is_unique=True),
    Index("job", "gone", {"gone_at": _UP}, {"gone_at": _EXISTS}, expires_after=TOMBSTONES_FOR),
    Index("schedule", "due", {"due_at": _UP, "_id": _UP}, {"due_at": _EXISTS}),
    Index("schedule", "outbox", {"turn": _UP}, {"outbox": _EXISTS}),
    Index("schedule", "tenant", {"tenant": _UP, "_id": _UP}, {"tenant": _EXISTS}),
    Index("schedule", "origin", {"origin_name": _UP, "_id": _UP}),
    Index("entry", "left", {"version": _UP}, {"left": _EXISTS}),
    Index("note", "time", {"at": _UP, "_id": _UP}),
    Index("note", "subject", {"subject": _UP, "at": _UP, "_id": _UP}),
    Index("ledger", "first", {"first_at": _UP}),
    Index("ledger", "size", {"size": _UP}),
    Index("node", "beat", {"beat_at": _UP}),
)
RETIRED = ("line", "owed")  # what earlier versions had
_OLD_SLOT = {"$concat": ["schedule:", "$schedule_id"]}
MOVED: tuple[
    tuple[dict[str, Any], list[dict[str, Any]]], ...
] = (  # fields that earlier versions had under other names: which documents, and what becomes of them
    ({"key": _EXISTS, "$expr": {"$eq": ["$key", _OLD_SLOT]}}, [{"$set": {"slot": "$schedule_id"}}, {"$unset": "key"}]),
    (
        {"state": "scheduled", "$expr": {"$eq": ["$waits_for", _OLD_SLOT]}},
        [{"$set": {"ahead": ""}}, {"$unset": "waits_for"}],
    ),
)


def check_server(version: Sequence[int]) -> None:
    """Refuse a server that lacks what the store is built on (time in updates, unions, capped deletes)."""
    if tuple(version[:2]) < OLDEST_SERVER:
        shown = ".".join(map(str, version[:3]))
        wanted = ".".join(map(str, OLDEST_SERVER))
        raise SchemaMismatch(f"the MongoDB server has version {shown}, Rota needs {wanted} or later; upgrade it")


def current_version(space: Space) -> int:
    """The version that the namespace has; 0 for none."""
    head = space.meta.find_one({"_id": "head"})
    if head is None:
        if space.jobs.find_one({}, {"_id": 1}) is not None:
            raise SchemaMismatch(
                f"the database has a collection {space.jobs.name} that Rota did not make; choose another namespace"
            )
        return 0
    version = head.get("version")
    if not isinstance(version, int):
        raise SchemaMismatch(
            f"the database has a collection {space.meta.name} that Rota did not make; choose another namespace"
        )
    if version > VERSION:
        raise SchemaMismatch(
            f"the database has schema version {version}, this Rota knows up to {VERSION}; "
            "install the newer Rota that made it, or use another namespace"
        )
    return version


def migrate(space: Space) -> None:
    """Bring the namespace to this code's version. Every part is harmless to repeat, so racing processes are, too."""
    version = current_version(space)
    if version == VERSION:
        return
    if version > 0:
        _retire(space)
    build(space)


def _retire(space: Space) -> None:
    """Take away what earlier versions had."""
    space.jobs.update_many({"owed": _EXISTS, "gone_at": None}, {"$set": {"gone_at": OWING}})
    for which, becomes in MOVED:
        space.jobs.update_many(which, becomes)
    for name in RETIRED:
        with suppress(OperationFailure):  # another process was faster
            space.jobs.drop_index(name)


def build(space: Space) -> None:
    """The whole, whatever of it is there."""
    with suppress(DuplicateKeyError):  # another process was faster by a hair
        space.meta.update_one({"_id": "head"}, {"$setOnInsert": {"version": 0, "paused": []}}, upsert=True)
    make(space)
    space.meta.update_one({"_id": "head", "version": {"$lt": VERSION}}, {"$set": {"version": VERSION}})


def make(space: Space) -> None:
    """Every collection and index that is missing."""
    for name in PLAIN:
        _create(space, name)
    for name in sorted({index.collection for index in INDEXES}):
        space.named(name).create_indexes([index.model() for index in INDEXES if index.collection == name])
    if _create(space, "notifications", capped=True, size=NOTIFICATIONS_SIZE):
        space.notifications.insert_one({"channel": "none"})  # nobody can wait at the end of nothing


def _create(space: Space, name: str, **options: Any) -> bool:
    """Make a collection; False where it is there already."""
    try:
        space.database.create_collection(space.named(name).name, **options)
    except CollectionInvalid:
        return False
    except OperationFailure as err:
        if err.code != NAMESPACE_EXISTS:
            raise
        return False
    return True


def pending(space: Space) -> list[str]:
    """What migrate() would do, as lines for mongosh."""
    version = current_version(space)
    if version == VERSION:
        return []
    return [*(_retiring(space.namespace) if version > 0 else []), *scripts(space.namespace)]


def namespaces(space: Space) -> list[str]:
    """The namespaces of the database that Rota made."""
    names = set(space.database.list_collection_names())
    metas = {name.removesuffix("_meta") for name in names if name.endswith("_meta")}
    return sorted(name for name in metas if {f"{name}_job", f"{name}_schedule"} <= names)


def _retiring(namespace: str) -> list[str]:
    owed = (
        f'db.{namespace}_job.updateMany({{owed: {{$exists: true}}, gone_at: null}}, {{$set: {{gone_at: "{OWING}"}}}})'
    )
    moved = (f"db.{namespace}_job.updateMany({json.dumps(which)}, {json.dumps(becomes)})" for which, becomes in MOVED)
    return ["\n".join([owed, *moved, *(f'db.{namespace}_job.dropIndex("{name}")' for name in RETIRED)])]


def scripts(namespace: str) -> list[str]:
    lines = [_line(namespace, index) for index in INDEXES]
    name = f"{namespace}_notifications"
    return ["\n".join([*lines, f'db.createCollection("{name}", {{capped: true, size: {NOTIFICATIONS_SIZE}}})'])]


def _line(namespace: str, index: Index) -> str:
    options = {key: value for key, value in index.model().document.items() if key != "key"}
    return f"db.{namespace}_{index.collection}.createIndex({json.dumps(index.keys)}, {json.dumps(options)})"
