"""Applies changes that were decided on jobs, if those are unchanged; deletes jobs; releases the jobs that waited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.schedules.occurrence import of_job
from rota.store.redis.guarded_write import GuardedWrite, neighbours, waits_for
from rota.store.shared.changing import check_changes
from rota.store.shared.matching import has_expired, is_running, is_same

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change
    from rota.store.contract import Refusal
    from rota.store.redis.guarded_write import GuardedWriter, Snapshot
    from rota.store.redis.indexes import Command

    Holds = Callable[[Change, Job, int], bool]


class Changer:
    """Applies the changes of workers, of the rescuer and of people."""

    def __init__(self, writer: GuardedWriter) -> None:
        self._writer = writer

    def rescue_jobs(self, changes: Sequence[Change], now: int | None) -> list[Refusal]:
        def holds(change: Change, job: Job, at: int) -> bool:
            return is_same(change, job) and has_expired(job, at)

        return self.apply("change", changes, holds, now=now)

    def change_jobs(self, changes: Sequence[Change], now: int | None) -> list[Refusal]:
        def holds(change: Change, job: Job, _: int) -> bool:
            return is_same(change, job) and not is_running(job)

        return self.apply("change", changes, holds, now=now, is_work=True)

    def apply(
        self, verb: str, changes: Sequence[Change], holds: Holds, *, now: int | None, is_work: bool = False
    ) -> list[Refusal]:
        """Apply the changes whose jobs still are what was decided on; all are checked first. Returns the others."""
        refused: list[Refusal] = []

        def step(left: list[Change]) -> list[tuple[list[Change], GuardedWrite]]:
            ids = list(dict.fromkeys(change.id for change in left))
            found = self._writer.snapshot(ids, *[["EXISTS", f"waits:{job_id}"] for job_id in ids], now=now)
            jobs = GuardedWrite(self._writer, found.now)
            jobs.add_snapshots(found.jobs)
            checked = check_changes(
                left, lambda change: jobs.find(change.id), lambda change, job: holds(change, job, found.now)
            )
            refused.extend(checked.refused)
            awaited = {job_id for job_id, number in zip(ids, found.answers, strict=True) if number}
            groups = _groups([change for change, _ in checked.accepted], awaited)
            return [(group, self._write(group, found, awaited)) for group in groups]

        self._writer.decide(verb, changes, step, is_work=is_work)
        return refused

    def _write(self, group: list[Change], found: Snapshot, awaited: set[str]) -> GuardedWrite:
        write = GuardedWrite(self._writer, found.now)
        write.add_snapshots({change.id: found.jobs[change.id] for change in group})
        for change in group:
            if change.id not in awaited:
                write.guard(waits_for(change.id), [])
        write.apply(group)
        return write

    # Deleting.

    def delete_jobs(self, ids: Sequence[str]) -> list[str]:
        """Delete ended jobs; returns which."""
        return [job.id for job in self.remove("delete", ids, lambda job: job.state.is_final)]

    def remove(self, verb: str, ids: Sequence[str], may_go: Callable[[Job], bool]) -> list[Job]:
        """Delete jobs, those of a schedule in one step; their occurrences stay in its ledger."""
        removed: dict[str, Job] = {}

        def step(left: list[str]) -> list[tuple[list[str], GuardedWrite]]:
            for job_id in left:
                removed.pop(job_id, None)
            found = self._writer.snapshot(left)
            jobs = GuardedWrite(self._writer, found.now)
            jobs.add_snapshots(found.jobs)
            groups: dict[str, list[Job]] = {}
            for job in map(jobs.find, left):
                if job is not None and may_go(job):
                    groups.setdefault(job.schedule_id or job.id, []).append(job)
            guards = self._read_ledgers([job for group in groups.values() for job in group])
            removed.update((job.id, job) for group in groups.values() for job in group)
            return [
                ([job.id for job in group], self._removal(group, found, guards.get(name, [])))
                for name, group in groups.items()
            ]

        self._writer.decide(verb, list(dict.fromkeys(ids)), step, is_work=True)
        if not removed:
            self._writer.write(is_work=True)  # a sealed store refuses this even if there is nothing to delete
        return [removed[job_id] for job_id in dict.fromkeys(ids) if job_id in removed]

    def _removal(self, jobs: list[Job], found: Snapshot, guards: list[tuple[Command, Any]]) -> GuardedWrite:
        write = GuardedWrite(self._writer, found.now)
        write.add_snapshots({job.id: found.jobs[job.id] for job in jobs})
        for command, answer in guards:
            write.guard(command, answer)
        for job in sorted(jobs, key=lambda job: job.fire_at or 0):
            write.remove(job.id)
        return write

    def _read_ledgers(self, jobs: Sequence[Job]) -> dict[str, list[tuple[Command, Any]]]:
        """What the removals will read of schedules and ledgers, in one call."""
        commands: list[tuple[str, Command]] = []
        for job in jobs:
            if job.schedule_id is not None and job.fire_at is not None:
                near = [["HGET", "schedule", job.schedule_id], *neighbours(of_job(job))]
                commands += [(job.schedule_id, command) for command in near]
        answers = self._writer.read(*[command for _, command in commands]) if commands else []
        found: dict[str, list[tuple[Command, Any]]] = {}
        for (name, command), answer in zip(commands, answers, strict=True):
            found.setdefault(name, []).append((command, answer))
        return found


def _groups(changes: list[Change], awaited: set[str]) -> list[list[Change]]:
    """Changes that are committed together: jobs that wait or are waited for, with all of their schedules, whose ends
    are recorded in order. Each of the others is committed by itself."""

    def is_linked(change: Change) -> bool:
        return change.id in awaited or change.job.waits_for is not None

    schedules = {change.job.schedule_id for change in changes if is_linked(change)} - {None}
    linked = [change for change in changes if is_linked(change) or change.job.schedule_id in schedules]
    known = {change.id for change in linked}
    return ([linked] if linked else []) + [[change] for change in changes if change.id not in known]
