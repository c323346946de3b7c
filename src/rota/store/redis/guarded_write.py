"""One all-or-nothing write, guarded by the snapshots that it was decided on.

A verb reads, lets the model decide on a guarded write, and commits. If something that was read has changed meanwhile,
nothing of that write is written, and the verb reads and decides again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from rota.errors import StoreUnavailable
from rota.model.jobs.job import Job, NewJob, State, accept, holds_key
from rota.model.schedules.occurrence import noted, of_skip
from rota.store.contract import Added
from rota.store.redis.codec import (
    UNKNOWN_LAST,
    JobSnapshot,
    binary,
    job_of,
    occurrence_of,
    pack_audit_record,
    pack_last,
    pack_occurrence,
    schedule_of,
    snapshots_of,
    to_script,
)
from rota.store.redis.indexes import (
    Command,
    Held,
    free_commands,
    held_by,
    job_commands,
    runs_of,
)
from rota.store.shared.changing import Counts
from rota.store.shared.importing import imported
from rota.store.shared.ledger import fold_all, key_of
from rota.store.shared.stepwise import delete_unstarted, stop_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.jobs.settle import Change
    from rota.model.schedules.occurrence import Occurrence
    from rota.model.schedules.schedule import LastRun, Schedule
    from rota.model.schedules.slots import Skip
    from rota.store.redis.connection import Connection
    from rota.store.shared.ledger import Key

Item = TypeVar("Item")
Answer = TypeVar("Answer")

WIDEST_READ = 1_000  # jobs in one call
MOST_WRITES = 250  # in one commit: a script must not block the server for long
MOST_RETRIES = 100  # of a decision, before the caller gets an error


class Snapshot(NamedTuple):
    """What one call read at one instant, and what was read later for the same decisions."""

    now: int
    jobs: dict[str, JobSnapshot | None]
    answers: dict[tuple[Any, ...], Any]  # by command
    positions: Iterator[int]  # that were reserved

    def answer(self, command: Command) -> Any:
        return self.answers[tuple(command)]


class GuardedWriter:
    """Reads and writes of one namespace."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def snapshot(
        self,
        ids: Sequence[str] = (),
        *commands: Command,
        reserve: int = 0,
        now: int | None = None,
        is_work: bool = False,
    ) -> Snapshot:
        """The clock, jobs and answers to commands at one instant; and positions reserved for new jobs."""
        asked = [*commands, ["INCRBY", "seq", reserve]] if reserve else commands
        reply = self.connection.call("read", now=now, is_work=is_work, ids=ids[:WIDEST_READ], commands=asked)
        answers, raw = reply.body
        jobs = snapshots_of(raw)
        if len(ids) > WIDEST_READ:
            jobs |= self.read_jobs(ids[WIDEST_READ:])
        last = answers[-1] if reserve else 0
        by_command = dict(zip(map(tuple, asked), answers, strict=True))
        return Snapshot(reply.now, jobs, by_command, iter(range(last - reserve + 1, last + 1)))

    def read_jobs(self, ids: Sequence[str]) -> dict[str, JobSnapshot | None]:
        return self.snapshot(ids).jobs

    def load(self, found: Snapshot, ids: Iterable[str]) -> None:
        """Add jobs to a snapshot; the guards of its writes find what has changed since."""
        unread = list(dict.fromkeys(job_id for job_id in ids if job_id not in found.jobs))
        if unread:
            found.jobs.update(self.read_jobs(unread))

    def read(self, *commands: Command) -> list[Any]:
        return list(map(self.snapshot((), *commands).answer, commands))

    def commit(self, verb: str, writes: Sequence[GuardedWrite], *, is_work: bool) -> list[bool]:
        """Whether each was written; one whose snapshots have changed meanwhile is not written at all."""
        held: list[bool] = []
        for start in range(0, len(writes), MOST_WRITES):
            items = [write.item() for write in writes[start : start + MOST_WRITES]]
            held += map(bool, self.connection.call("commit", verb=verb, items=items, is_work=is_work).body)
        return held

    def write(self, *commands: Command, is_work: bool = False) -> None:
        """Write what needs no guard."""
        self.connection.call("commit", items=[{"jobs": (), "guards": (), "commands": commands}], is_work=is_work)

    def decide(
        self,
        verb: str,
        items: Sequence[Item],
        step: Callable[[list[Item]], list[tuple[list[Item], GuardedWrite]]],
        *,
        is_work: bool,
    ) -> None:
        """Commit what a step decides about items. It is repeated for the items of writes that no longer held."""
        left = list(items)
        for _ in range(MOST_RETRIES):
            if not left:
                return
            writes = step(left)
            held = self.commit(verb, [write for _, write in writes], is_work=is_work)
            left = [item for (some, _), is_held in zip(writes, held, strict=True) if not is_held for item in some]
        raise StoreUnavailable(
            f"{self.connection.address}: others changed what was to be written {MOST_RETRIES} times in a row; try again"
        )

    def decide_one(
        self, verb: str, decision: Callable[[], tuple[GuardedWrite | None, Answer]], *, is_work: bool
    ) -> Answer:
        """Commit one write, unless the decision is to write nothing; returns the answer that was decided with it."""
        answers: list[Answer] = []

        def step(left: list[None]) -> list[tuple[list[None], GuardedWrite]]:
            write, answer = decision()
            answers.append(answer)
            return [] if write is None else [(left, write)]

        self.decide(verb, [None], step, is_work=is_work)
        return answers[-1]


