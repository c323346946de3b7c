"""Judging: what becomes of jobs that were made ahead, once they are due; each schedule's in one guarded step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.lookahead import is_ahead, judge
from rota.model.occurrence import of_skip
from rota.store.redis.draft import Draft
from rota.store.redis.packing import job_of, sights_of
from rota.store.redis.schedules import Want

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.job import Job
    from rota.model.schedule import Schedule
    from rota.store.redis.desk import Desk
    from rota.store.redis.packing import Sight
    from rota.store.redis.schedules import Found, ScheduleBook


class Judge:
    """Decides about due jobs by the policies of their schedules, as the model says."""

    def __init__(self, desk: Desk, schedules: ScheduleBook) -> None:
        self._desk = desk
        self._schedules = schedules

    def judge(self, due: list[Any], now: int | None) -> None:
        """Due jobs as an exchange found them, and their queues."""
        raw, queues = due
        queue_of = {job_id.decode(): queue.decode() for job_id, queue in zip(raw[0], queues, strict=True)}
        by_schedule: dict[str, list[Job]] = {}
        for job_id, sight in sights_of(raw).items():
            job = None if sight is None else job_of(job_id, sight)
            if job is None or not is_ahead(job):
                self._set_aside(job_id, queue_of[job_id], sight, job)
            else:
                by_schedule.setdefault(job.schedule_id or "", []).append(job)
        entries = [(_want(name, jobs), [job.id for job in jobs]) for name, jobs in by_schedule.items()]
        self._schedules.decide("exchange", entries, self._judged, now)

    def _judged(self, ids: Sequence[str], found: Found, now: int) -> tuple[Draft | None, None]:
        draft = found.draft(self._desk, now)
        jobs = [job for job in map(draft.find, ids) if job is not None and is_ahead(job) and job.run_at <= now]
        for job in sorted(jobs, key=lambda job: (job.run_at, job.seq)):
            _place(draft, job, found.name, found.schedule)
        return (draft if jobs else None), None  # none: another claim was first

    def _set_aside(self, job_id: str, queue: str, sight: Sight | None, job: Job | None) -> None:
        """What cannot be read is made ready as any other: whoever claims it says so. What is not ahead stands wrong."""
        draft = Draft(self._desk, 0)
        draft.expect(["HGET", "job", job_id], sight.record if sight else None)
        draft.write("ZREM", "ahead", job_id)
        draft.write("ZREM", f"ahead:{queue}", job_id)
        if sight is not None and sight.end is None and job is not None and job.state.is_final:
            draft.write("ZADD", f"due:{queue}", 0, job_id)
        self._desk.commit("exchange", [draft], is_work=True)


def _want(name: str, jobs: Sequence[Job]) -> Want:
    since = min(job.after_at or job.run_at for job in jobs)
    return Want(name, since, [], [], needs_live=True, known=[job.id for job in jobs])


def _place(draft: Draft, job: Job, name: str, schedule: Schedule | None) -> None:
    """One job after another: the first may be what the next would overlap with."""
    live = draft.slot_holder(name)
    held = draft.held_of(name) if live else []
    last_held = max(held, key=lambda job: job.seq).id if held else None
    became = judge(job, schedule, live, last_held, draft.key_holder(job.ahead), draft.now)
    if became.job is None:
        draft.unmake([job])
    else:
        draft.put(became.job)
    if became.skip is not None and schedule is not None:
        draft.record(of_skip(name, became.skip))
    if became.cancels is not None:
        draft.stop(became.cancels, "replaced by the next occurrence")
