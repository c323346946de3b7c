"""Decides on jobs that schedules created before they were due, once they are; each schedule's in one guarded write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.jobs.settle import due_order
from rota.model.schedules.lookahead import is_ahead
from rota.store.redis.codec import job_of, snapshots_of
from rota.store.redis.guarded_write import GuardedWrite, stored_schedule
from rota.store.redis.schedules import ScheduleRead
from rota.store.shared.placing import place_due

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.store.redis.codec import JobSnapshot
    from rota.store.redis.guarded_write import GuardedWriter
    from rota.store.redis.schedules import Schedules


class LookaheadDecider:
    """Applies the policies of their schedules to due jobs, as the model says."""

    def __init__(self, writer: GuardedWriter, schedules: Schedules) -> None:
        self._writer = writer
        self._schedules = schedules

    def decide(self, due: list[Any], now: int | None) -> None:
        """Decide on due jobs, as an exchange found them with their queues."""
        raw, queues = due
        queue_of = {job_id.decode(): queue.decode() for job_id, queue in zip(raw[0], queues, strict=True)}
        by_schedule: dict[str, list[Job]] = {}
        for job_id, snapshot in snapshots_of(raw).items():
            job = None if snapshot is None else job_of(job_id, snapshot)
            if job is None or not is_ahead(job):
                self._drop_from_index(job_id, queue_of[job_id], snapshot, job)
            else:
                by_schedule.setdefault(job.schedule_id or "", []).append(job)
        entries = [(_read_for(name, jobs), [job.id for job in jobs]) for name, jobs in by_schedule.items()]
        self._schedules.decide("exchange", entries, _decided, now)

    def _drop_from_index(self, job_id: str, queue: str, snapshot: JobSnapshot | None, job: Job | None) -> None:
        """A job that cannot be read is made ready: the claim reports it. Any other is in the wrong index."""
        write = GuardedWrite(self._writer, 0)
        write.guard(["HGET", "job", job_id], snapshot.record if snapshot else None)
        write.add_command("ZREM", "ahead", job_id)
        write.add_command("ZREM", f"ahead:{queue}", job_id)
        if snapshot is not None and snapshot.end is None and job is not None and job.state.is_final:
            write.add_command("ZADD", f"due:{queue}", 0, job_id)
        self._writer.commit("exchange", [write], is_work=True)


def _decided(ids: Sequence[str], wanted: ScheduleRead, write: GuardedWrite) -> tuple[bool, None]:
    jobs = [job for job in map(write.find, ids) if job is not None and is_ahead(job) and job.run_at <= write.now]
    for job in sorted(jobs, key=due_order):
        place_due(job, stored_schedule(write, wanted.name), write, write.now)
    return bool(jobs), None  # none: another claim was first


def _read_for(name: str, jobs: Sequence[Job]) -> ScheduleRead:
    since = min(job.after_at or job.run_at for job in jobs)
    return ScheduleRead(name=name, ledger_from=since, needs_live=True, known=[job.id for job in jobs])
