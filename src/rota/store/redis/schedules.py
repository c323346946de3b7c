"""Schedules: edits and other decisions, each guarded by the schedule that it was decided on; and reading them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rota.model.schedules.edit import audit_after, schedule_after
from rota.model.schedules.schedule import LastRun
from rota.store.contract import Due
from rota.store.redis.codec import UNKNOWN_LAST, binary, pack_schedule, schedule_of
from rota.store.redis.guarded_write import GuardedWrite, stored_schedule, waits_for, was_made
from rota.store.shared.batching import FEW_DUE, batches
from rota.store.shared.matching import schedule_matches
from rota.store.shared.paging import page_of
from rota.store.shared.stepwise import revoke_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.jobs.job import NewJob
    from rota.model.schedules.edit import Edit
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Page, ScheduleFilter
    from rota.store.redis.guarded_write import GuardedWriter
    from rota.store.redis.indexes import Command

MOST_AT_ONCE = 250  # schedules in one call
LONGEST_STEP = 500  # schedules read in one call if most of them do not match


class ScheduleRead(NamedTuple):
    """What a decision needs to know of a schedule."""

    name: str
    ledger_from: int  # entries of the ledger that end at or after this may be touched
    jobs_in: Sequence[str] = ()  # indexes whose jobs matter: "live" (many, if they may overlap), "soon" (not due yet)
    jobs: Sequence[NewJob] = ()  # that it may make
    known: Sequence[str] = ()  # jobs that exist, and that it may change

    def commands(self) -> list[Command]:
        """What reads all this but the jobs."""
        times = [was_made(self.name, job.fire_at or 0) for job in self.jobs]
        return [["HGET", "schedule", self.name], ["HGET", "busy", self.name], self.ledger, *self.indexes, *times]

    @property
    def ids(self) -> list[str]:
        """The jobs that the decision names."""
        return [*(job.id for job in self.jobs), *self.known]

    @property
    def ledger(self) -> Command:
        return ["ZRANGEBYSCORE", f"ledger:{self.name}", self.ledger_from, "+inf"]

    @property
    def indexes(self) -> list[Command]:
        """What finds the jobs that matter."""
        return [["ZRANGE", f"{index}:{self.name}", 0, -1] for index in self.jobs_in]


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
                jobs_in=() if edit.revoke is None else ("live", "soon"),
                jobs=edit.jobs,
            )
            for edit in edits
        ]
        accepted = self.decide("edit", list(zip(reads, edits, strict=True)), self._edited, now)
        return [edit.id for edit, is_accepted in zip(edits, accepted, strict=True) if not is_accepted]

    def _edited(self, edit: Edit, wanted: ScheduleRead, write: GuardedWrite) -> tuple[bool, bool]:
        current = stored_schedule(write, edit.id)
        if not edit.holds_for(current.version if current else None, current.created_at if current else None):
            return False, False
        deleted = _revoke(write, edit, wanted, edit.revoke) if edit.revoke is not None else set()
        made: list[str] = []
        if edit.is_removal:
            put_schedule(write, edit.id, current, None)
        else:
            new = [job for job in edit.jobs if not write.was_made(edit.id, job.fire_at or 0) or job.fire_at in deleted]
            made = [added.id for job in new if not (added := write.add(job)).existed]
            after = schedule_after(edit, current.last if current else None, made)
            put_schedule(write, edit.id, current, after)
            if current is not None or after.last != LastRun():
                write.set_last_run(edit.id, after.last)
        write.add_audit_record(audit_after(edit, made))
        write.erase(edit.id, edit.reopens)
        for skip in edit.skips:
            write.record_skip(edit.id, skip)
        write.add_command("NOTIFY", "schedules")
        return True, True

    # Deciding on snapshots of schedules.

    def decide(
        self, verb: str, entries: Sequence[tuple[ScheduleRead, Any]], decide: Callable[..., Any], now: int | None
    ) -> list[Any]:
        """Read, decide and commit, until every entry was decided on what still held; the answers in order. A decision
        gets its entry, what was read, and the write for it; it says whether that is to be written, and its answer."""
        answers: dict[int, Any] = {}

        def step(left: list[int]) -> list[tuple[list[int], GuardedWrite]]:
            writes: list[tuple[list[int], GuardedWrite]] = []
            wanted = [entries[number][0] for number in left]
            for number, one, write in zip(left, wanted, self._read(wanted, now), strict=True):
                is_written, answers[number] = decide(entries[number][1], one, write)
                writes += [([number], write)] if is_written else []
            return writes

        numbers = range(len(entries))
        for batch in batches(numbers, lambda number: [entries[number][0].name], MOST_AT_ONCE):
            self._writer.decide(verb, batch, step, is_work=True)
        return [answers[number] for number in range(len(entries))]

    def _read(self, wanted: Sequence[ScheduleRead], now: int | None) -> list[GuardedWrite]:
        """Schedules, and then their jobs, each for a write; the guards of the writes find what changes in between."""
        ids = [job_id for one in wanted for job_id in one.ids]
        number = sum(len(one.jobs) for one in wanted)
        commands = [command for one in wanted for command in one.commands()]
        found = self._writer.snapshot(ids, *commands, reserve=number, now=now, is_work=True)
        writes = [GuardedWrite(self._writer, found) for _ in wanted]
        for one, write in zip(wanted, writes, strict=True):
            write.add_ledger(one.name, write.read(one.ledger)[0])
        mine = [_job_ids(one, write) for one, write in zip(wanted, writes, strict=True)]
        self._writer.load(found, [job_id for some in mine for job_id in some])
        for write, some in zip(writes, mine, strict=True):
            for job_id in some:
                write.find(job_id)
        return writes

    # Reading.

    def get_schedules(self, ids: Sequence[str]) -> list[Schedule]:
        if not ids:
            return []
        packed, *lasts = self._writer.read(["HMGET", "schedule", *ids], *(["HGETALL", f"last:{name}"] for name in ids))
        rows = zip(ids, packed, lasts, strict=True)
        return [schedule_of(name, row, last) for name, row, last in rows if row is not None]

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
        for look in (FEW_DUE, limit) if limit > FEW_DUE else (limit,):  # few are due as a rule
            command = ["ZRANGE", "dues", 0, look, "WITHSCORES"]
            found = self._writer.snapshot((), command, now=now)
            rows = found.answer(command)
            names, times = rows[::2], [int(float(at)) for at in rows[1::2]]
            number = len([at for at in times[:look] if at <= found.now])
            if number < FEW_DUE:
                break
        due = [name.decode() for name in names[:number]]
        schedules = [schedule for schedule in self.get_schedules(due) if not schedule.problem]
        for name in set(due).difference(schedule.id for schedule in schedules):
            self._drop_due(name)
        return Due(now=found.now, schedules=schedules, next_due_at=times[number] if number < len(times) else None)

    def _drop_due(self, name: str) -> None:
        """Unless it was repaired meanwhile."""
        write = GuardedWrite(self._writer)
        schedule = stored_schedule(write, name)
        if schedule is None or schedule.problem:
            write.add_command("ZREM", "dues", name)
            self._writer.commit("edit", [write], is_work=False)


def _index_for(where: ScheduleFilter | None) -> str:
    """An index that has all schedules that a filter shows; those of no tenant have none of their own."""
    if where is not None and where.tenant:
        return f"tenant:{where.tenant}"
    return "names" if where is None or where.origin is None else f"origin:{where.origin}"


def _indexes_of(schedule: Schedule | None) -> dict[str, int]:
    """The indexes that a schedule is in, and its score in each."""
    if schedule is None:
        return {}
    indexes = {"names": 0, f"origin:{schedule.origin.name}": 0}
    if schedule.spec.tenant:
        indexes[f"tenant:{schedule.spec.tenant}"] = 0
    if schedule.due_at is not None:
        indexes["dues"] = schedule.due_at
    return indexes


def _job_ids(wanted: ScheduleRead, write: GuardedWrite) -> list[str]:
    """The jobs that a decision may read or make."""
    holder, *found = write.read(["HGET", "busy", wanted.name], *wanted.indexes)
    ids = [*(job_id for some in found for job_id in some), *([holder] if holder else [])]
    return [*(job_id.decode() for job_id in ids), *wanted.ids]


def _revoke(write: GuardedWrite, edit: Edit, wanted: ScheduleRead, reason: str) -> set[int | None]:
    """Revoke the schedule's jobs. Returns the times of those that are deleted."""
    found = [job for job in map(write.find, dict.fromkeys(_job_ids(wanted, write))) if job]
    write.read(*(waits_for(job.id) for job in found))  # of all in one call
    deleted = revoke_jobs(found, edit, reason, write)
    write.set_last_run(edit.id, UNKNOWN_LAST, is_own=True)
    return {job.fire_at for job in deleted}


def put_schedule(write: GuardedWrite, name: str, before: Schedule | None, after: Schedule | None) -> None:
    """Write a schedule to all its indexes, whatever `before` says: one that could not be read was dropped from what is
    due. None: delete it."""
    new = _indexes_of(after)
    for index in {**_indexes_of(before), "dues": 0}.keys() - new.keys():
        write.add_command("ZREM", index, name)
    for index, score in new.items():
        write.add_command("ZADD", index, score, name)
    if after is not None:
        write.add_command("HSET", "schedule", name, binary(pack_schedule(after)))
        return
    write.add_command("HDEL", "schedule", name)
    write.add_command("UNLINK", f"last:{name}")
    write.add_command("UNLINK", f"ledger:{name}")
