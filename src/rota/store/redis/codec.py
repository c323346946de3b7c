"""The codec: jobs, schedules, occurrences, entries, audit records and log lines as Redis stores them.

A job's record is written once, when it is accepted: its position and its priority as text, which scripts read, then all
else packed, without what is left at its default. What became of it since is a second value, its standing, which begins
with the last lease number. The claim that a job is under is stored in its lease alone; the model's own rules put the
job together here.
"""

from __future__ import annotations

import re
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from rota.errors import UnlawfulMove
from rota.model.entry import Entry
from rota.model.jobs.job import Job, NewJob, State
from rota.model.jobs.settle import claim, promote
from rota.model.lock import LockState
from rota.model.schedules.occurrence import Occurrence
from rota.model.schedules.schedule import LastRun, Schedule
from rota.store.contract import LogLine
from rota.store.shared.unpacking import audit_record_from, unreadable_job, unreadable_schedule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.jobs.settle import Change

encode = msgspec.msgpack.Encoder().encode


def binary(data: bytes) -> msgspec.Raw:
    """Bytes as MessagePack text of any content: Lua's strings are bytes, and its decoder knows no binary type."""
    size = len(data)
    head = b"\xda" + size.to_bytes(2, "big") if size < 65_536 else b"\xdb" + size.to_bytes(4, "big")
    return msgspec.Raw(head + data)


def to_script(value: Any) -> Any:
    """A value for a script: all bytes within it as text, and false for None, as a nil would end a Lua list."""
    if value is None:
        return False
    if isinstance(value, bytes):
        return binary(value)
    return [to_script(part) for part in value] if isinstance(value, (list, tuple)) else value


