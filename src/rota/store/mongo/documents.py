"""Documents and values: how jobs, schedules and occurrences are laid out. What a value leaves out is not stored."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from rota.model.job import Job, NewJob, accept
from rota.model.occurrence import Occurrence
from rota.model.outcome import Undecodable
from rota.model.retry import RetryPolicy
from rota.model.schedule import Ahead, LastRun, Origin, Pause, Schedule, ScheduleSpec, pack_spec, unpack_spec
from rota.model.settle import apply, claim, settle
from rota.store.mongo.places import UNPLACED, place_of, seq_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.store.mongo.space import Document

_NEEDED = ("seq", "task", "payload", "queue", "priority", "created_at", "run_at", "lease_no")
_LEFT_OUT = [
    (name, default)
    for name, default in zip(
        Job.__struct_fields__[-len(Job.__struct_defaults__) :], Job.__struct_defaults__, strict=True
    )
    if name not in _NEEDED
]
_needed_of = attrgetter(*_NEEDED)
_left_out_of = attrgetter(*(name for name, _ in _LEFT_OUT))
_encode = msgspec.json.encode
_decode_origin = msgspec.json.Decoder(Origin).decode
_decode_ahead = msgspec.json.Decoder(Ahead).decode
_decode_pause = msgspec.json.Decoder(Pause).decode
_PACKED = {"origin": _decode_origin, "pause": _decode_pause, "tenant_pause": _decode_pause, "ahead": _decode_ahead}


def document_of_job(job: Job) -> Document:
    document: Document = {"_id": job.id, "state": job.state.value, **dict(zip(_NEEDED, _needed_of(job), strict=True))}
    for (name, default), value in zip(_LEFT_OUT, _left_out_of(job), strict=True):
        if value != default:
            document[name] = value
    document["seq"] = place_of(job.seq)
    return document


def document_of_new(job: Job) -> Document:
    """What is inserted: a job that has no place in line yet."""
    return {**document_of_job(job), "seq": UNPLACED}


def job_of(document: Document) -> Job:
    """A document as a job; one that cannot be read is shown with the reason."""
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
    """What a document that was written by hand becomes: claimed and failed at once, which is how it is parked."""
    at = _whole(document.get("created_at"))
    new = NewJob(
        id=str(document.get("_id")),
        task=_text(document.get("task"), "unreadable"),
        payload=b"",
        queue=_text(document.get("queue"), "default"),
    )
    taken = claim(accept(new, at, _whole(seq_of(document.get("seq")))), holder, at, at)
    reason = f"the stored job cannot be read: {err}"
    return apply(settle(taken, Undecodable(reason), RetryPolicy(), at, 0.0))


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _text(value: object, otherwise: str) -> str:
    return value if isinstance(value, str) else otherwise


# Schedules.


def schedule_of(document: Document) -> Schedule:
    """A document as a schedule; one that cannot be read is shown with the reason, and is never due."""
    try:
        return _readable_schedule(document)
    except (msgspec.MsgspecError, TypeError, ValueError, KeyError) as err:
        return Schedule(
            id=str(document.get("_id")),
            spec=ScheduleSpec(trigger="", task="unreadable"),
            version=_whole(document.get("version")),
            created_at=_whole(document.get("created_at")),
            updated_at=_whole(document.get("updated_at")),
            fired_through=_whole(document.get("fired_through")),
            problem=f"the stored schedule cannot be read: {err!r}",
        )


def _readable_schedule(document: Document) -> Schedule:
    fields = dict(document)
    fields["id"] = fields.pop("_id")
    fields["spec"] = unpack_spec(fields["spec"])
    for name in _PACKED.keys() & fields.keys():
        fields[name] = _PACKED[name](fields[name])
    return msgspec.convert(fields, Schedule)


def document_of_schedule(schedule: Schedule) -> Document:
    """Every field, None where it has no value, but for what is known of its jobs."""
    return {
        "spec": pack_spec(schedule.spec).decode(),
        "origin": _encode(schedule.origin).decode(),
        "version": schedule.version,
        "generation": schedule.generation,
        "created_at": schedule.created_at,
        "updated_at": schedule.updated_at,
        "is_enabled": schedule.is_enabled,
        "pause": _packed(schedule.pause),
        "next_at": schedule.next_at,
        "fired_through": schedule.fired_through,
        "run_count": schedule.run_count,
        "problem": schedule.problem,
        "tenant_pause": _packed(schedule.tenant_pause),
        "ahead": _packed(schedule.ahead),
        "due_at": schedule.due_at,
        "tenant": schedule.spec.tenant or None,
        "origin_name": schedule.origin.name,
    }


def _packed(value: Pause | Ahead | None) -> str | None:
    return None if value is None else _encode(value).decode()


def document_of_last(last: LastRun) -> Document:
    return {name: value for name, value in msgspec.structs.asdict(last).items() if value is not None}


def last_of(document: Document) -> LastRun:
    """What a schedule knows of its jobs; whatever else was written there by hand is forgotten."""
    try:
        return msgspec.convert(document.get("last", {}), LastRun)
    except msgspec.ValidationError:
        return LastRun()


def changed(fields: Document) -> Document:
    """An update that sets these fields, and takes away those that are None."""
    update: Document = {"$set": {name: value for name, value in fields.items() if value is not None}}
    gone = {name: "" for name, value in fields.items() if value is None}
    if gone:
        update["$unset"] = gone
    return update


# Occurrences.

_convert_rows = list[tuple[int, int, int, str, str]]


def lines_of(schedule_id: str, rows: Any) -> list[Occurrence]:
    """A ledger's rows as lines; rows that were spoiled by hand are none."""
    try:
        plain = msgspec.convert(rows, _convert_rows)
    except msgspec.ValidationError:
        return []
    return [
        Occurrence(
            schedule_id=schedule_id,
            after_at=after_at,
            through_at=through_at,
            count=count,
            outcome=outcome,
            reason=reason,
        )
        for after_at, through_at, count, outcome, reason in plain
    ]


def row_of_line(line: Occurrence) -> list[Any]:
    return [line.after_at, line.through_at, line.count, line.outcome, line.reason]
