"""Matching, in plain Python: which jobs a filter shows, and whether a job still is what a decision was made on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.errors import BadOption
from rota.model.jobs.job import State

if TYPE_CHECKING:
    from rota.model.audit_record import AuditRecord
    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import AuditFilter, JobFilter, ScheduleFilter


def audit_cursor(audit: AuditRecord) -> str:
    """The cursor of a list of audit records that ends with this one."""
    return f"{audit.at}-{audit.id}"


def audit_position(cursor: str) -> tuple[int, str]:
    """The time and id of the audit record that a cursor names."""
    at, dash, record_id = cursor.partition("-")
    if not (dash and record_id and at.isascii() and at.isdigit()):
        raise BadOption(f"cursor {cursor!r} is none that a list gave")
    return int(at), record_id


def schedule_matches(schedule: Schedule, where: ScheduleFilter | None) -> bool:
    """Whether a list with this filter shows the schedule."""
    if where is None:
        return True
    wanted = ((where.tenant, schedule.spec.tenant), (where.origin, schedule.origin.name))
    return all(want is None or want == have for want, have in wanted)


def audit_matches(audit: AuditRecord, where: AuditFilter) -> bool:
    """Whether a list with this filter shows the audit record."""
    if where.subject is not None and audit.subject != where.subject:
        return False
    return (where.since is None or audit.at >= where.since) and (where.until is None or audit.at < where.until)


def matches(job: Job, where: JobFilter) -> bool:
    """Whether a list with this filter shows the job."""
    if where.states and job.state not in where.states:
        return False
    if where.task is not None and not _task_matches(job.task, where.task):
        return False
    if where.since is not None and job.created_at < where.since:
        return False
    if where.until is not None and job.created_at >= where.until:
        return False
    if not attempts_match(job.attempts, where):
        return False
    wanted = ((where.queue, job.queue), (where.schedule_id, job.schedule_id), (where.key, job.key))
    return all(want is None or want == have for want, have in wanted)


def attempts_match(attempts: int, where: JobFilter) -> bool:
    """Whether a filter shows jobs with so many attempts."""
    if where.least_attempts is not None and attempts < where.least_attempts:
        return False
    return where.most_attempts is None or attempts <= where.most_attempts


def _task_matches(task: str, pattern: str) -> bool:
    return task.startswith(pattern[:-1]) if pattern.endswith("*") else task == pattern


def is_same(change: Change, job: Job) -> bool:
    """Whether the job still is what the change was decided on: cancelled and retried meanwhile, its past is longer."""
    was = change.job
    return (job.state, job.lease_no, job.key, len(job.past)) == (was.state, was.lease_no, was.key, len(was.past))


def may_change(change: Change, job: Job) -> bool:
    """Whether a decision about a job that does not run is still written."""
    return is_same(change, job) and not is_running(job)


def may_rescue(change: Change, job: Job, now: int) -> bool:
    """Whether a decision about a job whose lease expired is still written."""
    return is_same(change, job) and has_expired(job, now)


def is_held_by(holder: str, change: Change, job: Job) -> bool:
    """Whether this worker still has the lease that its report is about."""
    return is_running(job) and (job.lease_no, job.holder) == (change.job.lease_no, holder)


def is_running(job: Job) -> bool:
    return job.state is State.RUNNING


def has_expired(job: Job, now: int) -> bool:
    return job.state is State.RUNNING and job.lease_until is not None and job.lease_until <= now
