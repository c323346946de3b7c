"""Bytes and values: how jobs, schedules and ledger lines are packed.

A job's record is written once, when it is accepted, and never again: its place in line and its priority as text, which
scripts read, then everything else packed. What became of it since is a second value, which begins with its last lease
number. The claim that a job is under is in the lease alone, and is put back together here by the model's own rules.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from rota.errors import UnlawfulMove
from rota.model.job import Job
from rota.model.occurrence import Occurrence
from rota.model.schedule import LastRun, Schedule, ScheduleSpec
from rota.model.settle import claim, promote
from rota.model.state import State
from rota.store.redis.wire import binary


class Record(Struct, frozen=True, array_like=True, gc=False):
    """What a job was when it was accepted. New fields come last and have defaults: old and new code share a store."""

    id: str
    task: str
    payload: bytes
    queue: str
    priority: int
    created_at: int
    key_until: int
    schedule_id: str | None
    fire_at: int | None
    after_at: int | None
    generation: int
    made_by: str | None
    state: State
    run_at: int
    key: str | None
    waits_for: str | None
    past: bytes


class Standing(Struct, frozen=True, array_like=True, gc=False):
    """What became of a job since: as it stands without the lease that it may be under."""

    state: State
    run_at: int
    key: str | None
    waits_for: str | None
    queued_at: int | None
    started_at: int | None
    finished_at: int | None
    attempts: int
    failures: int
    deaths: int
    lease_no: int
    holder: str | None
    cancel_reason: str | None
    error: str | None
    result: bytes | None
    past: bytes


class Sight(NamedTuple):
    """A job as the store has it, field by field, at one instant."""

    record: bytes
    standing: bytes | None
    ready_at: bytes | None
    lease: bytes | None
    cancel: bytes | None
    progress: bytes | None

    @property
    def guard(self) -> tuple[Any, ...]:
        """What must still be so for a decision on this job to hold."""
        return tuple(False if part is None else binary(part) for part in self[1:5])


_encode = msgspec.msgpack.Encoder().encode
_record = msgspec.msgpack.Decoder(Record).decode
_standing = msgspec.msgpack.Decoder(Standing).decode
_schedule = msgspec.msgpack.Decoder(Schedule).decode
_line = msgspec.msgpack.Decoder(tuple[int, int, int, str, str]).decode
_STATES = {state.value: state for state in State}
UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, AttributeError, LookupError, UnlawfulMove)


# Jobs.


def pack_record(job: Job) -> bytes:
    """A new job as it is kept, without its place in line, which comes in front."""
    fields = (
        job.id,
        job.task,
        job.payload,
        job.queue,
        job.priority,
        job.created_at,
        job.key_until,
        job.schedule_id,
        job.fire_at,
        job.after_at,
        job.generation,
        job.made_by,
        job.state,
        job.run_at,
        job.key,
        job.waits_for,
        job.past,
    )
    return b"|%d|" % job.priority + _encode(fields)


def pack_standing(job: Any, *, key: str | None, holder: str | None, lease_no: int, waits_for: str | None) -> bytes:
    """How a job stands, from a job or from a change: both have these fields."""
    fields = (
        job.state,
        job.run_at,
        key,
        waits_for,
        job.queued_at,
        job.started_at,
        job.finished_at,
        job.attempts,
        job.failures,
        job.deaths,
        lease_no,
        holder,
        job.cancel_reason,
        job.error,
        job.result,
        job.past,
    )
    return b"%d|" % lease_no + _encode(fields)


def standing_of(job: Job) -> bytes:
    """How a job that is under no lease stands."""
    return pack_standing(job, key=job.key, holder=job.holder, lease_no=job.lease_no, waits_for=job.waits_for)


def fence_of(lease_no: int, holder: str) -> str:
    """The part of a lease that fences: scripts compare it."""
    return f"{lease_no}|{holder}"


class Lease(NamedTuple):
    """A worker's right to a job."""

    began_at: int
    ends_at: int
    number: int
    holder: str

    def packed(self) -> str:
        return f"{self.began_at:016d}{self.ends_at:016d}{fence_of(self.number, self.holder)}"


def lease_of(packed: bytes) -> Lease:
    number, _, holder = packed[32:].decode().partition("|")
    return Lease(int(packed[:16]), int(packed[16:32]), int(number), holder)


def job_of(job_id: str, sight: Sight) -> Job:
    """A job put together; one that cannot be read is shown as failed, with the reason."""
    try:
        return _readable_job(sight)
    except UNREADABLE as err:
        return unreadable(job_id, sight.record, err)


def unreadable(job_id: str, record: bytes | None, err: Exception) -> Job:
    """What stands for a job whose record somebody or something has spoilt."""
    place = (record or b"").split(b"|", 1)[0]
    return Job(
        id=job_id,
        seq=int(place) if place.isdigit() else 0,
        task="unreadable",
        payload=b"",
        state=State.FAILED,
        queue=_queue_of(record or b""),
        priority=0,
        created_at=0,
        run_at=0,
        finished_at=0,
        error=f"the stored job cannot be read: {err}",
    )


