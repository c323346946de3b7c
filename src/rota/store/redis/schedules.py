"""Schedules: edits and other decisions, each guarded by the schedule that it was decided on; and reading them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rota.model.edit import audit_after, schedule_after
from rota.model.schedule import LastRun
from rota.model.settle import cancel
from rota.store.contract import Due
from rota.store.redis.codec import UNKNOWN_LAST, JobSnapshot, binary, job_of, pack_last, pack_schedule, schedule_of
from rota.store.redis.guarded_write import GuardedWrite
from rota.store.shared.matching import schedule_matches
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rota.model.edit import Edit
    from rota.model.job import Job
    from rota.model.schedule import Schedule
    from rota.store.contract import Page, ScheduleFilter
    from rota.store.redis.guarded_writer import GuardedWriter
    from rota.store.redis.indexes import Command

MOST_AT_ONCE = 250  # schedules in one call
LONGEST_STEP = 500  # schedules read in one call if most of them do not match


class ScheduleRead(NamedTuple):
    """What a decision needs to know of a schedule."""

    name: str
    ledger_from: int  # entries of the ledger that end at or after this may be touched
    needs_live: bool  # whether its live jobs matter: if they may overlap, they do not, and may be many
    needs_soon: bool = False  # whether jobs that were created before they are due matter
    jobs: Sequence[str] = ()  # that it may make
    fire_times: Sequence[int] = ()  # their nominal times
    known: Sequence[str] = ()  # jobs that exist, and that it may change

    def commands(self) -> dict[str, Command]:
        """What reads all this, by name."""
        name = self.name
        commands: dict[str, Command] = {
            "schedule": ["HGET", "schedule", name],
            "holder": ["HGET", "busy", name],
            "ledger": ["ZRANGEBYSCORE", f"ledger:{name}", self.ledger_from, "+inf"],
        }
        if self.needs_live:
            commands["live"] = ["ZRANGE", f"live:{name}", 0, -1]
        if self.needs_soon:
            commands["soon"] = ["ZRANGE", f"soon:{name}", 0, -1]
        return commands | {f"at {at}": ["ZCOUNT", f"slot:{name}", at, at] for at in self.fire_times}


class ScheduleSnapshot:
    """A schedule at one instant, with all that a decision on it needs."""

    jobs: dict[str, JobSnapshot | None]

    def __init__(self, wanted: ScheduleRead, found: Iterator[Any], positions: Iterator[int]) -> None:
        self._commands = wanted.commands()
        self._answers = {name: next(found) for name in self._commands}
        self._positions = positions
        self.name = wanted.name
        packed, holder = self._answers["schedule"], self._answers["holder"]
        self.schedule = None if packed is None else schedule_of(wanted.name, packed, [])
        ids = [*self._answers.get("live", ()), *self._answers.get("soon", ()), *([holder] if holder else [])]
        self.job_ids = [*(job_id.decode() for job_id in ids), *wanted.jobs, *wanted.known]

    def was(self, job_id: str) -> Job | None:
        """A job in this snapshot."""
        snapshot = self.jobs[job_id]
        return None if snapshot is None else job_of(job_id, snapshot)

    def write(self, writer: GuardedWriter, now: int) -> GuardedWrite:
        """A write that is guarded by this snapshot."""
        write = GuardedWrite(writer, now, self._positions)
        for name, command in self._commands.items():
            write.guard(command, self._answers[name])
        write.add_snapshots(self.jobs)
        write.add_ledger(self.name, self._answers["ledger"])
        return write


class Schedules:
    """One namespace's schedules."""

    def __init__(self, writer: GuardedWriter) -> None:
        self._writer = writer

    # Edits.

    def edit_schedules(self, edits: Sequence[Edit], now: int | None) -> list[str]:
        reads = [
            ScheduleRead(
                name=edit.id,
                ledger_from=min((skip.after_at for skip in edit.skips), default=edit.after.fired_through),
                needs_live=edit.revoke is not None,
                needs_soon=edit.revoke is not None,
                jobs=[job.id for job in edit.jobs],
                fire_times=[job.fire_at or 0 for job in edit.jobs],
            )
            for edit in edits
        ]
        accepted = self.decide("edit", list(zip(reads, edits, strict=True)), self._edited, now)
        return [edit.id for edit, is_accepted in zip(edits, accepted, strict=True) if not is_accepted]

    def _edited(self, edit: Edit, found: ScheduleSnapshot, now: int) -> tuple[GuardedWrite | None, bool]:
        current = found.schedule
        if not edit.holds_for(current.version if current else None, current.created_at if current else None):
            return None, False
        write = found.write(self._writer, now)
        if edit.revoke is not None:
            _revoke(write, edit, edit.revoke, [write.find(job_id) for job_id in found.jobs])
        made: list[str] = []
        if edit.is_removal:
            _remove(write, edit.id, current)
        else:
            made = _add_jobs(write, edit, found)
            after = schedule_after(edit, None if current is None else UNKNOWN_LAST, made)
            put_schedule(write, after, current)
            if after.last != (LastRun() if current is None else UNKNOWN_LAST):
                write.set_last_run(edit.id, pack_last(after.last))
        write.add_audit_record(audit_after(edit, made))
        write.erase(edit.id, edit.reopens)
        for skip in edit.skips:
            write.record_skip(edit.id, skip)
        write.notify("schedules")
        return write, True

    # Deciding on snapshots of schedules.

    def decide(
        self, verb: str, entries: Sequence[tuple[ScheduleRead, Any]], decide: Callable[..., Any], now: int | None
    ) -> list[Any]:
        """Read, decide and commit, until every entry was decided on what still held; the answers in order."""
        answers: dict[int, Any] = {}
        for batch in _batches(entries):
            left = list(batch)

            def step(left: list[int] = left) -> bool:
                writes: list[tuple[int, GuardedWrite]] = []
                at, found = self._read([entries[number][0] for number in left], now)
                for number, one in zip(left, found, strict=True):
                    write, answers[number] = decide(entries[number][1], one, at)
                    if write is not None:
                        writes.append((number, write))
                held = self._writer.commit(verb, [write for _, write in writes], is_work=True)
                left[:] = [number for (number, _), is_held in zip(writes, held, strict=True) if not is_held]
                return not left

            self._writer.retry(step)
        return [answers[number] for number in range(len(entries))]

    def _read(self, wanted: Sequence[ScheduleRead], now: int | None) -> tuple[int, list[ScheduleSnapshot]]:
        """Schedules, and then their jobs; the guards of a decision find what changes in between."""
        ids = [job_id for one in wanted for job_id in (*one.jobs, *one.known)]
        number = sum(len(one.jobs) for one in wanted)
        commands = [command for one in wanted for command in one.commands().values()]
        found = self._writer.snapshot(ids, *commands, reserve=number, now=now, is_work=True)
        answers = iter(found.answers)
        snapshots = [ScheduleSnapshot(one, answers, found.positions) for one in wanted]
        others = {job_id for one in snapshots for job_id in one.job_ids}.difference(found.jobs)
        jobs = found.jobs | (self._writer.read_jobs(list(others)) if others else {})
        for one in snapshots:
            one.jobs = {job_id: jobs[job_id] for job_id in one.job_ids}
        return found.now, snapshots

    # Reading.

    def get_schedules(self, ids: Sequence[str]) -> list[Schedule]:
        found = self._read_by_id(ids)
        return [schedule for name in ids if (schedule := found[name]) is not None]

    def _read_by_id(self, ids: Sequence[str]) -> dict[str, Schedule | None]:
        if not ids:
            return {}
        packed, *lasts = self._writer.read(["HMGET", "schedule", *ids], *(["HGETALL", f"last:{name}"] for name in ids))
        rows = zip(ids, packed, lasts, strict=True)
        return {name: None if row is None else schedule_of(name, row, last) for name, row, last in rows}

    def list_schedules(self, where: ScheduleFilter | None, cursor: str | None, limit: int) -> Page[Schedule]:
        """By id, from an index that has all of them; what does not match is left out."""
        found: list[Schedule] = []
        after, step = cursor, limit + 1
        while len(found) <= limit:
            start = "-" if after is None else f"({after}"
            (rows,) = self._writer.read(["ZRANGEBYLEX", _index_for(where), start, "+", "LIMIT", 0, step])
            names = [name.decode() for name in rows]
            found += [schedule for schedule in self.get_schedules(names) if schedule_matches(schedule, where)]
            if len(names) < step:
                break
            after, step = names[-1], max(step, LONGEST_STEP)
        return page_of(found, limit, lambda schedule: schedule.id)

    def due_schedules(self, limit: int, now: int | None) -> Due:
        """Due schedules, in order; one that cannot be read is dropped from the index."""
        found = self._writer.snapshot((), ["ZRANGE", "dues", 0, limit, "WITHSCORES"], now=now)
        names, times = found.answers[0][::2], [int(float(at)) for at in found.answers[0][1::2]]
        number = len([at for at in times[:limit] if at <= found.now])
        due = self._read_by_id([name.decode() for name in names[:number]])
        schedules = [schedule for schedule in due.values() if schedule is not None and not schedule.problem]
        readable = {schedule.id for schedule in schedules}
        for name in due:
            if name not in readable:
                self._drop_due(name)
        return Due(now=found.now, schedules=schedules, next_due_at=times[number] if number < len(times) else None)

    def _drop_due(self, name: str) -> None:
        """Unless it was repaired meanwhile."""
        (packed,) = self._writer.read(["HGET", "schedule", name])
        if packed is None or schedule_of(name, packed, []).problem:
            write = GuardedWrite(self._writer, 0)
            write.guard(["HGET", "schedule", name], packed)
            write.add_command("ZREM", "dues", name)
            self._writer.commit("edit", [write], is_work=False)


