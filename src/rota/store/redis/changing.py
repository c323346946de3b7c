"""Applies changes that were decided on jobs, if those are unchanged; deletes jobs; releases the jobs that waited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.schedules.occurrence import of_job
from rota.store.redis.guarded_write import GuardedWrite, neighbours, waits_for
from rota.store.shared.batching import grouped
from rota.store.shared.changing import check_changes
from rota.store.shared.matching import may_change, may_rescue
from rota.store.shared.stepwise import apply_changes, remove_job

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change
    from rota.store.contract import Refusal
    from rota.store.redis.guarded_write import GuardedWriter
    from rota.store.redis.indexes import Command

    Holds = Callable[[Change, Job, int], bool]


class Changer:
    """Applies the changes of workers, of the rescuer and of people."""

    def __init__(self, writer: GuardedWriter) -> None:
        self._writer = writer

    def rescue_jobs(self, changes: Sequence[Change], now: int | None) -> list[Refusal]:
        return self.apply("change", changes, may_rescue, now=now)

    def change_jobs(self, changes: Sequence[Change], now: int | None) -> list[Refusal]:
        return self.apply("change", changes, lambda change, job, _: may_change(change, job), now=now, is_work=True)

    def apply(
        self, verb: str, changes: Sequence[Change], holds: Holds, *, now: int | None, is_work: bool = False
    ) -> list[Refusal]:
        """Apply the changes whose jobs still are what was decided on; all are checked first. Returns the others."""
        refused: list[Refusal] = []

        def step(left: list[Change]) -> list[tuple[list[Change], GuardedWrite]]:
            ids = list(dict.fromkeys(change.id for change in left))
            found = self._writer.snapshot(ids, *map(waits_for, ids), now=now)
            jobs = GuardedWrite(self._writer, found)
            checked = check_changes(
                left, lambda change: jobs.find(change.id), lambda change, job: holds(change, job, found.now)
            )
            refused.extend(checked.refused)
            awaited = {job_id for job_id in ids if found.answer(waits_for(job_id))}
            writes = []
            for group in _groups([change for change, _ in checked.accepted], awaited):
                write = GuardedWrite(self._writer, found)
                apply_changes(group, write)
                writes.append((group, write))
            return writes

        self._writer.decide(verb, changes, step, is_work=is_work)
        return refused

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
            jobs = GuardedWrite(self._writer, found)
            chosen = [job for job in map(jobs.find, left) if job is not None and may_go(job)]
            removed.update((job.id, job) for job in chosen)
            jobs.read(*[command for job in chosen for command in _near(job)])  # for all writes, in one call
            writes = []
            for group in grouped(chosen, lambda job: job.schedule_id or job.id).values():
                write = GuardedWrite(self._writer, found)
                for job in sorted(group, key=lambda job: job.fire_at or 0):
                    remove_job(job, write)
                writes.append(([job.id for job in group], write))
            return writes

        self._writer.decide(verb, list(dict.fromkeys(ids)), step, is_work=True)
        if not removed:
            self._writer.write(is_work=True)  # a sealed store refuses this even if there is nothing to delete
        return [removed[job_id] for job_id in dict.fromkeys(ids) if job_id in removed]


def _near(job: Job) -> list[Command]:
    """What the removal of a job reads of its schedule and ledger."""
    if job.schedule_id is None or job.fire_at is None:
        return []
    return [["HGET", "schedule", job.schedule_id], *neighbours(of_job(job))]


def _groups(changes: list[Change], awaited: set[str]) -> list[list[Change]]:
    """Changes that are committed together: jobs that wait or are waited for, with all of their schedules, whose ends
    are recorded in order. Each of the others is committed by itself."""

    def is_linked(change: Change) -> bool:
        return change.id in awaited or change.job.waits_for is not None

    schedules = {change.job.schedule_id for change in changes if is_linked(change)} - {None}
    linked = [change for change in changes if is_linked(change) or change.job.schedule_id in schedules]
    known = {change.id for change in linked}
    return ([linked] if linked else []) + [[change] for change in changes if change.id not in known]