def pairs_of(found: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The names and values that a command answers in turns."""
    return zip(found[::2], found[1::2], strict=True)


# Jobs.


class Record(Struct, frozen=True, array_like=True, gc=False):
    """A job when it was accepted. New fields come last and have defaults: old and new code share a store."""

    task: str
    payload: bytes
    queue: str
    created_at: int
    run_at: int | None = None  # a plain job's record ends before this, and its run_at is created_at
    state: State = State.QUEUED
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
    """What became of a job since, without the lease that it may be under. First the fields that a change sets."""

    state: State
    started_at: int | None
    finished_at: int | None
    result: bytes | None
    attempts: int
    holder: str | None
    run_at: int | None = None  # None, and nothing after it: as in the record, because this is the job's first change
    key: str | None = None
    queued_at: int | None = None
    failures: int = 0
    deaths: int = 0
    cancel_reason: str | None = None
    error: str | None = None
    past: bytes = b""
    slot: str | None = None
    waits_for: str | None = None
    ahead: str | None = None


class JobSnapshot(NamedTuple):
    """The stored parts of a job at one instant."""

    record: bytes
    standing: bytes | None
    ready_at: bytes | None
    lease: bytes | None
    cancel: bytes | None
    progress: bytes | None
    end: bytes | None = None  # the standing of an ended job

    @property
    def guard(self) -> tuple[Any, ...]:
        """What must still be so for a decision on this job to hold."""
        parts = (self.standing, self.ready_at, self.lease, self.cancel, self.end)
        return tuple(False if part is None else binary(part) for part in parts)


_record = msgspec.msgpack.Decoder(Record).decode
_standing = msgspec.msgpack.Decoder(Standing).decode
_plain_record = msgspec.msgpack.Decoder(tuple[str, bytes, str, int]).decode
_record_fields = attrgetter(*Record.__struct_fields__)
_changed_fields = attrgetter(*(name for name in Standing.__struct_fields__[:15] if name != "holder"))
_PLAIN_RECORD = tuple(field.default for field in msgspec.structs.fields(Record)[5:])
_PLAIN_STANDING = tuple(field.default for field in msgspec.structs.fields(Standing)[7:15])
_PLAIN_HEAD = 0x94  # MessagePack: an array of four
UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, AttributeError, LookupError, UnlawfulMove)


def pack_record(job: Job) -> bytes:
    """A new job as it is stored, without its position, which comes in front."""
    fields = _record_fields(job)
    is_plain = fields[5:] == _PLAIN_RECORD and job.run_at == job.created_at
    return b"|%d|" % job.priority + encode(fields[:4] if is_plain else fields)


def pack_plain_record(new: NewJob, at: int) -> bytes:
    """The same of a plain request that is accepted at an instant."""
    return b"|%d|" % new.priority + encode((new.task, new.payload, new.queue, at))


def pack_standing(after: Job | Change, job: Job, holder: str | None) -> bytes:
    """A job by itself, or after a change; what a change does not set is the job's own."""
    fields = _changed_fields(after)
    if job.lease_no == 1 and fields[6:] == _PLAIN_STANDING and job.waits_for is None and job.ahead is None:
        return b"1|" + encode((*fields[:5], holder))
    return b"%d|" % job.lease_no + encode((*fields[:5], holder, *fields[5:], job.waits_for, job.ahead))


def standing_of(job: Job) -> bytes:
    """The standing of a job that is under no lease."""
    return pack_standing(job, job, job.holder)


def home_of(state: State) -> str:
    """The hash of a job's standing: claims read those of live jobs alone, which are few."""
    return "end" if state.is_final else "state"


def fence_of(lease_no: int, holder: str) -> str:
    """The part of a lease that scripts compare."""
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


def job_of(job_id: str, snapshot: JobSnapshot) -> Job:
    """A job; one that cannot be read is shown as failed, with the reason."""
    standing = snapshot.standing if snapshot.end is None else snapshot.end
    try:
        job = waiting_job(job_id, snapshot.record, standing, snapshot.ready_at)
        if snapshot.lease is not None:
            lease = lease_of(snapshot.lease)
            job = claim(job, lease.holder, lease.began_at, lease.ends_at)
            job = msgspec.structs.replace(job, lease_no=lease.number)
        if snapshot.cancel is None and snapshot.progress is None:
            return job
        asked = job.cancel_reason if snapshot.cancel is None else snapshot.cancel.decode()
        progress = None if snapshot.progress is None else snapshot.progress.decode()
        return msgspec.structs.replace(job, cancel_reason=asked, progress=progress)
    except UNREADABLE as err:
        return unreadable(job_id, snapshot.record, err)


def unreadable(job_id: str, record: bytes | None, err: Exception, queue: str | None = None) -> Job:
    """What is shown in place of a job whose record cannot be read."""
    position = (record or b"").split(b"|", 1)[0]
    new = NewJob(id=job_id, task="unreadable", payload=b"", queue=queue or _queue_of(record or b""))
    cause = err if record else "Redis has no record of it any more"
    seq = int(position) if position.isdigit() else 0
    return unreadable_job(new, f"the stored job cannot be read: {cause}", seq=seq, at=0)


def _queue_of(record: bytes) -> str:
    """The queue of an unreadable record, if that can be read: the counters are by queue."""
    try:
        queue = msgspec.msgpack.decode(record.split(b"|", 2)[2])[2]
    except UNREADABLE:
        return "unreadable"
    return queue if isinstance(queue, str) else "unreadable"


def waiting_job(job_id: str, packed: bytes, standing: bytes | None, ready_at: bytes | None = None) -> Job:
    """A job without its lease."""
    position, priority, rest = packed.split(b"|", 2)
    values = msgspec.structs.asdict(_record(rest))
    if values["run_at"] is None:
        values["run_at"] = values["created_at"]
    if standing is not None:
        lease_no, _, rest = standing.partition(b"|")
        changed = msgspec.structs.asdict(_standing(rest))
        if changed["run_at"] is None:
            del changed["run_at"]
        values.update(changed, lease_no=int(lease_no))
    job = Job(id=job_id, seq=int(position), priority=int(priority), **values)
    return job if ready_at is None else promote(job, int(ready_at))


def claimed_job(job_id: str, packed: bytes, holder: str, now: int, until: int) -> Job:
    """A job under its first lease: what the model's `claim` makes of it, for plain records at half the cost."""
    position, priority, rest = packed.split(b"|", 2)
    if rest[0] != _PLAIN_HEAD:
        return claim(waiting_job(job_id, packed, None), holder, now, until)
    task, payload, queue, created_at = _plain_record(rest)
    return Job(
        id=job_id,
        seq=int(position),
        task=task,
        payload=payload,
        state=State.RUNNING,
        queue=queue,
        priority=int(priority),
        created_at=created_at,
        run_at=created_at,
        started_at=now,
        lease_no=1,
        holder=holder,
        lease_until=until,
    )


def snapshots_of(raw: list[Any]) -> dict[str, JobSnapshot | None]:
    """What a script read of jobs, by id; None if there is no such job."""
    ids = [job_id.decode() for job_id in raw[0]]
    if not ids:
        return {}
    rows = zip(*raw[1:], strict=True)
    return {job_id: None if row[0] is None else JobSnapshot(*row) for job_id, row in zip(ids, rows, strict=True)}


def jobs_of(raw: list[Any]) -> list[Job]:
    """The jobs that a script read, in its order."""
    return [job_of(job_id, snapshot) for job_id, snapshot in snapshots_of(raw).items() if snapshot is not None]


# Schedules: what is known of their last run is kept apart, field by field, because workers write it.

_decode_schedule = msgspec.msgpack.Decoder(Schedule).decode


def schedule_head(schedule: Schedule) -> bytes:
    """What a packed schedule begins with: it shows whether it still is the one that was read."""
    return b"%d|%d|" % (schedule.version, schedule.created_at)


def pack_schedule(schedule: Schedule) -> bytes:
    return schedule_head(schedule) + encode(msgspec.structs.replace(schedule, last=LastRun()))


def schedule_of(schedule_id: str, packed: bytes, last: list[bytes]) -> Schedule:
    """A schedule put together; one that cannot be read is shown with the reason, and is never due."""
    try:
        schedule = _decode_schedule(packed.split(b"|", 2)[2])
        known = {name.decode(): msgspec.msgpack.decode(value) for name, value in pairs_of(last)}
        return msgspec.structs.replace(schedule, last=msgspec.convert(known, LastRun)) if known else schedule
    except UNREADABLE as err:
        parts = [int(part) if part.isdigit() else 0 for part in packed.split(b"|", 2)[:2]]
        version, at = parts if len(parts) == 2 else (0, 0)
        return unreadable_schedule(schedule_id, err, version=version, created_at=at, updated_at=at, fired_through=at)


UNTOUCHED: Any = -1  # stands for what a rule leaves as it was


def pack_last(last: LastRun) -> list[Any]:
    """The fields of a last run that a rule has set, in pairs; those that it left untouched are left out."""
    pairs: list[Any] = []
    for name in LastRun.__struct_fields__:
        value = getattr(last, name)
        if value != UNTOUCHED:
            pairs += [name, binary(encode(value))]
    return pairs


UNKNOWN_LAST = LastRun(**dict.fromkeys(LastRun.__struct_fields__, UNTOUCHED))


# The occurrence ledger.

_decode_occurrence = msgspec.msgpack.Decoder(tuple[int, int, int, str, str]).decode


def pack_occurrence(entry: Occurrence) -> bytes:
    return encode((entry.after_at, entry.through_at, entry.count, entry.outcome, entry.reason))


def occurrence_of(schedule_id: str, packed: bytes) -> Occurrence:
    after_at, through_at, count, outcome, reason = _decode_occurrence(packed)
    return Occurrence(
        schedule_id=schedule_id, after_at=after_at, through_at=through_at, count=count, outcome=outcome, reason=reason
    )


# Entries and audit records.

TIME_WIDTH = 20  # digits of the time in front of an audit record's id: so sort keys are in order of time
_decode_audit_record = msgspec.msgpack.Decoder(tuple[str, str]).decode


def pack_entry(entry: Entry) -> bytes:
    return b"%d|" % entry.version + entry.data.encode()


def entry_of(kind: str, name: str, packed: bytes) -> Entry:
    version, _, data = packed.partition(b"|")
    return Entry(kind=kind, name=name, version=int(version), data=data.decode())


def audit_key(at: int, record_id: str = "") -> str:
    """An audit record in the indexes; with no id, what sorts before all records of that time."""
    return f"{at:0{TIME_WIDTH}d}{record_id}"


def pack_audit_record(record: AuditRecord) -> tuple[Any, ...]:
    """An audit record as scripts take it: sort key, id, subject, and the stored value, which repeats the subject."""
    kept = encode((record.subject, msgspec.json.encode(record).decode()))
    return audit_key(record.at, record.id), record.id, record.subject, binary(kept)


def audit_record_of(key: str, packed: bytes) -> AuditRecord:
    """The audit record under a sort key."""
    try:
        subject, kept = _decode_audit_record(packed)
    except msgspec.MsgspecError:
        subject, kept = "", ""
    return audit_record_from(kept, record_id=key[TIME_WIDTH:], at=int(key[:TIME_WIDTH]), subject=subject)


# Log lines.

_decode_log_line = msgspec.msgpack.Decoder(tuple[int, str, str]).decode


def pack_log_line(line: LogLine) -> bytes:
    return encode((line.at, line.level, line.text))


def log_line_of(job_id: str, row: bytes) -> LogLine:
    number, _, packed = row.partition(b"|")
    at, level, text = _decode_log_line(packed)
    return LogLine(job_id=job_id, number=int(number), at=at, level=level, text=text)


# Locks: the number, which is read alone when a store is copied, then the end, the term and the token.

_LOCK = re.compile(rb"(\d+)\|(\d+):?(\d*)\|(.*)", re.DOTALL)


def pack_lock(lock: LockState) -> bytes:
    term = "" if lock.ttl is None else lock.ttl
    return f"{lock.number}|{lock.until}:{term}|{lock.token}".encode()


def lock_of(packed: bytes | None) -> LockState:
    found = _LOCK.fullmatch(packed or b"0|0:|")
    if found is None:
        return LockState()
    number, until, term, token = found.groups()
    return LockState(token=token.decode(), until=int(until), number=int(number), ttl=int(term) if term else None)