def _index_for(where: ScheduleFilter | None) -> str:
    """An index that has all schedules that a filter shows; those of no tenant have none of their own."""
    if where is not None and where.tenant:
        return f"tenant:{where.tenant}"
    return "names" if where is None or where.origin is None else f"origin:{where.origin}"


def _indexes_of(schedule: Schedule | None) -> list[str]:
    """The indexes that a schedule is in by its values."""
    if schedule is None:
        return []
    tenant = schedule.spec.tenant
    return [f"origin:{schedule.origin.name}", *([f"tenant:{tenant}"] if tenant else [])]


def _revoke(write: GuardedWrite, edit: Edit, reason: str, found: list[Job | None]) -> None:
    """Cancel the jobs that the schedule's trigger made and no worker has started; those of times that are still to come
    are deleted."""
    made = [job for job in found if job and job.schedule_id == edit.id and job.fire_at]
    waiting = [job for job in made if job.state.is_waiting]
    write.unmake(*(job for job in waiting if edit.unmakes(job)))
    write.apply(cancel(job, write.now, reason) for job in waiting if not edit.unmakes(job))
    write.set_last_run(edit.id, [], is_own=True)


def _add_jobs(write: GuardedWrite, edit: Edit, found: ScheduleSnapshot) -> list[str]:
    """Add the jobs of an edit; returns those that were made."""
    deleted = {job.fire_at for job in map(found.was, found.jobs) if job and edit.unmakes(job)}
    new = [job for job in edit.jobs if not write.was_made(edit.id, job.fire_at or 0) or job.fire_at in deleted]
    return [added.id for job in new if not (added := write.add(job)).existed]


