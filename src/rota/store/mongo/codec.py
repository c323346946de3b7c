"""Converts jobs, changes, schedules and occurrences to documents and back. A field with its default is not stored."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
from bson.timestamp import Timestamp

from rota.model.jobs.job import Job, NewJob
from rota.model.jobs.settle import Change
from rota.model.schedules.occurrence import Occurrence
from rota.model.schedules.schedule import Ahead, LastRun, Origin, Pause, Schedule, pack_spec, unpack_spec
from rota.store.shared import unpacking

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.store.mongo.database import Document

# Conditions and fields.


def between(**ends: Any) -> Document | None:
    """A range as a condition; an end that is None is open, and with both there is none: `between(gte=1, lt=None)`."""
    return {f"${name}": end for name, end in ends.items() if end is not None} or None


def given(**fields: Any) -> Document:
    """Those of the fields, or conditions, that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def changed(fields: Document) -> Document:
    """An update that sets these fields, and removes those that are None."""
    gone = {name: "" for name, value in fields.items() if value is None}
    return {"$set": given(**fields), **({"$unset": gone} if gone else {})}


# Positions. A job's `seq` is a timestamp that the server sets as it inserts the job: the second, and a number within it
# that rises with every write and never repeats. A batch gets them in its order, so no position is reserved beforehand:
# a new job has 0, which the server replaces.

_BITS = 32


def seq_of(position: Any) -> Any:
    """A stored position as a number. A value of another type, written by hand, stays as it is."""
    return position.time << _BITS | position.inc if isinstance(position, Timestamp) else position


def position_of(seq: int) -> Timestamp:
    return Timestamp(seq >> _BITS, seq & ((1 << _BITS) - 1))


# Jobs.

_DEFAULTS = dict(
    zip(Job.__struct_fields__[-len(Job.__struct_defaults__) :], Job.__struct_defaults__, strict=True)
)  # of the fields that have one
_ALWAYS = ("seq", "task", "payload", "queue", "priority", "created_at", "run_at", "lease_no")
_OPTIONAL = {name: default for name, default in _DEFAULTS.items() if name not in _ALWAYS}
_always_of = attrgetter(*_ALWAYS)
_optional_of = attrgetter(*_OPTIONAL)
_encode = msgspec.json.encode


def document_of_job(job: Job) -> Document:
    document: Document = {"_id": job.id, "state": job.state.value, **dict(zip(_ALWAYS, _always_of(job), strict=True))}
    for (name, default), value in zip(_OPTIONAL.items(), _optional_of(job), strict=True):
        if value != default:
            document[name] = value
    document["seq"] = position_of(job.seq)
    return document


def job_of(document: Document) -> Job:
    """A document as a job. One that cannot be read is shown as failed, with the reason."""
    try:
        return readable_job(document)
    except msgspec.ValidationError as err:
        return unreadable_job(document, err)


def readable_job(document: Document) -> Job:
    fields = dict(document)
    fields["id"] = fields.pop("_id", None)
    fields["seq"] = seq_of(fields.get("seq"))
    return msgspec.convert(fields, Job, builtin_types=(bytes,))  # text is not taken for base64


def jobs_of(documents: Iterable[Document]) -> list[Job]:
    return [job_of(document) for document in documents]


def unreadable_job(document: Document, err: Exception, *, holder: str = "nobody") -> Job:
    """The failed job that stands for a document which somebody wrote by hand: claimed, and failed at once."""
    at = _whole(document.get("created_at"))
    new = NewJob(
        id=str(document.get("_id")),
        task=_text(document.get("task"), "unreadable"),
        payload=b"",
        queue=_text(document.get("queue"), "default"),
    )
    reason = f"the stored job cannot be read: {err}"
    return unpacking.unreadable_job(new, reason, seq=_whole(seq_of(document.get("seq"))), at=at, holder=holder)


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _text(value: object, otherwise: str) -> str:
    return value if isinstance(value, str) else otherwise


# Changes.

_NOT_COPIED = {"job", "state", "cancel_reason", "is_removal", "ended_at"}
_CHANGED = tuple(name for name in Change.__struct_fields__ if name not in _NOT_COPIED)
_changed_of = attrgetter(*_CHANGED)


def differences(change: Change) -> list[tuple[str, object]]:
    """The fields that a change gives another value."""
    fields = zip(_CHANGED, _changed_of(change), _changed_of(change.job), strict=True)
    return [(name, after) for name, after, before in fields if after != before]


