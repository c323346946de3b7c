"""A draft: one all-or-nothing write. What it was decided on is what guards it, and the model decides.

A verb reads, lets the model decide upon a draft, and commits. Where something that was read has moved on meanwhile,
nothing of that draft is written, and the verb reads and decides anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from rota.model.job import Job, NewJob, accept, holds_key
from rota.model.occurrence import fold, is_noted, is_record_of, noted, of_job
from rota.model.settle import Change, apply_to, cancel, release, still_awaited
from rota.model.state import State
from rota.store.contract import Added
from rota.store.redis.packing import (
    UNKNOWN_LAST,
    Lease,
    home_of,
    job_of,
    line_of,
    pack_last,
    pack_line,
    pack_note,
    pack_record,
    schedule_of,
    standing_of,
)
from rota.store.redis.places import Command, count, count_commands, departure, moves
from rota.store.redis.wire import binary, wired
from rota.store.shared.counting import Counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.occurrence import Occurrence
    from rota.model.schedule import Schedule
    from rota.store.redis.packing import Sight


Taken = tuple[str, str]  # "key" and a key, or "busy" and the schedule whose slot it is


class Eyes(Protocol):
    """What a draft reads with, one instant at a time."""

    def sights(self, ids: Sequence[str]) -> dict[str, Sight | None]: ...

    def ask(self, *commands: Command) -> list[Any]: ...

    def reserve(self) -> int: ...


class Draft:
    """Jobs as they were seen and as they shall be, and what else is written with them."""

    def __init__(self, eyes: Eyes, now: int) -> None:
        self.now = now
        self._made: dict[str, Job] = {}  # new jobs, as they were accepted
        self._eyes = eyes
        self._seen: dict[str, Sight | None] = {}
        self._before: dict[str, Job | None] = {}
        self._after: dict[str, Job | None] = {}
        self._counts = Counts()
        self._owners: dict[Taken, str | None] = {}  # who has which key or slot, as it shall be
        self._guards: dict[str, tuple[Command, Any]] = {}
        self._writes: list[Command] = []
        self._notes: list[tuple[str, list[Any]]] = []  # of last runs
        self._kept: list[tuple[Any, ...]] = []  # of who changed what
        self._channels: set[str] = set()
        self._lines: dict[str, dict[bytes, Occurrence]] = {}  # of ledgers: as they shall be
        self._gone: set[bytes] = set()  # lines that were joined to others
        self._shown_ledgers: set[str] = set()
        self._held_by_hand: list[tuple[str, int, int]] = []
        self._loaded: set[str] = set()  # new jobs with a past

    # Jobs.

    def show(self, sights: dict[str, Sight | None]) -> None:
        """Take in jobs that were read for many drafts at once."""
        for job_id, sight in sights.items():
            if job_id not in self._seen:
                self._seen[job_id] = sight
                self._before[job_id] = None if sight is None else job_of(job_id, sight)

    def find(self, job_id: str) -> Job | None:
        """A job as it shall be, or as it is."""
        if job_id in self._after:
            return self._after[job_id]
        if job_id not in self._seen:
            self.show(self._eyes.sights([job_id]))
        return self._before[job_id]

    def put(self, job: Job) -> None:
        before = self.find(job.id)
        count(self._counts, before, job)
        self._owners.update(dict.fromkeys(_taken(before)))
        self._owners.update(dict.fromkeys(_taken(job), job.id))
        self._after[job.id] = job

    def insert(self, job: Job) -> None:
        self.put(job)
        self._made[job.id] = job

    def load(self, job: Job) -> None:
        """Take a job as it is, from another store."""
        self.insert(job)
        self._loaded.add(job.id)

    def add(self, new: NewJob, seq: int) -> Added:
        """Accept a job unless it is there already, by its id, its slot or its key."""
        if self.find(new.id) is not None:
            return Added(new.id, existed=True)
        taken = self.slot_holder(new.slot) or self.key_holder(new.key)
        if taken:
            return Added(taken, existed=True)
        awaited = self.find(new.waits_for) if new.waits_for else None
        must_wait = awaited is not None and awaited.is_live
        self.insert(accept(new, self.now, seq, must_wait=must_wait))
        return Added(new.id)

    def slot_holder(self, slot: str | None) -> str | None:
        """The live job in a schedule's slot."""
        job = self._owner(("busy", slot)) if slot else None
        return job.id if job is not None and job.slot == slot else None

    def _owner(self, taken: Taken) -> Job | None:
        if taken not in self._owners:
            stored = self._see(["HGET", *taken])
            self._owners[taken] = None if stored is None else stored.decode()
        owner = self._owners[taken]
        return None if owner is None else self.find(owner)

    def key_holder(self, key: str | None) -> str | None:
        """The job that has a key; a key that only held for a period is free once that is over."""
        job = self._owner(("key", key)) if key else None
        if job is None or job.key != key:
            return None
        if holds_key(job.state, job.key_until, self.now):
            return job.id
        self.put(msgspec.structs.replace(job, key=None))
        return None

    def apply(self, changes: Iterable[Change]) -> None:
        """Write changes that were found to hold, and what they set in motion."""
        changes = list(changes)
        for change in changes:
            self.put(apply_to(self.find(change.id) or change.job, change))
        for change in changes:
            if change.state.is_final:
                self._let_go(change.id)
            if change.job.schedule_id is not None and is_noted(change):
                self.note(change.job.schedule_id, pack_last(noted(UNKNOWN_LAST, change)))
        for change in changes:
            if change.is_removal:
                self.remove(change.id)

    def stop(self, job_id: str, reason: str) -> None:
        """Ask a running job to stop; cancel a waiting one."""
        job = self.find(job_id)
        if job is None:
            return
        if job.state is State.RUNNING:
            self.put(msgspec.structs.replace(job, cancel_reason=job.cancel_reason or reason))
        else:
            self.apply([cancel(job, self.now, reason)])

    def remove(self, job_id: str) -> None:
        """A job goes; its occurrence stays, folded into a range."""
        job = self.find(job_id)
        if job is None:
            return
        if job.schedule_id is not None and job.fire_at is not None:
            schedule = self._schedule(job.schedule_id)
            if is_record_of(job, schedule.created_at if schedule else None):
                self.record(of_job(job))
        self.drop(job)

    def drop(self, job: Job) -> None:
        """A job goes without a trace."""
        count(self._counts, job, None)
        self._owners.update(dict.fromkeys(_taken(job)))
        self._after[job.id] = None

    def count_move(self, before: Job, after: Job) -> None:
        """Count the move of a job that is written by hand, and that its holder has one less."""
        count(self._counts, before, after)
        self._held_by_hand.append((before.holder or "", -1, 0))

    def held_of(self, schedule_id: str) -> list[Job]:
        """The held jobs of a schedule, of those that this draft knows."""
        known = {**self._before, **self._after}
        return [job for job in known.values() if job and job.schedule_id == schedule_id and job.state is State.HELD]

    def expect_no_waiters(self, job_id: str) -> None:
        """Nobody waits for this job: that was looked for already."""
        self.expect(_waits(job_id), [])

    def unmake(self, jobs: Sequence[Job]) -> None:
        """Jobs go without a trace; what waited for them waits no more."""
        self.see(*(_waits(job.id) for job in jobs))
        for job in jobs:
            self.drop(job)
        for job in jobs:
            self._let_go(job.id)

    def _let_go(self, job_id: str) -> None:
        """The jobs that waited for this one go on, or wait for what it waited for."""
        for job in self._waiters(job_id):
            awaited = still_awaited(job, self.find)
            if awaited is None:
                self.apply([release(job, self.now)])
            else:
                self.put(msgspec.structs.replace(job, waits_for=awaited))

    def _waiters(self, job_id: str) -> list[Job]:
        stored = [found.decode() for found in self._see(_waits(job_id))]
        fresh = [found for found in stored if found not in self._seen]
        if fresh:
            self.show(self._eyes.sights(fresh))
        staged = [other for other, job in self._after.items() if job is not None and other not in stored]
        jobs = [self.find(other) for other in (*stored, *staged)]
        return [job for job in jobs if job is not None and job.state is State.HELD and job.waits_for == job_id]

    # Schedules and ledgers.

    def note(self, schedule_id: str, fields: list[Any]) -> None:
        """What is known of a schedule's last run."""
        if fields:
            self._notes.append((schedule_id, fields))

    def forget_notes(self, schedule_id: str) -> None:
        """A firing or an edit writes the last run as it was read: what it ended itself is none."""
        self._notes = [note for note in self._notes if note[0] != schedule_id]

    def keep_note(self, note: AuditRecord | None) -> None:
        """Who changed what: one that is there already is left alone."""
        if note is not None:
            self._kept.append(pack_note(note))

    def record(self, line: Occurrence) -> None:
        """Keep a line, joined to the ranges that it touches without a break."""
        lines = self.lines_near(line)
        joined, replaced = fold(line, *lines.values())
        for packed in [packed for packed, other in lines.items() if other in replaced]:
            self._writes.append(["ZREM", f"ledger:{line.schedule_id}", binary(packed)])
            self._gone.add(packed)
            del lines[packed]
        packed = pack_line(joined)
        lines[packed] = joined
        ledger = f"ledger:{line.schedule_id}"
        self._writes.append(["ZREMRANGEBYSCORE", ledger, joined.through_at, joined.through_at])
        self._writes.append(["ZADD", ledger, joined.through_at, binary(packed)])

    def erase(self, schedule_id: str, ends: Sequence[int]) -> None:
        """Drop the lines of a shown ledger that end at these times."""
        lines = self._lines.get(schedule_id, {})
        for packed in [packed for packed, line in lines.items() if line.through_at in ends]:
            self._gone.add(packed)
            del lines[packed]
        self._writes += [["ZREMRANGEBYSCORE", f"ledger:{schedule_id}", end, end] for end in ends]

    def lines_near(self, line: Occurrence) -> dict[bytes, Occurrence]:
        """The lines of a ledger that this one may touch."""
        known = self._lines.setdefault(line.schedule_id, {})
        if line.schedule_id in self._shown_ledgers:
            return known
        before, behind = self.see(*neighbours(line))
        for packed in (*before, *behind):
            if packed not in self._gone:
                known[packed] = line_of(line.schedule_id, packed)
        return known

    def show_ledger(self, schedule_id: str, start: int, lines: list[bytes]) -> None:
        """Take in the end of a ledger, beginning with what ends at `start`: all that new lines can touch."""
        self.expect(["ZRANGEBYSCORE", f"ledger:{schedule_id}", start, "+inf"], lines)
        self._lines[schedule_id] = {packed: line_of(schedule_id, packed) for packed in lines}
        self._shown_ledgers.add(schedule_id)

    def _schedule(self, schedule_id: str) -> Schedule | None:
        packed = self._see(["HGET", "schedule", schedule_id])
        return None if packed is None else schedule_of(schedule_id, packed, [])

    # What guards it, and what it writes.

    def expect(self, command: Command, answer: Any) -> None:
        """The write holds only where this still is the answer."""
        self._guards[repr(command)] = (command, answer)

    def write(self, *command: Any) -> None:
        self._writes.append(list(command))

    def notify(self, channel: str) -> None:
        self._channels.add(channel)

    def item(self) -> dict[str, Any]:
        """What the commit script is told."""
        freed: list[tuple[str, str, str]] = []
        gone: list[tuple[str, str, int]] = []
        writes: list[Command] = []
        for job_id, after in self._after.items():
            before = self._before.get(job_id)
            if before is None and after is None:
                continue
            writes += moves(before, after)
            writes += self._values(job_id, before, after)
            freed += [(*taken, job_id) for taken in _taken(before) if taken not in _taken(after)]
            if before is not None and after is None:
                gone.append(departure(before))
            if after is not None and after.state in {State.QUEUED, State.SCHEDULED}:
                self._channels.add("jobs")
        return {
            "jobs": [(job_id, sight.guard if sight is not None else None) for job_id, sight in self._seen.items()],
            "guards": [(command, wired(answer)) for command, answer in self._guards.values()],
            "freed": freed,
            "gone": gone,
            "writes": [*writes, *self._keys(), *self._writes, *count_commands(self._counts)],
            "held": list(self._held()),
            "notes": self._notes,
            "kept": self._kept,
            "channels": sorted(self._channels),
        }

    def _held(self) -> Iterable[tuple[str, int, int]]:
        """Whose leases came or went: holder, how many, and when they end."""
        yield from self._held_by_hand
        for job_id, after in self._after.items():
            before = self._before.get(job_id)
            was_held, is_held = (job is not None and job.state is State.RUNNING for job in (before, after))
            if was_held and not is_held and before is not None:
                yield before.holder or "", -1, 0
            if is_held and not was_held and after is not None:
                yield after.holder or "", 1, after.lease_until or 0

    def _values(self, job_id: str, before: Job | None, after: Job | None) -> Iterable[Command]:
        if after is None:
            for name in ("job", "state", "end", "ready_at", "lease", "cancel", "progress"):
                yield ["HDEL", name, job_id]
            yield ["UNLINK", f"log:{job_id}"]
            return
        if before is None:
            accepted = self._made[job_id]
            yield ["HSET", "job", job_id, binary(b"%d" % accepted.seq + pack_record(accepted))]
            if job_id in self._loaded:
                yield from _loaded(after)
            elif after != accepted:
                yield from _standing(None, after)
            return
        if after.state is State.RUNNING:  # asked to stop: its lease and all else stay
            if after.cancel_reason and after.cancel_reason != before.cancel_reason:
                yield ["HSET", "cancel", job_id, after.cancel_reason]
            return
        yield from _standing(before, after)
        yield ["HDEL", "ready_at", job_id]
        if before.state is State.RUNNING:
            yield ["HDEL", "lease", job_id]
            yield ["HDEL", "cancel", job_id]

    def _keys(self) -> Iterable[Command]:
        for job_id, after in self._after.items():
            before = _taken(self._before.get(job_id))
            yield from (["HSET", *taken, job_id] for taken in _taken(after) if taken not in before)

    def see(self, *commands: Command) -> list[Any]:
        """Read something, once; that it stays so guards the write."""
        fresh = [command for command in commands if repr(command) not in self._guards]
        if fresh:
            for command, answer in zip(fresh, self._eyes.ask(*fresh), strict=True):
                self._guards[repr(command)] = (command, answer)
        return [self._guards[repr(command)][1] for command in commands]

    def _see(self, command: Command) -> Any:
        return self.see(command)[0]