def put_schedule(write: GuardedWrite, schedule: Schedule, before: Schedule | None) -> None:
    write.add_command("HSET", "schedule", schedule.id, binary(pack_schedule(schedule)))
    write.add_command("ZADD", "names", 0, schedule.id)
    old, new = _indexes_of(before), _indexes_of(schedule)
    for index in old:
        if index not in new:
            write.add_command("ZREM", index, schedule.id)
    for index in new:
        if index not in old or (before is not None and before.problem):  # an unreadable one does not say where it is
            write.add_command("ZADD", index, 0, schedule.id)
    if schedule.due_at is None:
        write.add_command("ZREM", "dues", schedule.id)
    else:
        write.add_command("ZADD", "dues", schedule.due_at, schedule.id)


def _remove(write: GuardedWrite, name: str, before: Schedule | None) -> None:
    for index in (*_indexes_of(before), "names", "dues"):
        write.add_command("ZREM", index, name)
    write.add_command("HDEL", "schedule", name)
    write.add_command("UNLINK", f"last:{name}")
    write.add_command("UNLINK", f"ledger:{name}")


def _batches(entries: Sequence[tuple[ScheduleRead, Any]]) -> list[list[int]]:
    """Numbers of entries in batches in which each schedule is once: a second entry of it comes in a later batch."""
    rounds: list[dict[str, int]] = []
    for number, (wanted, _) in enumerate(entries):
        free = next((one for one in rounds if wanted.name not in one), None)
        if free is None:
            free = {}
            rounds.append(free)
        free[wanted.name] = number
    numbers = [list(one.values()) for one in rounds]
    return [some[start : start + MOST_AT_ONCE] for some in numbers for start in range(0, len(some), MOST_AT_ONCE)]
