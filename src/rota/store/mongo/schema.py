"""Creates the collections, the indexes and the control document if they are missing; refuses a newer schema version."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from pymongo import ASCENDING, DESCENDING, IndexModel
from pymongo.errors import CollectionInvalid, DuplicateKeyError, OperationFailure

from rota.errors import SchemaMismatch
from rota.store.contract import FEWEST_REPEATED
from rota.store.mongo import time_slices
from rota.store.mongo.codec import given
from rota.store.shared.schema_version import check_known, foreign, namespaces_among

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.mongo.database import Database

VERSION = 1
CONTROL = {"_id": "control"}  # the control document, in the collection `meta`
OLDEST_SERVER = (5, 0)
TOMBSTONES_FOR = 24 * 3600  # seconds that a removed job of a schedule keeps its occurrence, see outbox.py
NOTIFICATIONS_SIZE = 64 * 1024  # bytes of the capped collection; the oldest notifications are overwritten
NAMESPACE_EXISTS = 48


class Index(NamedTuple):
    """An index of one collection; `only` is the condition for a document to be in it."""

    collection: str
    name: str
    keys: dict[str, int]
    only: dict[str, Any] | None = None
    is_unique: bool = False
    expires_after: int | None = None

    @property
    def options(self) -> dict[str, Any]:
        return given(
            name=self.name,
            partialFilterExpression=self.only,
            unique=self.is_unique or None,
            expireAfterSeconds=self.expires_after,
        )


_UP, _DOWN = ASCENDING, DESCENDING
_EXISTS = {"$exists": True}
_KIND = {"queue": _UP, "task": _UP, "seq": _UP}
_OF_SCHEDULE = {"schedule_id": _UP, "state": _UP, "seq": _UP}
# The server checks each index of jobs whenever a job changes, so there are as few as possible.
INDEXES = (
    # A new job is the last of its kind.
    Index("job", "kind", _KIND, {"queue": _EXISTS}),
    Index("job", "ready", {"queue": _UP, "priority": _DOWN, "seq": _UP}, {"state": "queued"}),
    Index("job", "due", {"queue": _UP, "run_at": _UP}, {"state": "scheduled"}),
    # Lists by state. Servers of every version accept a range as the condition of an index; these are ranges of names.
    Index("job", "late", {"state": _UP, **_KIND}, {"state": {"$gt": "running"}}),  # scheduled, succeeded
    Index("job", "rest", {"state": _UP, **_KIND}, {"state": {"$lt": "queued"}}),  # cancelled, failed, held
    Index("job", "leased", {"lease_until": _UP}, {"state": "running"}),
    Index("job", "asked", {"holder": _UP}, {"state": "running", "cancel_reason": _EXISTS}),
    Index("job", "held", {"waits_for": _UP}, {"state": "held"}),
    Index("job", "ended", {"state": _UP, "finished_at": _UP}, {"finished_at": _EXISTS}),
    Index("job", "key", {"key": _UP}, {"key": _EXISTS}, is_unique=True),
    Index("job", "slot", {"slot": _UP}, {"slot": _EXISTS}, is_unique=True),
    Index("job", "made", {"schedule_id": _UP, "seq": _DOWN}, {"schedule_id": _EXISTS}),
    # Each occurrence makes exactly one job: the server guarantees it, whatever the code does.
    Index("job", "occurrence", {"schedule_id": _UP, "fire_at": _UP}, {"fire_at": _EXISTS}, is_unique=True),
    Index("job", "repeated", {"seq": _UP, "attempts": _UP, "state": _UP}, {"attempts": {"$gte": FEWEST_REPEATED}}),
    # States that few jobs of a schedule have, or few jobs of a task.
    Index("job", "failed_task", {"task": _UP, "state": _UP, "seq": _UP}, {"state": "failed"}),
    Index("job", "failed_schedule", _OF_SCHEDULE, {"state": "failed"}),
    Index("job", "scheduled_schedule", _OF_SCHEDULE, {"state": "scheduled", "schedule_id": _EXISTS}),
    Index("job", "gone", {"gone_at": _UP}, {"gone_at": _EXISTS}, expires_after=TOMBSTONES_FOR),
    Index("schedule", "due", {"due_at": _UP, "_id": _UP}, {"due_at": _EXISTS}),
    Index("schedule", "outbox", {"turn": _UP}, {"outbox": _EXISTS}),
    Index("schedule", "tenant", {"tenant": _UP, "_id": _UP}, {"tenant": _EXISTS}),
    Index("schedule", "origin", {"origin_name": _UP, "_id": _UP}),
    Index("entry", "left", {"version": _UP}, {"left": _EXISTS}),
    Index("audit", "time", {"at": _UP, "_id": _UP}),
    Index("audit", "subject", {"subject": _UP, "at": _UP, "_id": _UP}),
    Index("ledger", "first", {"first_at": _UP}),
    Index("ledger", "size", {"size": _UP}),
    Index("node", "beat", {"beat_at": _UP}),
)


# What was added to the schema version later; the control document says which of it a namespace has.
ADDITIONS = ("has_slices", "has_repeated", "has_failed", "has_state_kinds")


def check_server(version: Sequence[int]) -> None:
    """Refuse a server without the features that this store needs (the time in updates, unions, capped deletes)."""
    if tuple(version[:2]) < OLDEST_SERVER:
        shown = ".".join(map(str, version[:3]))
        wanted = ".".join(map(str, OLDEST_SERVER))
        raise SchemaMismatch(f"the MongoDB server has version {shown}, Rota needs {wanted} or later; upgrade it")


def current_version(db: Database) -> int:
    """The schema version of the namespace; 0 if there is none."""
    control = db.meta.find_one(CONTROL)
    if control is None and db.jobs.find_one({}, {"_id": 1}) is None:
        return 0
    version = (control or {}).get("version")
    if not isinstance(version, int):
        collection = (db.jobs if control is None else db.meta).raw.name
        raise foreign("the database", f"a collection {collection}")
    return check_known(version, VERSION, "the database")


def migrate(db: Database) -> None:
    """Bring the namespace to this code's version. Every part is harmless to repeat, also by several processes."""
    if current_version(db) < VERSION:
        create(db)
        return
    control = db.meta.find_one(CONTROL, dict.fromkeys(ADDITIONS, 1)) or {}
    missing = [name for name in ADDITIONS if not control.get(name)]
    if not missing:
        return
    if "has_slices" in missing:
        time_slices.mark_all(db)
    _drop_changed_indexes(db)
    _create_indexes(db)
    db.meta.update_one(CONTROL, {"$set": dict.fromkeys(missing, True)})


