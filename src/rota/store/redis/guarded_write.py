"""One all-or-nothing write, guarded by the snapshots that it was decided on.

A verb reads, lets the model decide on a guarded write, and commits. If something that was read has changed meanwhile,
nothing of that write is written, and the verb reads and decides again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from rota.model.job import Job, NewJob, accept, holds_key
from rota.model.occurrence import fold, is_noted, is_record_of, noted, of_job, of_skip
from rota.model.settle import Change, apply_to, cancel, release, still_awaited
from rota.model.state import State
from rota.store.contract import Added
from rota.store.redis.codec import (
    UNKNOWN_LAST,
    Lease,
    binary,
    home_of,
    job_of,
    occurrence_of,
    pack_audit_record,
    pack_last,
    pack_occurrence,
    pack_record,
    schedule_of,
    standing_of,
    to_script,
)
from rota.store.redis.indexes import Command, count, index_commands
from rota.store.shared.counting import Counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.occurrence import Occurrence
    from rota.model.slots import Skip
    from rota.store.redis.codec import JobSnapshot

Held = tuple[str, str]  # what at most one job holds: "key" and a key, or "busy" and the schedule whose slot it is


class SnapshotReader(Protocol):
    """What a guarded write reads with."""

    def read_jobs(self, ids: Sequence[str]) -> dict[str, JobSnapshot | None]: ...

    def read(self, *commands: Command) -> list[Any]: ...


class GuardedWrite:
    """Jobs before and after, and what else is written with them."""

    def __init__(self, reader: SnapshotReader, now: int, positions: Iterable[int] = ()) -> None:
        self.now = now
        self._positions = iter(positions)  # of new jobs
        self._reader = reader
        self._snapshots: dict[str, JobSnapshot | None] = {}
        self._before: dict[str, Job | None] = {}
        self._after: dict[str, Job | None] = {}
        self._accepted: dict[str, Job] = {}  # new jobs, as they were accepted
        self._imported: set[str] = set()  # new jobs with a past
        self._counts = Counts()
        self._holders: dict[Held, str | None] = {}  # after this write
        self._guards: dict[tuple[Any, ...], Any] = {}  # answers by command
        self._commands: list[Command] = []
        self._last_runs: list[tuple[str, list[Any]]] = []
        self._audit: list[tuple[Any, ...]] = []
        self._channels: set[str] = set()
        self._entries: dict[str, dict[bytes, Occurrence]] = {}  # of ledgers, after this write
        self._replaced: set[bytes] = set()  # entries that were joined to others
        self._whole_ledgers: set[str] = set()  # whose last entries were all read
        self._leases: list[tuple[str, int, int]] = []  # holder, how many more or fewer it has, and when they end

    # Jobs.

    def add_snapshots(self, snapshots: dict[str, JobSnapshot | None]) -> None:
        """Use jobs that were read for many writes at once."""
        for job_id, snapshot in snapshots.items():
            if job_id not in self._snapshots:
                self._snapshots[job_id] = snapshot
                self._before[job_id] = None if snapshot is None else job_of(job_id, snapshot)

    def find(self, job_id: str) -> Job | None:
        """A job after this write."""
        if job_id in self._after:
            return self._after[job_id]
        if job_id not in self._snapshots:
            self.add_snapshots(self._reader.read_jobs([job_id]))
        return self._before[job_id]

    def put(self, before: Job, after: Job) -> None:
        """Write a job that exists."""
        del before  # as it was read for this write
        self._put(after)

    def _put(self, job: Job) -> None:
        before = self.find(job.id)
        count(self._counts, before, job)
        self._holders.update(dict.fromkeys(_held_by(before)))
        self._holders.update(dict.fromkeys(_held_by(job), job.id))
        self._after[job.id] = job

    def make(self, new: NewJob) -> None:
        """Accept a job."""
        self._insert(accept(new, self.now, next(self._positions)))

    def _insert(self, job: Job) -> None:
        self._put(job)
        self._accepted[job.id] = job

    def import_job(self, job: Job) -> None:
        """Take a job as it is, from another store."""
        self._insert(job)
        self._imported.add(job.id)

    def add(self, new: NewJob) -> Added:
        """Accept a job unless its id, its slot or its key is taken."""
        if self.find(new.id) is not None:
            return Added(new.id, existed=True)
        holder = (new.slot and self.live_job(new.slot)) or (new.key and self.key_holder(new.key))
        if holder:
            return Added(holder, existed=True)
        awaited = self.find(new.waits_for) if new.waits_for else None
        must_wait = awaited is not None and awaited.is_live
        self._insert(accept(new, self.now, next(self._positions), must_wait=must_wait))
        return Added(new.id)

    def live_job(self, schedule_id: str) -> str | None:
        """The live job in a schedule's slot."""
        job = self._holder(("busy", schedule_id))
        return job.id if job is not None and job.slot == schedule_id else None

    def _holder(self, held: Held) -> Job | None:
        if held not in self._holders:
            (stored,) = self.read(["HGET", *held])
            self._holders[held] = None if stored is None else stored.decode()
        holder = self._holders[held]
        return None if holder is None else self.find(holder)

    def key_holder(self, key: str) -> str | None:
        """The job that holds a key; a key with a period is free when that is over."""
        job = self._holder(("key", key))
        if job is None or job.key != key:
            return None
        if holds_key(job.state, job.key_until, self.now):
            return job.id
        self._put(msgspec.structs.replace(job, key=None))
        return None

    def apply(self, changes: Iterable[Change]) -> None:
        """Write changes, and release the jobs that waited for them."""
        changes = list(changes)
        for change in changes:
            self._put(apply_to(self.find(change.id) or change.job, change))
        for change in changes:
            if change.state.is_final:
                self._release_waiting(change.id)
            if change.job.schedule_id is not None and is_noted(change):
                self.set_last_run(change.job.schedule_id, pack_last(noted(UNKNOWN_LAST, change)))
        for change in changes:
            if change.is_removal:
                self.remove(change.id)

    def stop(self, job_id: str, reason: str) -> None:
        """Ask a running job to stop; cancel a waiting one."""
        job = self.find(job_id)
        if job is None:
            return
        if job.state is State.RUNNING:
            self._put(msgspec.structs.replace(job, cancel_reason=job.cancel_reason or reason))
        else:
            self.apply([cancel(job, self.now, reason)])

    def remove(self, job_id: str) -> None:
        """Delete a job; its occurrence stays, folded into a range."""
        job = self.find(job_id)
        if job is None:
            return
        if job.schedule_id is not None and job.fire_at is not None:
            (packed,) = self.read(["HGET", "schedule", job.schedule_id])
            made_at = None if packed is None else schedule_of(job.schedule_id, packed, []).created_at
            if is_record_of(job, made_at):
                self._record(of_job(job))
        self._delete(job)

    def _delete(self, job: Job) -> None:
        count(self._counts, job, None)
        self._holders.update(dict.fromkeys(_held_by(job)))
        self._after[job.id] = None

    def count_end(self, before: Job, after: Job) -> None:
        """Count the end of a running job that is written by commands."""
        count(self._counts, before, after)
        self._leases.append((before.holder or "", -1, 0))

    def last_held(self, schedule_id: str) -> str | None:
        """The newest held job of a schedule, of those that this write has read."""
        known = {**self._before, **self._after}.values()
        held = [job for job in known if job and job.schedule_id == schedule_id and job.state is State.HELD]
        return max(held, key=lambda job: job.seq).id if held else None

    def unmake(self, *jobs: Job) -> None:
        """Delete jobs and leave no record of them; jobs that waited for them wait no more."""
        self.read(*(waits_for(job.id) for job in jobs))
        for job in jobs:
            self._delete(job)
        for job in jobs:
            self._release_waiting(job.id)

    def _release_waiting(self, job_id: str) -> None:
        """Release the jobs that waited for this one, or let them wait for what it waited for."""
        for job in self._waiting(job_id):
            awaited = still_awaited(job, self.find)
            if awaited is None:
                self.apply([release(job, self.now)])
            else:
                self._put(msgspec.structs.replace(job, waits_for=awaited))

    def _waiting(self, job_id: str) -> list[Job]:
        stored = [found.decode() for found in self.read(waits_for(job_id))[0]]
        new = [found for found in stored if found not in self._snapshots]
        if new:
            self.add_snapshots(self._reader.read_jobs(new))
        staged = [other for other, job in self._after.items() if job is not None and other not in stored]
        jobs = [self.find(other) for other in (*stored, *staged)]
        return [job for job in jobs if job is not None and job.state is State.HELD and job.waits_for == job_id]

    # Schedules, ledgers and audit records.

    def was_made(self, schedule_id: str, fire_at: int) -> bool:
        """Whether an occurrence has a job."""
        return bool(self.read(["ZCOUNT", f"slot:{schedule_id}", fire_at, fire_at])[0])

    def record_skip(self, schedule_id: str, skip: Skip) -> None:
        self._record(of_skip(schedule_id, skip))

    def set_last_run(self, schedule_id: str, fields: list[Any], *, is_own: bool = False) -> None:
        """`is_own`: by a firing or an edit of this schedule, for which the jobs that it ended itself are no runs."""
        if is_own:
            self._last_runs = [run for run in self._last_runs if run[0] != schedule_id]
        if fields:
            self._last_runs.append((schedule_id, fields))

    def add_audit_record(self, record: AuditRecord | None) -> None:
        """Add an audit record, unless it exists."""
        if record is not None:
            self._audit.append(pack_audit_record(record))

    def _record(self, entry: Occurrence) -> None:
        """Add an entry to a ledger, joined to the ranges that it touches without a break."""
        near = self._entries_near(entry)
        joined, replaced = fold(entry, *near.values())
        ledger = f"ledger:{entry.schedule_id}"
        for packed in [packed for packed, other in near.items() if other in replaced]:
            self.add_command("ZREM", ledger, binary(packed))
            self._replaced.add(packed)
            del near[packed]
        packed = pack_occurrence(joined)
        near[packed] = joined
        self.add_command("ZREMRANGEBYSCORE", ledger, joined.through_at, joined.through_at)
        self.add_command("ZADD", ledger, joined.through_at, binary(packed))

    def erase(self, schedule_id: str, ends: Sequence[int]) -> None:
        """Delete the entries of a ledger that end at these times."""
        entries = self._entries.get(schedule_id, {})
        for packed in [packed for packed, entry in entries.items() if entry.through_at in ends]:
            self._replaced.add(packed)
            del entries[packed]
        for end in ends:
            self.add_command("ZREMRANGEBYSCORE", f"ledger:{schedule_id}", end, end)

    def _entries_near(self, entry: Occurrence) -> dict[bytes, Occurrence]:
        """The entries of a ledger that this one may touch."""
        known = self._entries.setdefault(entry.schedule_id, {})
        if entry.schedule_id in self._whole_ledgers:
            return known
        before, after = self.read(*neighbours(entry))
        for packed in (*before, *after):
            if packed not in self._replaced:
                known[packed] = occurrence_of(entry.schedule_id, packed)
        return known

    def add_ledger(self, schedule_id: str, entries: list[bytes]) -> None:
        """Use the last entries of a ledger, which were read: all that new ones can touch."""
        self._entries[schedule_id] = {packed: occurrence_of(schedule_id, packed) for packed in entries}
        self._whole_ledgers.add(schedule_id)

    # Guards, and what is written.

    def guard(self, command: Command, answer: Any) -> None:
        """Write only if this still is the answer."""
        self._guards[tuple(command)] = answer

    def read(self, *commands: Command) -> list[Any]:
        """Read something, once; the write is guarded by the answer."""
        new = [command for command in commands if tuple(command) not in self._guards]
        if new:
            for command, answer in zip(new, self._reader.read(*new), strict=True):
                self.guard(command, answer)
        return [self._guards[tuple(command)] for command in commands]

    def add_command(self, *command: Any) -> None:
        self._commands.append(list(command))

    def notify(self, channel: str) -> None:
        self._channels.add(channel)

    def item(self) -> dict[str, Any]:
        """This write as the commit script takes it."""
        freed: list[tuple[str, str, str]] = []
        commands: list[Command] = []
        leases = [*self._leases]
        for job_id, after in self._after.items():
            before = self._before.get(job_id)
            if before is None and after is None:
                continue
            commands += index_commands(job_id, before, after)
            commands += self._value_commands(job_id, before, after)
            freed += [(*held, job_id) for held in _held_by(before) if held not in _held_by(after)]
            leases += _lease_moves(before, after)
            if after is not None and after.state in {State.QUEUED, State.SCHEDULED}:
                self._channels.add("jobs")
        for job_id, after in self._after.items():
            before = self._before.get(job_id)
            commands += [["HSET", *held, job_id] for held in _held_by(after) if held not in _held_by(before)]
        commands += self._commands
        commands += [["HINCRBY", "count", f"{queue}|{name}", number] for queue, name, number in self._counts.rows()]
        return {
            "jobs": [(job_id, found.guard if found is not None else None) for job_id, found in self._snapshots.items()],
            "guards": [(command, to_script(answer)) for command, answer in self._guards.items()],
            "freed": freed,
            "commands": commands,
            "leases": leases,
            "last_runs": self._last_runs,
            "audit": self._audit,
            "channels": sorted(self._channels),
        }

    def _value_commands(self, job_id: str, before: Job | None, after: Job | None) -> Iterable[Command]:
        if after is None:
            for name in ("job", "state", "end", "ready_at", "lease", "cancel", "progress"):
                yield ["HDEL", name, job_id]
            yield ["UNLINK", f"log:{job_id}"]
            return
        if before is None:
            accepted = self._accepted[job_id]
            yield ["HSET", "job", job_id, binary(b"%d" % accepted.seq + pack_record(accepted))]
            if job_id in self._imported:
                yield from _import_commands(after)
            elif after != accepted:
                yield _standing_command(after)
            return
        if after.state is State.RUNNING:  # asked to stop: its lease and its other fields stay
            if after.cancel_reason and after.cancel_reason != before.cancel_reason:
                yield ["HSET", "cancel", job_id, after.cancel_reason]
            return
        if before.state.is_final is not after.state.is_final:
            yield ["HDEL", home_of(before.state), job_id]
        yield _standing_command(after)
        for name in ("ready_at", "lease", "cancel"):
            yield ["HDEL", name, job_id]


