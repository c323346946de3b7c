"""Builds the queries and updates of a source on MongoDB: which documents are due, and what a fenced write must find."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from bson import Binary, ObjectId, json_util
from bson.datetime_ms import DatetimeMS

from rota.documents.contract import Terms, texts_meant
from rota.documents.fields import MISSING, get_path
from rota.errors import PathThroughList
from rota.model.micros import MILLISECOND, datetime_of, micros_of, outside_calendar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rota.documents.contract import LockedDocument, Update
    from rota.documents.fields import Fields

Document = dict[str, Any]

PLAIN = [  # types of values that are neither an object nor a list, nor null
    *("double", "string", "binData", "objectId", "bool", "date", "regex", "javascript", "int", "timestamp", "long"),
    *("decimal", "minKey", "maxKey"),
]
RETRY = "retry"  # in `lockedBy`: the document was put off, and has a side record
RETRIED = " (retry)"  # behind a token: the document may have a side record


class Queries:
    """What is asked of the server, for one set of fields and one condition."""

    def __init__(self, fields: Fields, condition: Mapping[str, Any] | None) -> None:
        self.fields = fields
        self.condition = dict(condition or {})
        self._path = fields.sleep_until

    # Which documents.

    def sleeping(self, until: int, now: int, *, without: Sequence[Any] = ()) -> Document:
        """Documents whose time is not later, and that are not locked: by an index on that time."""
        query: list[Document] = [{self._path: {"$type": "date", "$lte": datetime_of(until)}}, *self.no_lists()]
        if self.fields.locked_until is not None:
            query.append({self.fields.locked_until: {"$not": {"$gt": datetime_of(now)}}})
        if without:
            query.append({"_id": {"$nin": list(without)}})
        return {"$and": [*query, *self._conditions()]}

    def still_due(self) -> list[Document]:
        """The same by the server's clock, for documents that are named by their ids."""
        query: list[Document] = [
            {self._path: {"$type": "date"}},
            *self.no_lists(),
            {"$expr": {"$lte": [f"${self._path}", "$$NOW"]}},
        ]
        if self.fields.locked_until is not None:
            lock = f"${self.fields.locked_until}"  # what is no date is no lock, as for `sleeping`
            is_locked = {"$and": [{"$eq": [{"$type": lock}, "date"]}, {"$gt": [lock, "$$NOW"]}]}
            query.append({"$expr": {"$not": [is_locked]}})
        return [*query, *self._conditions()]

    def unscheduled(self) -> Document:
        """Recurring documents without a time."""
        is_new = [{self.fields.interval: {"$type": "string", "$gt": ""}}, {self._path: {"$exists": False}}]
        return {"$and": [*is_new, *self.no_lists(), *self._conditions()]}

    def no_lists(self) -> list[Document]:
        """A path through a list names many values. A lock would be written into each, or replace a plain value."""
        lists: list[Document] = [{path: {"$not": {"$type": "array"}}} for path in (*self.fields.parents, self._path)]
        return lists + [{path: {"$not": {"$type": PLAIN}}} for path in self.fields.lock_parents]

    def in_state(self, state: str, now: int) -> Document:
        """The documents among which those of a state are; all of it if the lock has fields of its own."""
        at, until = datetime_of(now), self.fields.locked_until
        is_free = [] if until is None else [{until: {"$not": {"$gt": at}}}]
        tests: dict[str, list[Document]] = {
            "waiting": [{self._path: {"$type": "date", "$gt": at}}, *is_free],
            "due": [{self._path: {"$type": "date", "$lte": at}}, *is_free],
            "running": [{self._path: {"$type": "date", "$gt": at}}] if until is None else [{until: {"$gt": at}}],
            "retrying": [{self._path: {"$type": "date"}}, *is_free],
            "done": [{self._path: {"$type": "null"}}, *is_free],
        }
        if state == "retrying" and self.fields.locked_by is not None:
            tests[state].append({self.fields.locked_by: {"$type": "string"}})  # put off, or locked again since
        return {"$and": [*tests[state], *self.no_lists(), *self._conditions()]}

    def scheduled(self, ids: Sequence[Any]) -> Document:
        """Those of these documents that carry a schedule."""
        has_time = {self._path: {"$type": ["date", "null"]}}
        return {"$and": [{"_id": {"$in": list(ids)}}, has_time, *self.no_lists(), *self._conditions()]}

    def _conditions(self) -> list[Document]:
        return [self.condition] if self.condition else []

    # Writes.

    def lock(self, token: str, lock_for: int) -> list[Document]:
        """Lock by the server's clock. A document that was locked or put off before may have a side record."""
        until, by = self.fields.locked_until, self.fields.locked_by
        had_none = {"$in": [{"$type": f"${by}"}, ["missing", "null"]]}
        return [
            {
                "$set": {
                    str(until): {"$add": ["$$NOW", lock_for // MILLISECOND]},
                    str(by): {"$cond": [had_none, token, f"{token}{RETRIED}"]},
                }
            }
        ]

    def renewal(self, lock_for: int) -> list[Document]:
        return [{"$set": {str(self.fields.locked_until): {"$add": ["$$NOW", lock_for // MILLISECOND]}}}]

    def held(self, locked: LockedDocument[Any]) -> Document:
        """The document, if the lock is still this one."""
        if self.fields.locked_by is not None and locked.token:
            return {"_id": {"$eq": locked.id}, self.fields.locked_by: locked.token}
        if not locked.token:  # adopted: it has no time, and no lock either
            return {"_id": {"$eq": locked.id}, self._path: {"$exists": False}}
        return {"_id": {"$eq": locked.id}, self._path: datetime_of(locked.locked_until)}

    def unchanged(self, locked: LockedDocument[Any]) -> Document:
        """The same, if the owner has changed nothing of the schedule."""
        terms, fields = locked.terms, self.fields
        query = self.held(locked)
        if self.fields.has_lock and locked.token:
            query[self._path] = time_of(terms.sleep_until)
        query[fields.interval] = {"$eq": terms.interval}
        query[fields.repeat_until] = {"$eq": terms.repeat_until}
        query[fields.auto_remove] = {"$eq": terms.auto_remove}
        return query

    def update(self, update: Update[Any]) -> Document:
        """The new time, and no lock."""
        fields = self.fields
        change: Document = {}
        if not update.keeps_schedule:
            change["$set"] = {self._path: time_of(update.sleep_until)}
        if fields.locked_until is not None and fields.locked_by is not None:
            change["$unset"] = {fields.locked_until: ""}
            if update.side is not None:
                change["$set"][fields.locked_by] = RETRY
            else:
                change["$unset"][fields.locked_by] = ""
        return change

    # Reading.

    def terms(self, document: Mapping[str, Any], sleep_until: int | None) -> Terms:
        fields = self.fields
        return Terms(
            sleep_until=sleep_until,
            interval=_value(document, fields.interval),
            repeat_until=_value(document, fields.repeat_until),
            auto_remove=_value(document, fields.auto_remove),
        )

    def sleep_until(self, document: Mapping[str, Any]) -> int | None:
        return micros_in(_read(document, self._path))

    def lock_of(self, document: Mapping[str, Any]) -> tuple[int | None, str]:
        """When the lock ends, and whose it is."""
        until, by = self.fields.locked_until, self.fields.locked_by
        if until is None or by is None:
            return None, ""
        holder = _read(document, by)
        return micros_in(_read(document, until)), holder if isinstance(holder, str) else ""

    @property
    def projection(self) -> Document:
        """The fields of a schedule and its lock alone."""
        fields = self.fields
        paths = (fields.sleep_until, fields.interval, fields.repeat_until, fields.auto_remove)
        locks = (fields.locked_until, fields.locked_by) if fields.has_lock else ()
        return {str(path): 1 for path in (*paths, *locks)}

    # Indexes.

    @property
    def due_index(self) -> tuple[Document, Document]:
        """Keys and partial filter: conditions that are plain values first, then the time."""
        keys = dict.fromkeys(equalities(self.condition), 1)
        keys[self._path] = 1
        if self.fields.locked_until is not None:
            keys[self.fields.locked_until] = 1  # so that documents that run are passed over in the index
        return keys, {self._path: {"$type": "date"}}

    @property
    def start_index(self) -> tuple[Document, Document]:
        """Finds recurring documents without a time among the recurring ones."""
        return {self.fields.interval: 1, self._path: 1}, {self.fields.interval: {"$type": "string"}}


def equalities(condition: Mapping[str, Any]) -> list[str]:
    """The fields of a condition that must equal one value."""
    plain = (str, int, float, bool)
    return [name for name, value in condition.items() if not name.startswith("$") and isinstance(value, plain)]


def time_of(micros: int | None) -> datetime | DatetimeMS | None:
    """An instant exactly as the server holds it: a fence must also find one outside of Python's calendar."""
    if micros is None:
        return None
    return DatetimeMS(micros // MILLISECOND) if outside_calendar(at=micros) else datetime_of(micros)


def micros_in(value: Any) -> int | None:
    """A date of MongoDB as microseconds; None for anything else."""
    if isinstance(value, DatetimeMS):  # outside of Python's calendar
        return int(value) * MILLISECOND
    if not isinstance(value, datetime):
        return None
    return micros_of(value if value.tzinfo is not None else value.replace(tzinfo=UTC))


def _read(document: Mapping[str, Any], path: str) -> Any:
    """A field, or MISSING: also if the owner has put a list on the way while the document runs."""
    try:
        return get_path(document, path)
    except PathThroughList:
        return MISSING


def _value(document: Mapping[str, Any], path: str) -> Any:
    """A field as the rules want it: None if it is missing, and times with their zone."""
    value = _read(document, path)
    if value is MISSING:
        return None
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def ids_meant(wanted: Any) -> list[Any]:
    """The ids that may be meant: of a text also a number, an ObjectId, a UUID or a document that is written so."""
    meant = texts_meant(wanted)
    if isinstance(wanted, str):
        if ObjectId.is_valid(wanted):
            meant.append(ObjectId(wanted))
        for read in (_uuid, _document):
            found = read(wanted)
            if found is not None:
                meant.append(found)
    return meant


def _uuid(text: str) -> Binary | None:
    try:
        return Binary.from_uuid(UUID(text))
    except ValueError:
        return None


def _document(text: str) -> Document | None:
    try:
        found = json_util.loads(text) if text.startswith("{") else None
    except (ValueError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def ids_of(locked: Sequence[LockedDocument[Any]]) -> list[Any]:
    return [one.id for one in locked]
