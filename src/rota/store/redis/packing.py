"""Bytes and values: how jobs, schedules and ledger lines are packed.

A job's record is written once, when it is accepted, and never again: its place in line and its priority as text, which
scripts read, then everything else packed, without what is left at its default. What became of it since is a second
value, which begins with its last lease number. The claim that a job is under is in the lease alone, and is put back
together here by the model's own rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from rota.errors import UnlawfulMove
from rota.model.entry import Entry
from rota.model.job import Job
from rota.model.occurrence import Occurrence
from rota.model.schedule import LastRun, Schedule, ScheduleSpec
from rota.model.settle import claim, promote
from rota.model.state import State
from rota.store.redis.wire import binary
from rota.store.shared.unpacking import audit_record_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.job import NewJob
    from rota.model.settle import Change


class Record(Struct, frozen=True, array_like=True, gc=False):
    """What a job was when it was accepted. New fields come last and have defaults: old and new code share a store."""

    task: str
    payload: bytes
    queue: str
    created_at: int
    state: State = State.QUEUED  # a plain job's record ends before this
    run_at: int | None = None  # None: when it was created
    key: str | None = None
    key_until: int = 0
    schedule_id: str | None = None
    fire_at: int | None = None
    after_at: int | None = None
    generation: int = 0
    made_by: str | None = None
    waits_for: str | None = None
    past: bytes = b""
    slot: str | None = None
    ahead: str | None = None


class Standing(Struct, frozen=True, array_like=True, gc=False):
    """What became of a job since: as it stands without the lease that it may be under."""

    state: State
    started_at: int | None
    finished_at: int | None
    holder: str | None
    result: bytes | None
    attempts: int = 1  # a bare end's standing ends before this
    run_at: int | None = None  # None: as in the record
    key: str | None = None
    waits_for: str | None = None
    queued_at: int | None = None
    failures: int = 0
    deaths: int = 0
    cancel_reason: str | None = None
    error: str | None = None
    past: bytes = b""
    slot: str | None = None
    ahead: str | None = None


class Sight(NamedTuple):
    """A job as the store has it, field by field, at one instant."""

    record: bytes
    standing: bytes | None
    ready_at: bytes | None
    lease: bytes | None
    cancel: bytes | None
    progress: bytes | None
    end: bytes | None = None  # the standing of a job that has ended

    @property
    def guard(self) -> tuple[Any, ...]:
        """What must still be so for a decision on this job to hold."""
        parts = (self.standing, self.ready_at, self.lease, self.cancel, self.end)
        return tuple(False if part is None else binary(part) for part in parts)


_encode = msgspec.msgpack.Encoder().encode
_record = msgspec.msgpack.Decoder(Record).decode
_standing = msgspec.msgpack.Decoder(Standing).decode
_schedule = msgspec.msgpack.Decoder(Schedule).decode
_line = msgspec.msgpack.Decoder(tuple[int, int, int, str, str]).decode
_plain = msgspec.msgpack.Decoder(tuple[str, bytes, str, int]).decode
_PLAIN = (State.QUEUED, None, None, 0, None, None, None, 0, None, None, b"", None, None)
_PLAIN_HEAD = b"\x94"[0]  # an array of four
UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, AttributeError, LookupError, UnlawfulMove)


# Jobs.


def pack_record(job: Job) -> bytes:
    """A new job as it is kept, without its place in line, which comes in front."""
    fields: tuple[Any, ...] = (job.task, job.payload, job.queue, job.created_at)
    others = (
        job.state,
        None if job.run_at == job.created_at else job.run_at,
        job.key,
        job.key_until,
        job.schedule_id,
        job.fire_at,
        job.after_at,
        job.generation,
        job.made_by,
        job.waits_for,
        job.past,
        job.slot,
        job.ahead,
    )
    return b"|%d|" % job.priority + _encode(fields if others == _PLAIN else fields + others)


def pack_plain_record(new: NewJob, at: int) -> bytes:
    """The same of a plain request that is accepted at an instant."""
    return b"|%d|" % new.priority + _encode((new.task, new.payload, new.queue, at))


def pack_alike(news: Sequence[NewJob], at: int) -> list[bytes]:
    """The same of many that differ in their payloads alone: what they share is packed once."""
    first = news[0]
    head = b"|%d|" % first.priority + bytes([_PLAIN_HEAD]) + _encode(first.task)
    tail = _encode(first.queue) + _encode(at)
    return [head + payload + tail for payload in map(_encode, [new.payload for new in news])]


def pack_standing(stands: Job | Change, job: Job, holder: str | None) -> bytes:
    """How a job stands by itself or after a change: both have these fields; the rest is the job's own."""
    fields = (
        stands.state,
        stands.started_at,
        stands.finished_at,
        holder,
        stands.result,
        stands.attempts,
        stands.run_at,
        stands.key,
        job.waits_for,
        stands.queued_at,
        stands.failures,
        stands.deaths,
        stands.cancel_reason,
        stands.error,
        stands.past,
        stands.slot,
        job.ahead,
    )
    return b"%d|" % job.lease_no + _encode(fields)


def pack_bare_end(change: Change, holder: str) -> bytes:
    """How a job stands whose first and only attempt succeeded, where its record tells the rest."""
    return b"1|" + _encode((change.state, change.started_at, change.finished_at, holder, change.result))


def standing_of(job: Job) -> bytes:
    """How a job that is under no lease stands."""
    return pack_standing(job, job, job.holder)