def _held_by(job: Job | None) -> list[Held]:
    """The key and the slot that a job holds."""
    if job is None:
        return []
    named: tuple[tuple[str, str | None], ...] = (("key", job.key), ("busy", job.slot))
    return [(home, name) for home, name in named if name is not None]


def _lease_moves(before: Job | None, after: Job | None) -> Iterable[tuple[str, int, int]]:
    was_leased, is_leased = (job is not None and job.state is State.RUNNING for job in (before, after))
    if was_leased and not is_leased and before is not None:
        yield before.holder or "", -1, 0
    if is_leased and not was_leased and after is not None:
        yield after.holder or "", 1, after.lease_until or 0


def waits_for(job_id: str) -> Command:
    """What finds the jobs that wait for one."""
    return ["ZRANGE", f"waits:{job_id}", 0, -1]


def neighbours(entry: Occurrence) -> list[Command]:
    """What finds the entries of a ledger that one may touch: the one before it, and the first after it."""
    ledger = f"ledger:{entry.schedule_id}"
    return [
        ["ZRANGEBYSCORE", ledger, entry.after_at, entry.after_at],
        ["ZRANGEBYSCORE", ledger, f"({entry.through_at}", "+inf", "LIMIT", 0, 1],
    ]


def _standing_command(job: Job) -> Command:
    return ["HSET", home_of(job.state), job.id, binary(standing_of(job))]


def _import_commands(job: Job) -> Iterable[Command]:
    """The values of a job with a past; a running one has its lease, which has expired."""
    if job.progress is not None:
        yield ["HSET", "progress", job.id, job.progress]
    if job.state is not State.RUNNING:
        yield _standing_command(job)
        return
    yield _standing_command(
        msgspec.structs.replace(
            job, state=State.QUEUED, lease_no=job.lease_no - 1, holder=None, started_at=None, cancel_reason=None
        )
    )
    lease = Lease(job.started_at or 0, job.lease_until or 0, job.lease_no, job.holder or "")
    yield ["HSET", "lease", job.id, lease.packed()]
    if job.cancel_reason:
        yield ["HSET", "cancel", job.id, job.cancel_reason]