def create(db: Database) -> None:
    """Create all that is missing."""
    new = {"version": 0, "paused": [], **dict.fromkeys(ADDITIONS, True)}
    with suppress(DuplicateKeyError):  # another process was faster
        db.meta.update_one(CONTROL, {"$setOnInsert": new}, upsert=True)
    _create_indexes(db)
    _create_notifications(db)
    db.meta.update_one({**CONTROL, "version": {"$lt": VERSION}}, {"$set": {"version": VERSION}})


def _drop_changed_indexes(db: Database) -> None:
    """Those that have other keys in a namespace of before: the server cannot change an index."""
    for index in INDEXES:
        collection = db.raw[index.collection]
        keys = collection.index_information().get(index.name, {}).get("key")
        if keys and dict(keys) != index.keys:
            with suppress(OperationFailure):  # another process was faster
                collection.drop_index(index.name)


def _create_indexes(db: Database) -> None:
    """Those that exist already stay as they are."""
    for name in sorted({index.collection for index in INDEXES}):
        models = [
            IndexModel(list(index.keys.items()), **index.options) for index in INDEXES if index.collection == name
        ]
        db.raw[name].create_indexes(models)


def _create_notifications(db: Database) -> None:
    """Create the capped collection, unless it exists. It has a document: a listener cannot wait at the end of none."""
    try:
        db.database.create_collection(db.notifications.raw.name, capped=True, size=NOTIFICATIONS_SIZE)
    except CollectionInvalid:
        return
    except OperationFailure as err:
        if err.code != NAMESPACE_EXISTS:
            raise
        return
    db.notifications.insert_many([{"channel": "none"}])


def pending(db: Database) -> list[str]:
    """What migrate() would do, as lines for mongosh."""
    return scripts(db.jobs.raw.name.removesuffix("_job")) if current_version(db) < VERSION else []


def namespaces(db: Database) -> list[str]:
    """The namespaces of the database that Rota made."""
    return namespaces_among(db.database.list_collection_names())


def scripts(namespace: str) -> list[str]:
    lines = [
        f"db.{namespace}_{index.collection}.createIndex({json.dumps(index.keys)}, {json.dumps(index.options)})"
        for index in INDEXES
    ]
    capped = f'db.createCollection("{namespace}_notifications", {{capped: true, size: {NOTIFICATIONS_SIZE}}})'
    return ["\n".join([*lines, capped])]