def _queue_of(record: bytes) -> str:
    """The queue of a spoilt record, where at least that can be read: counters go by it."""
    try:
        queue = msgspec.msgpack.decode(record.split(b"|", 2)[2])[3]
    except UNREADABLE:
        return "unreadable"
    return queue if isinstance(queue, str) else "unreadable"


def _readable_job(sight: Sight) -> Job:
    job = waiting_job(sight.record, sight.standing)
    if sight.ready_at is not None:
        job = promote(job, int(sight.ready_at))
    if sight.lease is not None:
        lease = lease_of(sight.lease)
        job = claim(job, lease.holder, lease.began_at, lease.ends_at)
        job = msgspec.structs.replace(job, lease_no=lease.number)
    if sight.cancel is None and sight.progress is None:
        return job
    asked = job.cancel_reason if sight.cancel is None else sight.cancel.decode()
    progress = None if sight.progress is None else sight.progress.decode()
    return msgspec.structs.replace(job, cancel_reason=asked, progress=progress)


def waiting_job(packed: bytes, standing: bytes | None, seq: int | None = None) -> Job:
    """A job as it stands without a lease."""
    place, _, rest = packed.split(b"|", 2)
    born = _record(rest)
    seq = int(place) if seq is None else seq
    if standing is None:
        return Job(
            born.id,
            seq,
            born.task,
            born.payload,
            born.state,
            born.queue,
            born.priority,
            born.created_at,
            born.run_at,
            born.key,
            born.key_until,
            born.schedule_id,
            born.fire_at,
            born.after_at,
            born.generation,
            born.made_by,
            born.waits_for,
            past=born.past,
        )
    now = _standing(standing[standing.index(b"|") + 1 :])
    return Job(
        born.id,
        seq,
        born.task,
        born.payload,
        now.state,
        born.queue,
        born.priority,
        born.created_at,
        now.run_at,
        now.key,
        born.key_until,
        born.schedule_id,
        born.fire_at,
        born.after_at,
        born.generation,
        born.made_by,
        now.waits_for,
        now.queued_at,
        now.started_at,
        now.finished_at,
        now.attempts,
        now.failures,
        now.deaths,
        now.lease_no,
        now.holder,
        None,
        now.cancel_reason,
        now.error,
        now.result,
        now.past,
    )


def sights_of(raw: list[Any]) -> dict[str, Sight | None]:
    """What a script read of jobs, by id; None where there is no such job."""
    ids = [job_id.decode() for job_id in raw[0]]
    if not ids:
        return {}
    rows = zip(*raw[1:], strict=True)
    return {job_id: None if row[0] is None else Sight(*row) for job_id, row in zip(ids, rows, strict=True)}


def jobs_of(raw: list[Any]) -> list[Job]:
    """The jobs that a script read, in its order."""
    return [job_of(job_id, sight) for job_id, sight in sights_of(raw).items() if sight is not None]


# Schedules: what is known of their last run is kept apart, field by field, because workers write it.


def pack_schedule(schedule: Schedule) -> bytes:
    head = b"%d|%d|" % (schedule.version, schedule.created_at)
    return head + _encode(msgspec.structs.replace(schedule, last=LastRun()))


def schedule_of(schedule_id: str, packed: bytes, last: list[bytes]) -> Schedule:
    """A schedule put together; one that cannot be read is shown with the reason, and is never due."""
    try:
        schedule = _schedule(packed.split(b"|", 2)[2])
        return msgspec.structs.replace(schedule, last=_last_of(last)) if last else schedule
    except UNREADABLE as err:
        return _unreadable_schedule(schedule_id, packed, err)


def _unreadable_schedule(schedule_id: str, packed: bytes, err: Exception) -> Schedule:
    parts = [int(part) if part.isdigit() else 0 for part in packed.split(b"|", 2)[:2]]
    version, created_at = parts if len(parts) == 2 else (0, 0)
    return Schedule(
        id=schedule_id,
        spec=ScheduleSpec(trigger="", task="unreadable"),
        version=version,
        created_at=created_at,
        updated_at=created_at,
        fired_through=created_at,
        problem=f"the stored schedule cannot be read: {err}",
    )


UNTOUCHED: Any = -1  # stands for what a rule leaves as it was


def pack_last(last: LastRun) -> list[Any]:
    """The fields of a last run that a rule has set, in pairs; those that it left untouched are left out."""
    pairs: list[Any] = []
    for name in LastRun.__struct_fields__:
        value = getattr(last, name)
        if value != UNTOUCHED:
            pairs += [name, binary(_encode(value))]
    return pairs


UNKNOWN_LAST = LastRun(UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED)


def _last_of(pairs: list[bytes]) -> LastRun:
    values = {name.decode(): msgspec.msgpack.decode(value) for name, value in zip(pairs[::2], pairs[1::2], strict=True)}
    return msgspec.convert(values, LastRun)


# The ledger.


def pack_line(line: Occurrence) -> bytes:
    return _encode((line.after_at, line.through_at, line.count, line.outcome, line.reason))


def line_of(schedule_id: str, packed: bytes) -> Occurrence:
    after_at, through_at, count, outcome, reason = _line(packed)
    return Occurrence(
        schedule_id=schedule_id, after_at=after_at, through_at=through_at, count=count, outcome=outcome, reason=reason
    )