def update_of(changes: Sequence[Change], token: str) -> Document | list[Document]:
    """The one update that all of these changes write: the fields that differ, and the end of the lease. If they have
    several results, each job takes its own from a list."""
    update, results = changed(_fields_of(changes[0], token)), [change.result for change in changes]
    if results.count(results[0]) == len(results):
        return update
    place = {"$indexOfArray": [{"$literal": [change.id for change in changes]}, "$_id"]}
    values = {name: {"$literal": value} for name, value in update["$set"].items()}
    values["result"] = {"$arrayElemAt": [{"$literal": results}, place]}
    return [{"$set": values}, {"$unset": list(update["$unset"])}]  # a lease ends with each change


def _fields_of(change: Change, token: str) -> Document:
    """What a change sets; None removes a field."""
    fields: Document = {
        "state": change.state.value,
        "token": token,
        "lease_until": None,
        "holder": change.job.holder if change.state.is_final else None,
    }
    if change.cancel_reason or not change.keeps_cancel:
        fields["cancel_reason"] = change.cancel_reason
    after = dict(differences(change))
    return fields | {name: None if _OPTIONAL.get(name, ...) == value else value for name, value in after.items()}


# Schedules.

_PACKED = {
    "origin": msgspec.json.Decoder(Origin).decode,
    "pause": msgspec.json.Decoder(Pause).decode,
    "tenant_pause": msgspec.json.Decoder(Pause).decode,
    "ahead": msgspec.json.Decoder(Ahead).decode,
}


def schedule_of(document: Document) -> Schedule:
    """A document as a schedule. One that cannot be read is shown with the reason, and is never due."""
    try:
        return _readable_schedule(document)
    except (msgspec.MsgspecError, TypeError, ValueError, KeyError) as err:
        names = ("version", "created_at", "updated_at", "fired_through")
        plain = {name: _whole(document.get(name)) for name in names}
        return unpacking.unreadable_schedule(str(document.get("_id")), repr(err), **plain)


def _readable_schedule(document: Document) -> Schedule:
    fields = dict(document)
    fields["id"] = fields.pop("_id")
    fields["spec"] = unpack_spec(fields["spec"])
    for name in _PACKED.keys() & fields.keys():
        fields[name] = _PACKED[name](fields[name])
    return msgspec.convert(fields, Schedule)


def document_of_schedule(schedule: Schedule) -> Document:
    """Every field, None if it has no value, except the id and what is known of the schedule's jobs (`last`)."""
    fields = {
        name: getattr(schedule, name) for name in schedule.__struct_fields__ if name not in {"id", "last", "spec"}
    }
    for name in _PACKED:
        fields[name] = None if fields[name] is None else _encode(fields[name]).decode()
    return {
        **fields,
        "spec": pack_spec(schedule.spec).decode(),
        "due_at": schedule.due_at,
        "tenant": schedule.spec.tenant or None,
        "origin_name": schedule.origin.name,
    }


def new_schedule_document(schedule: Schedule) -> Document:
    """The document to insert."""
    return {"_id": schedule.id, **given(**document_of_schedule(schedule)), "last": document_of_last(schedule.last)}


def document_of_last(last: LastRun) -> Document:
    return given(**msgspec.structs.asdict(last))


def last_of(document: Document) -> LastRun:
    """What a schedule knows of its jobs. A value that was written there by hand is ignored."""
    try:
        return msgspec.convert(document.get("last", {}), LastRun)
    except msgspec.ValidationError:
        return LastRun()


# Occurrences. A ledger entry is stored as a row: these fields in this order.

_ROW = ("after_at", "through_at", "count", "outcome", "reason")
_ROWS: Any = list[tuple[int, int, int, str, str]]


def entries_of(schedule_id: str, rows: Any) -> list[Occurrence]:
    """A ledger's rows as entries; rows that were changed by hand are ignored."""
    try:
        valid: list[tuple[Any, ...]] = msgspec.convert(rows, _ROWS)
    except msgspec.ValidationError:
        return []
    return [Occurrence(schedule_id=schedule_id, **dict(zip(_ROW, row, strict=True))) for row in valid]


def row_of(entry: Occurrence) -> list[Any]:
    return [getattr(entry, name) for name in _ROW]