def _taken(job: Job | None) -> list[Taken]:
    """The key and the slot that a job has."""
    if job is None:
        return []
    named: tuple[tuple[str, str | None], ...] = (("key", job.key), ("busy", job.slot))
    return [(home, name) for home, name in named if name is not None]


def _waits(job_id: str) -> Command:
    """What finds the jobs that wait for one."""
    return ["ZRANGE", f"waits:{job_id}", 0, -1]


def neighbours(line: Occurrence) -> list[Command]:
    """What finds the lines of a ledger that one may touch: the one that it follows, and the first behind it."""
    ledger = f"ledger:{line.schedule_id}"
    return [
        ["ZRANGEBYSCORE", ledger, line.after_at, line.after_at],
        ["ZRANGEBYSCORE", ledger, f"({line.through_at}", "+inf", "LIMIT", 0, 1],
    ]


def _standing(before: Job | None, after: Job) -> Iterable[Command]:
    """How a job stands now; nothing is left where it was told before."""
    if before is not None and before.state.is_final is not after.state.is_final:
        yield ["HDEL", "state" if after.state.is_final else "end", after.id]
    yield ["HSET", home_of(after.state), after.id, binary(standing_of(after))]


def _loaded(job: Job) -> Iterable[Command]:
    """The values of a job with a past; one that ran has its lease, which has run out."""
    if job.progress is not None:
        yield ["HSET", "progress", job.id, job.progress]
    if job.state is not State.RUNNING:
        yield from _standing(None, job)
        return
    unclaimed = msgspec.structs.replace(
        job, state=State.QUEUED, lease_no=job.lease_no - 1, holder=None, started_at=None, cancel_reason=None
    )
    yield from _standing(None, unclaimed)
    lease = Lease(job.started_at or 0, job.lease_until or 0, job.lease_no, job.holder or "")
    yield ["HSET", "lease", job.id, lease.packed()]
    if job.cancel_reason:
        yield ["HSET", "cancel", job.id, job.cancel_reason]
