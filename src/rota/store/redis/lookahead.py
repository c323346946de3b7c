"""Decides on jobs that schedules created before they were due, once they are; each schedule's in one guarded write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.jobs.settle import due_order
from rota.model.schedules.lookahead import is_ahead
from rota.store.redis.codec import snapshots_of
from rota.store.redis.guarded_write import GuardedWrite, Snapshot, stored_schedule
from rota.store.redis.schedules import ScheduleRead
from rota.store.shared.batching import grouped
from rota.store.shared.placing import place_due

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
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
        found = Snapshot(0, snapshots_of(raw), {}, iter(()))
        ahead: list[Job] = []
        # By id: a job that was written by hand may be in the indexes of two queues.
        queue_of = {job_id.decode(): queue.decode() for job_id, queue in zip(raw[0], queues, strict=True)}
        for job_id, snapshot in found.jobs.items():
            queue = queue_of[job_id]
            write = GuardedWrite(self._writer, found)
            job = write.find(job_id)
            if job is not None and is_ahead(job):
                ahead.append(job)
                continue
            write.add_command("ZREM", "ahead", job_id)  # from the wrong index
            write.add_command("ZREM", f"ahead:{queue}", job_id)
            if snapshot is not None and snapshot.end is None and job is not None and job.state.is_final:
                write.add_command("ZADD", f"due:{queue}", 0, job_id)  # unreadable: the claim reports it
            self._writer.commit("exchange", [write], is_work=True)
        entries = []
        for name, jobs in grouped(ahead, lambda job: job.schedule_id or "").items():
            since, ids = min(job.after_at or job.run_at for job in jobs), [job.id for job in jobs]
            entries.append((ScheduleRead(name=name, ledger_from=since, jobs_in=("live",), known=ids), ids))
        self._schedules.decide("exchange", entries, _decided, now)


def _decided(ids: Sequence[str], wanted: ScheduleRead, write: GuardedWrite) -> tuple[bool, None]:
    jobs = [job for job in map(write.find, ids) if job is not None and is_ahead(job) and job.run_at <= write.now]
    for job in sorted(jobs, key=due_order):
        place_due(job, stored_schedule(write, wanted.name), write, write.now)
    return bool(jobs), None  # none: another claim was first
