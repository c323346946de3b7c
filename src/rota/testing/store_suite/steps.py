"""Defines the store's verbs in short form for tests. The time is T0 if a call gives no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.jobs.job import history_of
from rota.model.jobs.outcome import Failed, Succeeded
from rota.model.jobs.settle import cancel, rescue, settle
from rota.model.schedules.edit import register
from rota.model.schedules.firing import plan, plan_early
from rota.model.schedules.schedule import Origin
from rota.store.contract import LARGEST_PAGE, Exchange, JobFilter, QueueInfo
from rota.testing.store_suite.builders import LEASE, T0, WORKER, a_job, a_policy, a_spec, fresh_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.model.jobs.job import Job, NewJob, State
    from rota.model.jobs.outcome import Outcome
    from rota.model.schedules.edit import Edit
    from rota.model.schedules.firing import Firing
    from rota.model.schedules.occurrence import Occurrence
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Fired, Refusal, Store

FAR = 2**53  # beyond every instant that a test uses
DEFAULT = ("default",)


# Jobs.


def add(store: Store, *jobs: NewJob, now: int = T0) -> list[str]:
    return [added.id for added in store.add_jobs(jobs, now=now)]


def add_job(store: Store, *, now: int = T0, **fields: Any) -> str:
    return add(store, a_job(**fields), now=now)[0]


def claim(
    store: Store,
    want: int = 1,
    *,
    queues: tuple[str, ...] = DEFAULT,
    holder: str = WORKER,
    now: int = T0,
    lease_for: int = LEASE,
) -> list[Job]:
    ask = Exchange(holder=holder, want=want, queues=queues, lease_for=lease_for)
    return store.exchange(ask, now=now).claimed


def claim_one(store: Store, *, queues: tuple[str, ...] = DEFAULT, holder: str = WORKER, now: int = T0) -> Job:
    (job,) = claim(store, 1, queues=queues, holder=holder, now=now)
    return job


def running_job(store: Store, *, now: int = T0, holder: str = WORKER, **fields: Any) -> Job:
    """A new job under a lease; its queue must be empty."""
    job_id = add_job(store, now=now, **fields)
    job = claim_one(store, queues=(fields.get("queue", "default"),), holder=holder, now=now)
    assert job.id == job_id
    return job


def settle_job(
    store: Store,
    job: Job,
    outcome: Outcome,
    *,
    now: int = T0,
    retries: int = 0,
    keep: bool = True,
    holder: str = WORKER,
) -> list[Refusal]:
    change = settle(job, outcome, a_policy(retries), now, 0.0, keep=keep)
    return store.exchange(Exchange(holder=holder, settled=[change]), now=now).refused


def succeed(store: Store, job: Job, *, now: int = T0, keep: bool = True, holder: str = WORKER) -> list[Refusal]:
    return settle_job(store, job, Succeeded(b"1"), now=now, keep=keep, holder=holder)


def fail(store: Store, job: Job, *, now: int = T0) -> list[Refusal]:
    return settle_job(store, job, Failed("boom", may_retry=False), now=now)


def succeeded_job(store: Store, *, now: int = T0, **fields: Any) -> str:
    job = running_job(store, now=now, **fields)
    assert succeed(store, job, now=now) == []
    return job.id


def failed_job(store: Store, *, now: int = T0, **fields: Any) -> str:
    job = running_job(store, now=now, **fields)
    assert fail(store, job, now=now) == []
    return job.id


def cancelled_job(store: Store, *, now: int = T0, **fields: Any) -> str:
    job_id = add_job(store, now=now, **fields)
    assert cancel_waiting(store, job_id, now=now) == []
    return job_id


def cancel_waiting(store: Store, job_id: str, *, now: int = T0, reason: str = "not needed") -> list[Refusal]:
    return store.change_jobs([cancel(read(store, job_id), now, reason)], now=now)


def rescue_expired(store: Store, *, now: int) -> list[Refusal]:
    """One round of a rescuer."""
    expired = store.expired_jobs(100, now=now)
    return store.rescue_jobs([rescue(job, now) for job in expired], now=now)


def read(store: Store, job_id: str) -> Job:
    (job,) = store.get_jobs([job_id])
    return job


def is_kept(store: Store, job_id: str) -> bool:
    return bool(store.get_jobs([job_id]))


def history(store: Store, job_id: str) -> list[State]:
    return [line.state for line in history_of(read(store, job_id))]


def all_jobs(store: Store, where: JobFilter | None = None, *, page: int = LARGEST_PAGE) -> list[Job]:
    """Every page of a list, newest first."""
    jobs: list[Job] = []
    cursor: str | None = None
    while True:
        found = store.list_jobs(where or JobFilter(), cursor=cursor, limit=page)
        jobs += found.items
        cursor = found.cursor
        if cursor is None:
            return jobs


def ids(jobs: Iterable[Job]) -> list[str]:
    return [job.id for job in jobs]


def queue_info(store: Store, name: str = "default") -> QueueInfo:
    found = [info for info in store.list_queues(now=T0) if info.name == name]
    return found[0] if found else QueueInfo(name=name)


# Schedules.


def new_schedule(schedule_id: str, *, now: int = T0, **spec: Any) -> Edit:
    """The edit that makes a schedule."""
    edit = register(None, schedule_id, a_spec(**spec), Origin(), now, fresh_id)
    assert edit is not None
    return edit


def add_schedule(store: Store, schedule_id: str = "tick", *, now: int = T0, **spec: Any) -> Schedule:
    return change_schedule(store, new_schedule(schedule_id, now=now, **spec), now=now)


def change_schedule(store: Store, edit: Edit | None, *, now: int = T0) -> Schedule:
    """Apply an edit that must be accepted; return the schedule after it (or before it, if it was removed)."""
    assert edit is not None
    assert store.edit_schedules([edit], now=now) == []
    return edit.after if edit.is_removal else read_schedule(store, edit.id)


def read_schedule(store: Store, schedule_id: str = "tick") -> Schedule:
    (schedule,) = store.get_schedules([schedule_id])
    return schedule


def planned(store: Store, schedule_id: str = "tick", *, now: int) -> Firing:
    """The firing that a scheduler decides on at that instant."""
    return plan(read_schedule(store, schedule_id), now, fresh_id)


def fire(store: Store, schedule_id: str = "tick", *, now: int) -> Fired:
    (fired,) = store.fire([planned(store, schedule_id, now=now)], now=now)
    assert fired.is_accepted
    return fired


def planned_early(store: Store, at: int, schedule_id: str = "tick") -> Firing:
    """The firing that a scheduler decides on shortly before that instant."""
    firing = plan_early(read_schedule(store, schedule_id), at, fresh_id)
    assert firing is not None
    return firing


def fire_early(store: Store, at: int, schedule_id: str = "tick", *, now: int) -> Fired:
    (fired,) = store.fire([planned_early(store, at, schedule_id)], now=now)
    return fired


def fire_due(store: Store, *, now: int, limit: int = 100) -> list[Fired]:
    """One round of a scheduler."""
    due = store.due_schedules(limit, now=now)
    return store.fire([plan(schedule, due.now, fresh_id) for schedule in due.schedules], now=now)


def ledger(store: Store, schedule_id: str = "tick", *, page: int = LARGEST_PAGE) -> list[Occurrence]:
    """Every page of a schedule's occurrences, oldest first."""
    lines: list[Occurrence] = []
    cursor: str | None = None
    while True:
        found = store.list_occurrences(schedule_id, 0, FAR, cursor=cursor, limit=page)
        lines += found.items
        cursor = found.cursor
        if cursor is None:
            return lines