def home_of(state: State) -> str:
    """Where the standing of a job is kept: claims look at those of live jobs alone, of which there seldom are any."""
    return "end" if state.is_final else "state"


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
        return f"{self.began_at:032d}{self.ends_at:032d}{fence_of(self.number, self.holder)}"


def lease_of(packed: bytes) -> Lease:
    number, _, holder = packed[64:].decode().partition("|")
    return Lease(int(packed[:32]), int(packed[32:64]), int(number), holder)


def job_of(job_id: str, sight: Sight) -> Job:
    """A job put together; one that cannot be read is shown as failed, with the reason."""
    try:
        return _readable_job(job_id, sight)
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
        error=f"the stored job cannot be read: {err if record else 'Redis has no record of it any more'}",
    )


def _queue_of(record: bytes) -> str:
    """The queue of a spoilt record, where at least that can be read: counters go by it."""
    try:
        queue = msgspec.msgpack.decode(record.split(b"|", 2)[2])[2]
    except UNREADABLE:
        return "unreadable"
    return queue if isinstance(queue, str) else "unreadable"


def _readable_job(job_id: str, sight: Sight) -> Job:
    job = waiting_job(job_id, sight.record, sight.standing if sight.end is None else sight.end)
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


def waiting_job(job_id: str, packed: bytes, standing: bytes | None) -> Job:
    """A job as it stands without a lease."""
    place, priority, rest = packed.split(b"|", 2)
    born = _record(rest)
    job = Job(
        job_id,
        int(place),
        born.task,
        born.payload,
        born.state,
        born.queue,
        int(priority),
        born.created_at,
        born.created_at if born.run_at is None else born.run_at,
        born.key,
        born.key_until,
        born.schedule_id,
        born.fire_at,
        born.after_at,
        born.generation,
        born.made_by,
        born.waits_for,
        past=born.past,
        slot=born.slot,
        ahead=born.ahead,
    )
    return job if standing is None else _with_standing(job, standing)


def _with_standing(job: Job, packed: bytes) -> Job:
    lease_no, _, rest = packed.partition(b"|")
    now = _standing(rest)
    return msgspec.structs.replace(
        job,
        state=now.state,
        run_at=job.run_at if now.run_at is None else now.run_at,
        key=now.key,
        waits_for=now.waits_for,
        queued_at=now.queued_at,
        started_at=now.started_at,
        finished_at=now.finished_at,
        attempts=now.attempts,
        failures=now.failures,
        deaths=now.deaths,
        lease_no=int(lease_no),
        holder=now.holder,
        cancel_reason=now.cancel_reason,
        error=now.error,
        result=now.result,
        past=now.past,
        slot=now.slot,
        ahead=now.ahead,
    )


def claimed_job(job_id: str, packed: bytes, holder: str, now: int, until: int) -> Job:
    """What a job that nothing has become of yet is under its first lease: what claim makes of it, without detours."""
    place, priority, rest = packed.split(b"|", 2)
    if rest[0] != _PLAIN_HEAD:
        return claim(waiting_job(job_id, packed, None), holder, now, until)
    task, payload, queue, created_at = _plain(rest)
    return Job(
        job_id,
        int(place),
        task,
        payload,
        State.RUNNING,
        queue,
        int(priority),
        created_at,
        created_at,
        None,
        0,
        None,
        None,
        None,
        0,
        None,
        None,
        None,
        now,
        None,
        0,
        0,
        0,
        1,
        holder,
        until,
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


def schedule_head(schedule: Schedule) -> bytes:
    """What a packed schedule begins with: it tells whether it still is the one that was read."""
    return b"%d|%d|" % (schedule.version, schedule.created_at)


def pack_schedule(schedule: Schedule) -> bytes:
    return schedule_head(schedule) + _encode(msgspec.structs.replace(schedule, last=LastRun()))


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


UNKNOWN_LAST = LastRun(**dict.fromkeys(LastRun.__struct_fields__, UNTOUCHED))


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


# Entries and notes.

WIDTH = 20  # digits of a time in front of a note's id: so their names sort as they were made
_kept_note = msgspec.msgpack.Decoder(tuple[str, str]).decode


def pack_entry(entry: Entry) -> bytes:
    return b"%d|" % entry.version + entry.data.encode()


def entry_of(kind: str, name: str, packed: bytes) -> Entry:
    version, _, data = packed.partition(b"|")
    return Entry(kind=kind, name=name, version=int(version), data=data.decode())


def note_mark(at: int, note_id: str = "") -> str:
    """What a note is called in the indexes; with no id, what comes before all notes of that time."""
    return f"{at:0{WIDTH}d}{note_id}"


def pack_note(note: AuditRecord) -> tuple[Any, ...]:
    """A note as scripts take it: id, mark, subject, and what is kept, which begins with the subject once more."""
    kept = _encode((note.subject, msgspec.json.encode(note).decode()))
    return note.id, note_mark(note.at, note.id), note.subject, binary(kept)


def audit_record_of(mark: bytes, packed: bytes) -> AuditRecord:
    """The note that an index has under this mark."""
    at, note_id = mark[:WIDTH].decode(), mark[WIDTH:].decode()
    try:
        subject, kept = _kept_note(packed)
    except msgspec.MsgspecError:
        subject, kept = "", ""
    return audit_record_from(kept, record_id=note_id, at=int(at), subject=subject)