class GuardedWrite:
    """Jobs before and after, and what else is written with them.

    Writes may share a snapshot: each is guarded by what it reads of it.
    """

    def __init__(self, writer: GuardedWriter, found: Snapshot | None = None) -> None:
        self._writer = writer
        self._found = found or Snapshot(0, {}, {}, iter(()))
        self.now = self._found.now
        self._before: dict[str, Job | None] = {}
        self._after: dict[str, Job | None] = {}
        self.counts = Counts()
        self._holders: dict[Held, str | None] = {}  # after this write
        self._guards: dict[tuple[Any, ...], Any] = {}  # answers by command
        self._commands: list[Command] = []
        self._recorded: list[Occurrence] = []  # new entries of ledgers
        self._near: dict[Key, Occurrence] = {}  # entries that they may touch
        self._erased: set[Key] = set()
        self._whole_ledgers: set[str] = set()  # whose last entries were all read

    # Jobs.

    def find(self, job_id: str) -> Job | None:
        """A job after this write."""
        if job_id in self._after:
            return self._after[job_id]
        if job_id not in self._before:
            self._writer.load(self._found, [job_id])
            snapshot = self._found.jobs[job_id]
            self._before[job_id] = None if snapshot is None else job_of(job_id, snapshot)
        return self._before[job_id]

    def put(self, before: Job, after: Job | None) -> None:
        """Write a job that exists; None: delete it without a record."""
        self._set(before.id, after)

    def _set(self, job_id: str, after: Job | None) -> None:
        before = self.find(job_id)
        self.counts.change(before, after)
        self._holders.update(dict.fromkeys(held_by(before)))
        self._holders.update(dict.fromkeys(held_by(after), job_id))
        self._after[job_id] = after

    def make(self, new: NewJob, *, must_wait: bool = True) -> None:
        """Accept a job."""
        self._set(new.id, accept(new, self.now, next(self._found.positions), must_wait=must_wait))

    def import_job(self, job: Job) -> None:
        """Take a job as it is, from another store; its position is a new one."""
        self._set(job.id, msgspec.structs.replace(imported(job), seq=next(self._found.positions)))

    def add(self, new: NewJob) -> Added:
        """Accept a job unless its id, its slot or its key is taken."""
        if self.find(new.id) is not None:
            return Added(new.id, existed=True)
        holder = (new.slot and self.live_job(new.slot)) or (new.key and self.key_holder(new.key))
        if holder:
            return Added(holder, existed=True)
        awaited = self.find(new.waits_for) if new.waits_for else None
        self.make(new, must_wait=awaited is not None and awaited.is_live)
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
        self._set(job.id, msgspec.structs.replace(job, key=None))
        return None

    def stop(self, job_id: str, reason: str) -> None:
        stop_job(job_id, reason, self)

    def replace_unreadable(self, failed: Job) -> None:
        """Write what stands for a running job whose record cannot be read."""
        self.counts.move(failed.queue, State.RUNNING, failed.state)
        self._after[failed.id] = failed
        self.add_command("UNLEASE", failed.holder or "", 1)

    def last_held(self, schedule_id: str) -> str | None:
        """The newest held job of a schedule, of those that this write has read."""
        known = {**self._before, **self._after}.values()
        held = [job for job in known if job and job.schedule_id == schedule_id and job.state is State.HELD]
        return max(held, key=lambda job: job.seq).id if held else None

    def delete_unstarted(self, job: Job) -> None:
        delete_unstarted([job], self)

    def held_behind(self, job_id: str) -> list[Job]:
        """The jobs that wait for this one after this write."""
        stored = [found.decode() for found in self.read(waits_for(job_id))[0]]
        self._writer.load(self._found, stored)
        staged = [other for other, job in self._after.items() if job is not None and other not in stored]
        jobs = [self.find(other) for other in (*stored, *staged)]
        return [job for job in jobs if job is not None and job.state is State.HELD and job.waits_for == job_id]

    # Schedules, ledgers and audit records.

    def was_made(self, schedule_id: str, fire_at: int) -> bool:
        """Whether an occurrence has a job."""
        return bool(self.read(was_made(schedule_id, fire_at))[0])

    def created_at(self, schedule_id: str) -> int | None:
        schedule = stored_schedule(self, schedule_id)
        return None if schedule is None else schedule.created_at

    def record_skip(self, schedule_id: str, skip: Skip) -> None:
        self.record(of_skip(schedule_id, skip))

    def record_runs(self, changes: Sequence[Change]) -> None:
        self.counts.add_runs(changes, self.now)
        for change in changes:
            if change.job.schedule_id is not None and change.is_last_run:
                self.set_last_run(change.job.schedule_id, noted(UNKNOWN_LAST, change))

    def set_last_run(self, schedule_id: str, last: LastRun, *, is_own: bool = False) -> None:
        """`is_own`: by a firing or an edit of this schedule, for which the jobs that it ended itself are no runs."""
        if is_own:
            self._commands = [command for command in self._commands if command[:2] != ["LAST", schedule_id]]
        if last != UNKNOWN_LAST:
            self.add_command("LAST", schedule_id, pack_last(last))

    def add_audit_record(self, record: AuditRecord | None) -> None:
        """Add an audit record, unless it exists."""
        if record is not None:
            self.add_command("AUDIT", *pack_audit_record(record))

    def record(self, entry: Occurrence) -> None:
        """Add an entry to a ledger, joined to the ranges that it touches without a break."""
        self._recorded.append(entry)
        if entry.schedule_id not in self._whole_ledgers:
            self._add_near(entry.schedule_id, [packed for found in self.read(*neighbours(entry)) for packed in found])

    def erase(self, schedule_id: str, ends: Sequence[int]) -> None:
        """Delete the entries of a ledger that end at these times."""
        self._erased |= {(schedule_id, end) for end in ends}

    def add_ledger(self, schedule_id: str, entries: list[bytes]) -> None:
        """Use the last entries of a ledger, which were read: all that new ones can touch."""
        self._add_near(schedule_id, entries)
        self._whole_ledgers.add(schedule_id)

    def _add_near(self, schedule_id: str, entries: Iterable[bytes]) -> None:
        found = (occurrence_of(schedule_id, packed) for packed in entries)
        self._near.update((key_of(entry), entry) for entry in found)

    def _ledger_commands(self) -> Iterator[Command]:
        near = [entry for key, entry in self._near.items() if key not in self._erased]
        gone, written = fold_all(self._recorded, near)
        for name, end in sorted({*gone, *self._erased, *written}):
            yield ["ZREMRANGEBYSCORE", f"ledger:{name}", end, end]
        for (name, end), entry in written.items():
            yield ["ZADD", f"ledger:{name}", end, binary(pack_occurrence(entry))]

    # Guards, and what is written.

    def read(self, *commands: Command) -> list[Any]:
        """Read something, once; the write is guarded by the answer."""
        known, asked = self._found.answers, [tuple(command) for command in commands]
        unread = [command for command in dict.fromkeys(asked) if command not in known]
        if unread:
            known.update(zip(unread, self._writer.read(*map(list, unread)), strict=True))
        self._guards |= {command: known[command] for command in asked}
        return [known[command] for command in asked]

    def add_command(self, *command: Any) -> None:
        """A command of Redis, or one of the script's own, such as NOTIFY."""
        self._commands.append(list(command))

    def item(self) -> dict[str, Any]:
        """This write as the commit script takes it."""
        freed: list[Command] = []
        commands: list[Command] = []
        for job_id, after in self._after.items():
            before = self._before.get(job_id)
            freed += free_commands(job_id, before, after)
            commands += job_commands(job_id, before, after)
            commands += [["HSET", *held, job_id] for held in held_by(after) if held not in held_by(before)]
        commands += self._ledger_commands()  # before a removed schedule's ledger goes
        commands += self._commands
        commands += [["HINCRBY", "count", f"{queue}|{name}", number] for queue, name, number in self.counts.rows()]
        commands.append(["RUNS", self.counts.minute, runs_of(self.counts.runs)])
        return {
            "jobs": [(job_id, found.guard if (found := self._found.jobs[job_id]) else None) for job_id in self._before],
            "guards": [(command, to_script(answer)) for command, answer in self._guards.items()],
            "commands": [*freed, *commands],
        }


def stored_schedule(write: GuardedWrite, schedule_id: str) -> Schedule | None:
    """A schedule as it was read, its last run unknown; the write is guarded by it."""
    (packed,) = write.read(["HGET", "schedule", schedule_id])
    if packed is None:
        return None
    return msgspec.structs.replace(schedule_of(schedule_id, packed, []), last=UNKNOWN_LAST)


def waits_for(job_id: str) -> Command:
    """What finds the jobs that wait for one."""
    return ["ZRANGE", f"waits:{job_id}", 0, -1]


def was_made(schedule_id: str, fire_at: int) -> Command:
    """What counts the jobs of an occurrence."""
    return ["ZCOUNT", f"slot:{schedule_id}", fire_at, fire_at]


def neighbours(entry: Occurrence) -> list[Command]:
    """What finds the entries of a ledger that one may touch: the one before it, and the first after it."""
    ledger = f"ledger:{entry.schedule_id}"
    return [
        ["ZRANGEBYSCORE", ledger, entry.after_at, entry.after_at],
        ["ZRANGEBYSCORE", ledger, f"({entry.through_at}", "+inf", "LIMIT", 0, 1],
    ]
